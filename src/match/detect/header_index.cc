#include "match/detect/header_index.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "match/automaton/pattern.h"
#include "match/confirm/header_match.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

bool flags_fit(const Rule& rule, const PacketFacts& packet) {
  return std::ranges::all_of(rule.bits, [&](const BitCheck& check) {
    return check.field != BitCheck::Field::tcp_flags || holds(check, packet);
  });
}

// Whether the rule's contents that lie at the very beginning leave payloads with this first byte, 256: empty ones.
bool may_begin_with(const Rule& rule, unsigned first) {
  return std::ranges::all_of(rule.checks, [&](const Check& check) {
    const auto* const content = std::get_if<Content>(&check);
    if (content == nullptr || content->buffer != Buffer::payload || content->negated) return true;
    if (first == 256) return false;
    const Placement& place = content->place;
    const auto constant = [](const Operand& operand) { return operand.variable < 0; };
    const bool at_begin = !place.relative && place.has_end && constant(place.start) && constant(place.length) &&
                          place.start.value == 0 &&
                          place.length.value == static_cast<std::int64_t>(content->bytes.size());
    const auto byte = static_cast<std::uint8_t>(content->bytes.front());
    return !at_begin || (content->nocase ? fold(byte) == fold(static_cast<std::uint8_t>(first)) : byte == first);
  });
}

// A set of few addresses that few rules name: not the network that all of them protect.
class Narrow {
 public:
  explicit Narrow(const std::vector<HeaderIndex::Entry>& entries) {
    for (const HeaderIndex::Entry& entry : entries) {
      for (const Endpoint* const end : {&entry.rule->source, &entry.rule->destination}) {
        if (!end->addresses.is_any()) ++uses_[key_of(end->addresses)];
      }
    }
  }
  // Of the rule's ends the one that is the narrower; null: none is.
  const Endpoint* end_of(const Rule& rule) const {
    const Endpoint* narrowest = nullptr;
    double least = most_share;
    for (const Endpoint* const end : {&rule.source, &rule.destination}) {
      if (end->addresses.is_any() || uses_.at(key_of(end->addresses)) > most_uses) continue;
      const double share = end->addresses.share();
      if (share > least) continue;
      least = share;
      narrowest = end;
    }
    return narrowest;
  }

 private:
  static constexpr double most_share = 0x1p-8;
  static constexpr unsigned most_uses = 32;
  using Key = std::pair<std::size_t, packet::IpAddress>;  // ranges, and the first address: enough to count by
  static Key key_of(const AddressSet& addresses) {
    const auto ranges = addresses.ranges();
    return {ranges.size(), ranges.empty() ? packet::IpAddress() : ranges.front().first};
  }
  std::map<Key, unsigned> uses_;
};

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

void HeaderIndex::split(const std::vector<Entry>& always, unsigned kind_number, Kind& kind) {
  kind.split.resize(257);
  PacketFacts packet;
  packet.family = 4;
  packet.has_tcp = kind_number == tcp;
  for (unsigned at = 0; at < kind.split.size(); ++at) {
    packet.tcp_flags = static_cast<std::uint8_t>(at);
    for (const Entry& entry : always) {
      const bool fits = packet.has_tcp ? flags_fit(*entry.rule, packet) : may_begin_with(*entry.rule, at);
      if (fits) kind.split[at].push_back(entry.rank);
    }
    kind.some[at] = !kind.split[at].empty();
  }
}

// Those that are found by their addresses; the others are given back.
std::vector<HeaderIndex::Entry> HeaderIndex::enter_by_addresses(const std::vector<Entry>& entries) {
  const Narrow narrow(entries);
  std::vector<AddressIndex::Entry> sources, destinations;
  std::map<std::uint32_t, const Rule*> entered;
  std::vector<Entry> others;
  for (const Entry& entry : entries) {
    const Endpoint* const end = narrow.end_of(*entry.rule);
    if (end == nullptr) {
      others.push_back(entry);
      continue;
    }
    entered.emplace(entry.rank, entry.rule);
    const bool is_source = end == &entry.rule->source;
    if (is_source || entry.rule->both_ways) sources.push_back({entry.rank, &end->addresses});
    if (!is_source || entry.rule->both_ways) destinations.push_back({entry.rank, &end->addresses});
  }
  by_source_ = AddressIndex(std::move(sources));
  by_destination_ = AddressIndex(std::move(destinations));
  for (const AddressIndex* const index : {&by_source_, &by_destination_}) {
    for (const std::uint32_t rank : index->left_out()) {
      const auto left = entered.extract(rank);
      if (!left.empty()) others.push_back({rank, left.mapped()});
    }
  }
  return others;
}

HeaderIndex::HeaderIndex(const std::vector<Entry>& all, const TrafficClasses& classes) : is_empty_(all.empty()) {
  const std::vector<Entry> entries = enter_by_addresses(all);
  for (unsigned kind = 0; kind < kinds_.size(); ++kind) {
    const ClassMask mask = kind == tcp    ? TrafficClasses::tcp_classes
                           : kind == udp  ? TrafficClasses::udp_classes
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
      const bool by_destination = rule.destination.ports.size() <= rule.source.ports.size();
      const PortSet* const ports = by_destination ? &rule.destination.ports : &rule.source.ports;
      if (by_destination || rule.both_ways) destination.push_back({entry.rank, ports});
      if (!by_destination || rule.both_ways) source.push_back({entry.rank, ports});
    }
    if (kind == tcp || kind == udp) split(always, kind, kinds_[kind]);
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
