#include "control/netlink/neighbour_shadow.h"

#include <linux/neighbour.h>

#include <functional>
#include <string_view>

namespace sluice::control::netlink {
namespace {

constexpr std::uint16_t valid_states = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

bool is_group(const packet::IpAddress& address) {
  if (address.family == 6) return address.bytes[0] == 0xff;
  return address.v4_host_order() >> 28 == 0xe || address.v4_host_order() == 0xffffffffU;
}

}  // namespace

std::size_t NeighbourShadow::Hash::operator()(const Key& key) const noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(key.address.bytes.data()), key.address.bytes.size());
  return std::hash<std::string_view>{}(bytes) + static_cast<std::size_t>(key.ifindex);
}

void NeighbourShadow::apply(const NeighbourMessage& message) {
  if ((message.flags & NTF_PROXY) != 0 || is_group(message.address)) return;
  const Key key{message.ifindex, message.address};
  const bool valid = !message.removed && message.mac && (message.state & valid_states) != 0;
  if (!valid && !entries_.contains(key)) return;
  Entry& entry = entries_[key];
  entry.mac = valid ? message.mac : std::nullopt;
  entry.stale = (message.state & NUD_STALE) != 0;
  entry.generation = generation_;
  announce(key, entry);
  if (!entry.mac && !entry.announced) entries_.erase(key);
}

void NeighbourShadow::end_dump() {
  for (auto next = entries_.begin(); next != entries_.end();) {
    auto& [key, entry] = *next;
    if (entry.generation != generation_) entry.mac.reset();
    announce(key, entry);
    next = !entry.mac && !entry.announced ? entries_.erase(next) : std::next(next);
  }
}

void NeighbourShadow::moved(int ifindex, std::optional<function::PortIndex> before) {
  for (auto& [key, entry] : entries_) {
    if (key.ifindex != ifindex) continue;
    if (before && entry.refused) (void)plane_.remove_neighbour(*before, key.address);
    set_refused(entry, false);
    if (before && entry.announced) {
      note(plane_.remove_neighbour(*before, key.address));
      --announced_;
    }
    entry.announced.reset();
    announce(key, entry);
  }
}

void NeighbourShadow::set_refused(Entry& entry, bool refused) {
  refused_ += refused ? 1 : 0;
  refused_ -= entry.refused ? 1 : 0;
  entry.refused = refused;
}

void NeighbourShadow::retry_refused(std::size_t limit) {
  if (refused_ == 0) return;
  std::size_t in_a_row = 0;
  for (auto& [key, entry] : entries_) {
    if (!entry.refused) continue;
    announce(key, entry, true);
    in_a_row = entry.refused ? in_a_row + 1 : 0;
    if (in_a_row == limit) return;
  }
}

void NeighbourShadow::announce(const Key& key, Entry& entry, bool again) {
  const auto port = ports_.port(key.ifindex);
  if (!port) return;
  if (!entry.mac && !entry.announced && entry.refused) (void)plane_.remove_neighbour(*port, key.address);
  if (!entry.mac) set_refused(entry, false);
  if (entry.announced == entry.mac) return;
  if (entry.mac) {
    const auto answer = plane_.add_neighbour(*port, key.address, *entry.mac);
    if (!again) note(answer);
    set_refused(entry, !answer && !entry.announced);
    if (!answer) return;
    announced_ += entry.announced ? 0 : 1;
  } else {
    note(plane_.remove_neighbour(*port, key.address));
    --announced_;
  }
  found_ += counts_as_found_ ? 1 : 0;
  entry.announced = entry.mac;
}

std::vector<NeighbourShadow::Key> NeighbourShadow::due(Clock::time_point now, Clock::duration interval,
                                                       std::size_t limit) {
  std::vector<Key> result;
  for (auto& [key, entry] : entries_) {
    if (result.size() == limit) break;
    if (!entry.stale || !entry.announced || now - entry.probed < interval) continue;
    entry.probed = now;
    result.push_back(key);
  }
  return result;
}

void NeighbourShadow::not_probed(const Key& key) {
  if (const auto found = entries_.find(key); found != entries_.end()) found->second.probed = {};
}

void NeighbourShadow::note(const Expected<void>& answer) {
  if (answer) return;
  ++refusals_;
  last_refusal_ = answer.error().message;
}

}  // namespace sluice::control::netlink
