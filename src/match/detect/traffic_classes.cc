#include "match/detect/traffic_classes.h"

#include <algorithm>

#include "packet/headers.h"

namespace sluice::match {
namespace {

bool may_be_tcp(Protocol protocol) {
  switch (protocol) {
    case Protocol::udp:
    case Protocol::icmp:
    case Protocol::icmpv4:
    case Protocol::icmpv6:
    case Protocol::sctp:
      return false;
    default:
      return true;
  }
}

bool may_be_udp(Protocol protocol) {
  switch (protocol) {
    case Protocol::ip:
    case Protocol::ipv4:
    case Protocol::ipv6:
    case Protocol::udp:
      return true;
    default:
      return false;
  }
}

bool may_be_icmp(Protocol protocol) {
  return protocol == Protocol::ip || (protocol >= Protocol::ipv4 && protocol <= Protocol::ipv6) ||
         (protocol >= Protocol::icmp && protocol <= Protocol::icmpv6);
}

bool may_be_other(Protocol protocol) {
  return protocol == Protocol::ip || protocol == Protocol::ipv4 || protocol == Protocol::ipv6 ||
         protocol == Protocol::sctp || may_be_tcp(protocol);  // a fragment has no ports to tell it by
}

// The port sets that rules name, the one of the most rules first; not "any", nor sets of most ports.
std::vector<PortSet> by_use(std::span<const Rule> rules) {
  std::vector<std::pair<PortSet, unsigned>> uses;
  const auto count = [&](const PortSet& ports) {
    std::size_t size = 0;
    for (const PortRange& range : ports.ranges()) size += range.last - range.first + std::size_t{1};
    if (size > 4096) return;
    const auto known = std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return use.first == ports; });
    if (known == uses.end()) {
      uses.emplace_back(ports, 1);
    } else {
      ++known->second;
    }
  };
  for (const Rule& rule : rules) {
    if (!may_be_tcp(rule.protocol)) continue;
    count(rule.source.ports);
    count(rule.destination.ports);
  }
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<PortSet> sets;
  for (auto& use : uses) sets.push_back(std::move(use.first));
  return sets;
}

}  // namespace

TrafficClasses::TrafficClasses(std::span<const Rule> rules) : group_of_(65536), groups_(1) {
  PortSet grouped;
  for (const PortSet& set : by_use(rules)) {
    if (groups_.size() > most_groups) break;
    const PortSet fresh = set.intersection(grouped.complement());
    if (fresh.empty()) continue;
    for (const PortRange& range : fresh.ranges()) {
      std::fill(group_of_.begin() + range.first, group_of_.begin() + range.last + 1,
                static_cast<std::uint8_t>(groups_.size()));
    }
    groups_.push_back(fresh);
    grouped.add(fresh);
  }
  groups_[0] = grouped.complement();
}

unsigned TrafficClasses::class_of(std::uint8_t protocol, std::uint16_t source_port, std::uint16_t destination_port,
                                  bool has_ports) const {
  if (protocol == packet::protocol_tcp && has_ports) {
    const unsigned from = group_of_[source_port], to = group_of_[destination_port];
    if (from != 0 && to != 0) return both_sides;
    return to != 0 ? to_group + to - 1 : from != 0 ? from_group + from - 1 : 0;
  }
  if (protocol == packet::protocol_udp && has_ports) return udp;
  return protocol == packet::protocol_icmp || protocol == packet::protocol_icmpv6 ? icmp : other;
}

bool TrafficClasses::may_match(const Rule& rule, const PortSet& source, const PortSet& destination) const {
  const auto meets = [](const PortSet& a, const PortSet& b) { return !a.intersection(b).empty(); };
  if (meets(rule.source.ports, source) && meets(rule.destination.ports, destination)) return true;
  return rule.both_ways && meets(rule.source.ports, destination) && meets(rule.destination.ports, source);
}

ClassMask TrafficClasses::classes_of(const Rule& rule) const {
  ClassMask classes = 0;
  if (may_be_tcp(rule.protocol)) {
    if (may_match(rule, groups_[0], groups_[0])) classes |= 1;
    for (unsigned g = 1; g < groups_.size(); ++g) {
      if (may_match(rule, groups_[0], groups_[g])) classes |= ClassMask{1} << (to_group + g - 1);
      if (may_match(rule, groups_[g], groups_[0])) classes |= ClassMask{1} << (from_group + g - 1);
    }
    classes |= ClassMask{1} << both_sides;
  }
  if (may_be_udp(rule.protocol)) classes |= ClassMask{1} << udp;
  if (may_be_icmp(rule.protocol)) classes |= ClassMask{1} << icmp;
  if (may_be_other(rule.protocol)) classes |= ClassMask{1} << other;
  return classes;
}

}  // namespace sluice::match
