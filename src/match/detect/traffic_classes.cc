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

// SCTP, whatever its ports, other protocols, and TCP and UDP without ports: fragments, and what is cut. Those are of no
// rule that narrows ports down (admits_ports()).
bool may_be_other(const Rule& rule) {
  switch (rule.protocol) {
    case Protocol::ip:
    case Protocol::ipv4:
    case Protocol::ipv6:
    case Protocol::sctp:
      return true;
    default:
      return (may_be_tcp(rule.protocol) || may_be_udp(rule.protocol)) && rule.source.ports.is_any() &&
             rule.destination.ports.is_any();
  }
}

constexpr std::size_t most_of_group = 4096, most_of_named = 256;  // ports

// The sets of up to `most` ports that rules of a transport name, the one of the most rules first.
std::vector<PortSet> by_use(std::span<const Rule> rules, bool (*may_be)(Protocol), std::size_t most) {
  std::vector<std::pair<PortSet, unsigned>> uses;
  const auto count = [&](const PortSet& ports) {
    if (ports.size() > most) return;
    const auto known = std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return use.first == ports; });
    if (known == uses.end()) {
      uses.emplace_back(ports, 1);
    } else {
      ++known->second;
    }
  };
  for (const Rule& rule : rules) {
    if (!may_be(rule.protocol)) continue;
    count(rule.source.ports);
    count(rule.destination.ports);
  }
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<PortSet> sets;
  for (auto& use : uses) sets.push_back(std::move(use.first));
  return sets;
}

PortSet named_by(std::span<const Rule> rules, bool (*may_be)(Protocol)) {
  std::vector<PortRange> ranges;
  for (const PortSet& set : by_use(rules, may_be, most_of_named)) {
    ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
  }
  return PortSet(std::move(ranges));
}

bool meet(const PortSet& a, const PortSet& b) {
  auto one = a.ranges().begin();
  auto two = b.ranges().begin();
  while (one != a.ranges().end() && two != b.ranges().end()) {
    if (one->last < two->first) {
      ++one;
    } else if (two->last < one->first) {
      ++two;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace

TrafficClasses::TrafficClasses(std::span<const Rule> rules) : group_of_(65536), groups_(1) {
  const auto mark = [&](const PortSet& ports, std::uint8_t bits) {
    for (const PortRange& range : ports.ranges()) {
      for (unsigned port = range.first; port <= range.last; ++port) group_of_[port] |= bits;
    }
  };
  for (const PortSet& set : by_use(rules, may_be_tcp, most_of_group)) {
    if (groups_.size() > most_groups) break;
    const PortSet fresh = set.intersection(grouped_.complement());
    if (fresh.empty()) continue;
    mark(fresh, static_cast<std::uint8_t>(groups_.size()));
    groups_.push_back(fresh);
    grouped_.add(fresh);
  }
  tcp_named_ = named_by(rules, may_be_tcp).intersection(grouped_.complement());
  udp_named_ = named_by(rules, may_be_udp);
  mark(tcp_named_, is_tcp_named);
  mark(udp_named_, is_udp_named);
  groups_[0] = grouped_.complement().intersection(tcp_named_.complement());
  udp_plain_ = udp_named_.complement();
}

unsigned TrafficClasses::class_of(std::uint8_t protocol, std::uint16_t source_port, std::uint16_t destination_port,
                                  bool has_ports) const {
  if (!has_ports) return protocol == packet::protocol_icmp || protocol == packet::protocol_icmpv6 ? icmp : other;
  const unsigned either = group_of_[source_port] | group_of_[destination_port];
  if (protocol == packet::protocol_udp) return (either & is_udp_named) != 0 ? udp_named : udp;
  if (protocol != packet::protocol_tcp) return other;
  if ((either & is_tcp_named) != 0) return tcp_named;
  const unsigned from = group_of_[source_port] & group_bits, to = group_of_[destination_port] & group_bits;
  if (from != 0 && to != 0) return both_sides;
  return to != 0 ? to_group + to - 1 : from != 0 ? from_group + from - 1 : 0;
}

bool TrafficClasses::may_match(const Rule& rule, const PortSet& source, const PortSet& destination) const {
  if (meet(rule.source.ports, source) && meet(rule.destination.ports, destination)) return true;
  return rule.both_ways && meet(rule.source.ports, destination) && meet(rule.destination.ports, source);
}

ClassMask TrafficClasses::classes_of(const Rule& rule) const {
  static const PortSet any = PortSet::any();
  ClassMask classes = 0;
  const auto add = [&](unsigned klass, const PortSet& source, const PortSet& destination) {
    if (may_match(rule, source, destination)) classes |= ClassMask{1} << klass;
  };
  if (may_be_tcp(rule.protocol)) {
    add(0, groups_[0], groups_[0]);
    for (unsigned g = 1; g < groups_.size(); ++g) {
      add(to_group + g - 1, groups_[0], groups_[g]);
      add(from_group + g - 1, groups_[g], groups_[0]);
    }
    add(both_sides, grouped_, grouped_);
    add(tcp_named, any, tcp_named_);
    add(tcp_named, tcp_named_, any);
  }
  if (may_be_udp(rule.protocol)) {
    add(udp, udp_plain_, udp_plain_);
    add(udp_named, any, udp_named_);
    add(udp_named, udp_named_, any);
  }
  if (may_be_icmp(rule.protocol)) classes |= ClassMask{1} << icmp;
  if (may_be_other(rule)) classes |= ClassMask{1} << other;
  return classes;
}

}  // namespace sluice::match
