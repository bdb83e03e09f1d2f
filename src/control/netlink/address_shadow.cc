#include "control/netlink/address_shadow.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>

namespace sluice::control::netlink {
namespace {

bool is_usable(const AddressMessage& message) {
  const auto& bytes = message.address.bytes;
  const bool link_local = message.address.family == 4 && bytes[0] == 169 && bytes[1] == 254;
  return message.scope < RT_SCOPE_LINK && !link_local && (message.flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == 0;
}

}  // namespace

void AddressShadow::apply(const AddressMessage& message) {
  const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.ifindex == message.ifindex && entry.address == message.address;
  });
  changed_ = true;
  if (message.removed) {
    if (known != entries_.end()) entries_.erase(known);
    return;
  }
  // IFA_F_SECONDARY is IFA_F_TEMPORARY for IPv6.
  const bool last_choice = (message.flags & (IFA_F_SECONDARY | IFA_F_DEPRECATED)) != 0;
  const Entry now{message.ifindex, message.address, is_usable(message), last_choice, generation_};
  if (known != entries_.end()) {
    *known = now;
  } else {
    entries_.push_back(now);
  }
}

void AddressShadow::end_dump() {
  changed_ = true;
  std::erase_if(entries_, [this](const Entry& entry) { return entry.generation != generation_; });
}

bool AddressShadow::has(int ifindex, int family) const {
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.ifindex == ifindex && entry.address.family == family; });
}

void AddressShadow::settle() {
  if (!changed_) return;
  changed_ = false;
  std::map<Slot, packet::IpAddress> chosen;
  // A later look only fills what the earlier ones left empty.
  const auto look = [&](bool twins, bool last_choice) {
    for (const Entry& entry : entries_) {
      const auto port = ports_.port(entry.ifindex);
      if (!entry.usable || entry.last_choice != last_choice || port.has_value() != twins) continue;
      chosen.try_emplace({std::nullopt, entry.address.family}, entry.address);
      if (port) chosen.try_emplace({port, entry.address.family}, entry.address);
    }
  };
  for (const bool twins : {true, false}) {
    for (const bool last_choice : {false, true}) look(twins, last_choice);
  }
  for (const auto& [slot, address] : announced_) {
    if (!chosen.contains(slot)) plane_.set_source(slot.first, slot.second, {});
  }
  for (const auto& [slot, address] : chosen) {
    const auto before = announced_.find(slot);
    if (before == announced_.end() || before->second != address) plane_.set_source(slot.first, slot.second, address);
  }
  announced_ = std::move(chosen);
}

}  // namespace sluice::control::netlink
