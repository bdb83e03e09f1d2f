#include "match/detect/header_index.h"

#include <algorithm>
#include <set>

#include "packet/headers.h"

namespace sluice::match {
namespace {

enum : unsigned { tcp, udp, icmp, other };

std::size_t size_of(const PortSet& ports) {
  std::size_t size = 0;
  for (const PortRange& range : ports.ranges()) size += range.last - range.first + std::size_t{1};
  return size;
}

}  // namespace

unsigned HeaderIndex::kind_of(const PacketFacts& packet) {
  switch (packet.protocol) {
    case packet::protocol_tcp:
      return packet.has_ports ? tcp : other;
    case packet::protocol_udp:
      return packet.has_ports ? udp : other;
    case packet::protocol_icmp:
    case packet::protocol_icmpv6:
      return icmp;
    default:
      return other;
  }
}

HeaderIndex::HeaderIndex(const std::vector<Entry>& entries, const TrafficClasses& classes) {
  for (unsigned kind = 0; kind < kinds_.size(); ++kind) {
    const ClassMask mask = kind == tcp    ? TrafficClasses::tcp_classes
                           : kind == udp  ? TrafficClasses::udp_class
                           : kind == icmp ? TrafficClasses::icmp_class
                                          : TrafficClasses::other_class;
    std::vector<Narrowed> destination, source;
    for (const Entry& entry : entries) {
      const Rule& rule = *entry.rule;
      if ((classes.classes_of(rule) & mask) == 0) continue;
      const bool any = rule.source.ports.is_any() && rule.destination.ports.is_any();
      // Without ports only rules that take any can hold, and of ICMP none is narrowed down by ports.
      if (any || kind >= icmp) {
        kinds_[kind].always.push_back(entry.rank);
        continue;
      }
      const bool by_destination = size_of(rule.destination.ports) <= size_of(rule.source.ports);
      const PortSet* const ports = by_destination ? &rule.destination.ports : &rule.source.ports;
      if (by_destination || rule.both_ways) destination.push_back({entry.rank, ports});
      if (!by_destination || rule.both_ways) source.push_back({entry.rank, ports});
    }
    kinds_[kind].destination = side_of(destination);
    kinds_[kind].source = side_of(source);
  }
}

HeaderIndex::Side HeaderIndex::side_of(const std::vector<Narrowed>& rules) {
  Side side;
  if (rules.empty()) return side;
  std::set<std::uint32_t> begins{0};
  for (const Narrowed& rule : rules) {
    for (const PortRange& range : rule.ports->ranges()) {
      begins.insert(range.first);
      begins.insert(range.last + std::uint32_t{1});
    }
  }
  begins.insert(65536);
  side.list_of.resize(65536);
  for (auto at = begins.begin(); *at < 65536; ++at) {
    std::vector<std::uint32_t> list;
    for (const Narrowed& rule : rules) {
      if (rule.ports->contains(static_cast<std::uint16_t>(*at))) list.push_back(rule.rank);
    }
    const std::uint32_t end = *std::next(at);
    for (std::uint32_t port = *at; port < end; ++port) {
      side.list_of[port] = static_cast<std::uint16_t>(side.lists.size());
      if (!list.empty()) side.some[port / 64] |= std::uint64_t{1} << port % 64;
    }
    side.lists.push_back(std::move(list));
  }
  return side;
}

}  // namespace sluice::match
