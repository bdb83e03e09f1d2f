#include "control/netlink/ingress_shadow.h"

#include <linux/if.h>
#include <linux/if_link.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace sluice::control::netlink {
namespace {

constexpr std::uint32_t routing_modes = MACVLAN_MODE_PRIVATE | MACVLAN_MODE_VEPA | MACVLAN_MODE_BRIDGE;

// Of net.ipv4.conf; the kernel reports changes of this one by no message.
bool logs_martians(const std::string& interface) {
  std::ifstream file("/proc/sys/net/ipv4/conf/" + interface + "/log_martians");
  int value = 0;
  return file >> value && value != 0;
}

function::ReversePath reverse_path_of(std::uint32_t rp_filter) {
  return rp_filter == 0   ? function::ReversePath::off
         : rp_filter == 1 ? function::ReversePath::strict
                          : function::ReversePath::loose;
}

}  // namespace

void IngressShadow::apply(const LinkMessage& message) {
  const Link now{message.name,  message.kind,         (message.flags & IFF_UP) != 0, message.master,
                 message.lower, message.macvlan_mode, message.promiscuity,           message.mac};
  Link& link = links_[message.ifindex];
  changed_ |= link != now;
  link = now;
}

void IngressShadow::forget(int ifindex) {
  changed_ |= links_.erase(ifindex) != 0;
  std::erase_if(link_addresses_, [ifindex](const LinkAddress& one) { return one.ifindex == ifindex; });
  settings_.erase({4, ifindex});
  settings_.erase({6, ifindex});
}

void IngressShadow::apply(const LinkAddressMessage& message) {
  const auto known = std::ranges::find_if(link_addresses_, [&](const LinkAddress& one) {
    return one.ifindex == message.ifindex && one.mac == message.mac;
  });
  if (message.removed) {
    if (known == link_addresses_.end()) return;
    link_addresses_.erase(known);
  } else if (known != link_addresses_.end()) {
    known->generation = generation_;
    return;
  } else {
    link_addresses_.push_back({message.ifindex, message.mac, generation_});
  }
  changed_ = true;
}

void IngressShadow::end_link_addresses() {
  changed_ |=
      std::erase_if(link_addresses_, [this](const LinkAddress& one) { return one.generation != generation_; }) != 0;
}

void IngressShadow::apply(const InterfaceSettingsMessage& message) {
  if (message.removed) {
    changed_ |= settings_.erase({message.family, message.ifindex}) != 0;
    return;
  }
  Settings& known = settings_[{message.family, message.ifindex}];
  const Settings now{message.forwarding.value_or(known.forwarding), message.rp_filter.value_or(known.rp_filter)};
  changed_ |= known != now;
  known = now;
}

IngressShadow::Settings IngressShadow::settings(int family, int ifindex) const {
  const auto found = settings_.find({family, ifindex});
  return found == settings_.end() ? Settings{} : found->second;
}

function::Ingress IngressShadow::ingress_of(int ifindex, const Link& link) const {
  function::Ingress ingress;
  const std::uint32_t rp_filter =
      std::max(settings(4, InterfaceSettingsMessage::all).rp_filter, settings(4, ifindex).rp_filter);
  ingress.reverse_path = reverse_path_of(rp_filter);
  ingress.has_ipv4 = addresses_.has(ifindex, 4);
  if (ingress.reverse_path != function::ReversePath::off) {
    ingress.logs_martians = logs_martians("all") || logs_martians(link.name);
  }
  if (ports_.port(ifindex)) return ingress;  // where forwarding is off, that is said: kernel_forwarding.h
  ingress.is_twin = false;
  const bool takes = link.kind == "macvlan" && (link.macvlan_mode & routing_modes) != 0 && link.up && link.master == 0;
  ingress.routes_ipv4 = takes && settings(4, ifindex).forwarding != 0;
  ingress.routes_ipv6 =
      takes && settings(6, InterfaceSettingsMessage::all).forwarding != 0 && addresses_.has(ifindex, 6);
  return ingress;
}

function::PortIngress IngressShadow::ingress_of_port(int twin, const Link& link) const {
  function::PortIngress port;
  port.mac = link.mac;
  port.twin = ingress_of(twin, link);
  port.everything = link.master != 0;
  for (const auto& [ifindex, upper] : links_) {
    if (upper.lower != twin) continue;
    const bool is_macvlan = upper.kind == "macvlan" || upper.kind == "macvtap";
    port.everything |= is_macvlan && (upper.macvlan_mode & routing_modes) == 0;
    if (upper.mac && upper.mac != link.mac) port.more.emplace_back(*upper.mac, ingress_of(ifindex, upper));
  }
  const auto is_known = [&](const packet::MacAddress& mac) {
    return mac == link.mac || std::ranges::any_of(port.more, [&](const auto& entry) { return entry.first == mac; });
  };
  bool filters = false;
  for (const LinkAddress& one : link_addresses_) {
    if (one.ifindex != twin) continue;
    filters = true;
    if (!is_known(one.mac)) {
      port.more.emplace_back(one.mac, function::Ingress{.routes_ipv4 = false, .routes_ipv6 = false, .is_twin = false});
    }
  }
  // A TAP cannot filter addresses: with some to take it is promiscuous for that once.
  port.other_hosts = link.promiscuity > (filters ? 1U : 0U);
  std::ranges::sort(port.more, {}, [](const auto& entry) { return entry.first.word(); });
  return port;
}

void IngressShadow::settle() {
  if (!std::exchange(changed_, false)) return;
  std::map<function::PortIndex, function::PortIngress> now;
  for (const auto& [ifindex, link] : links_) {
    if (const auto port = ports_.port(ifindex)) now[*port] = ingress_of_port(ifindex, link);
  }
  for (const auto& [port, ingress] : announced_) {
    if (!now.contains(port)) plane_.set_ingress(port, {});
  }
  for (const auto& [port, ingress] : now) {
    const auto before = announced_.find(port);
    if (before == announced_.end() || before->second != ingress) plane_.set_ingress(port, ingress);
  }
  announced_ = std::move(now);
}

}  // namespace sluice::control::netlink
