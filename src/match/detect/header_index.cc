#include "match/detect/header_index.h"

#include <algorithm>
#include <set>

#include "match/confirm/header_match.h"
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

// Whether the rule's checks of the IP protocol leave any of the kind.
bool HeaderIndex::may_be_of(const Rule& rule, unsigned kind) {
  const auto is_about_protocol = [](const NumberCheck& check) { return check.field == HeaderField::ip_proto; };
  const auto admits = [&](std::uint8_t protocol) {
    PacketFacts packet;
    packet.family = 4;
    packet.protocol = protocol;
    return std::ranges::all_of(rule.numbers,
                               [&](const auto& check) { return !is_about_protocol(check) || holds(check, packet); });
  };
  switch (kind) {
    case tcp:
      return admits(packet::protocol_tcp);
    case udp:
      return admits(packet::protocol_udp);
    case icmp:
      return admits(packet::protocol_icmp) || admits(packet::protocol_icmpv6);
    default:
      return true;
  }
}

void HeaderIndex::split_by_flags(const std::vector<Entry>& always, Kind& kind) {
  kind.by_flags.resize(256);
  PacketFacts packet;
  packet.family = 4;
  packet.has_tcp = true;
  for (unsigned flags = 0; flags < kind.by_flags.size(); ++flags) {
    packet.tcp_flags = static_cast<std::uint8_t>(flags);
    for (const Entry& entry : always) {
      const bool fit = std::ranges::all_of(entry.rule->bits, [&](const BitCheck& check) {
        return check.field != BitCheck::Field::tcp_flags || holds(check, packet);
      });
      if (fit) kind.by_flags[flags].push_back(entry.rank);
    }
  }
}

HeaderIndex::HeaderIndex(const std::vector<Entry>& entries, const TrafficClasses& classes) {
  for (unsigned kind = 0; kind < kinds_.size(); ++kind) {
    const ClassMask mask = kind == tcp    ? TrafficClasses::tcp_classes
                           : kind == udp  ? TrafficClasses::udp_class
                           : kind == icmp ? TrafficClasses::icmp_class
                                          : TrafficClasses::other_class;
    std::vector<Narrowed> destination, source;
    std::vector<Entry> always;
    for (const Entry& entry : entries) {
      const Rule& rule = *entry.rule;
      if ((classes.classes_of(rule) & mask) == 0 || !may_be_of(rule, kind)) continue;
      const bool any = rule.source.ports.is_any() && rule.destination.ports.is_any();
      // Without ports only rules that take any can hold, and of ICMP none is narrowed down by ports.
      if (any || kind >= icmp) {
        always.push_back(entry);
        continue;
      }
      const bool by_destination = size_of(rule.destination.ports) <= size_of(rule.source.ports);
      const PortSet* const ports = by_destination ? &rule.destination.ports : &rule.source.ports;
      if (by_destination || rule.both_ways) destination.push_back({entry.rank, ports});
      if (!by_destination || rule.both_ways) source.push_back({entry.rank, ports});
    }
    if (kind == tcp) split_by_flags(always, kinds_[kind]);
    for (const Entry& entry : always) kinds_[kind].always.push_back(entry.rank);
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
