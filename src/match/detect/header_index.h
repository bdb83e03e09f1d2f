// Rules that nothing in a payload leads to, by what a packet's protocol, ports and addresses say: which of them are to
// be tried. Without it each of some hundred such rules, and of thousands of lists of addresses, would be tried for each
// packet.
//
// Rules that ask for another IP protocol, for other TCP flags, or for another first byte of a UDP payload, are
// left out. A rule that names few addresses (a 256th of all at most), which few other rules name, is found by these;
// else by the side whose ports it narrows down most; those that take any ports are always found, of their protocol.
// What is found need not hold: who asks confirms it.
//
// Immutable once made; any thread. Cost of collect(): some ns, two bits of tables of 8 KiB that ports mostly decide by,
// and twice that of address_index.h. Memory: 0.6 MB, when there are rules with ports, and that of the addresses.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "match/confirm/packet_facts.h"
#include "match/detect/address_index.h"
#include "match/detect/header_gate.h"
#include "match/detect/traffic_classes.h"
#include "match/rules/rule.h"
#include "packet/headers.h"

namespace sluice::match {

class HeaderIndex {
 public:
  struct Entry {
    std::uint32_t rank;  // what is reported of the rule
    const Rule* rule;
  };
  HeaderIndex() = default;
  HeaderIndex(const std::vector<Entry>& entries, const TrafficClasses& classes);

  bool is_empty() const { return is_empty_; }
  // Calls found(rank) for each rule whose protocol and ports may match; maybe twice for one.
  template <typename Found>
  void collect(const PacketFacts& packet, const Found& found) const {
    const Kind& kind = kinds_[kind_of(packet)];
    if (kind.split.empty()) {
      for (const std::uint32_t rank : kind.always) found(rank);
    } else {
      collect_split(kind, split_of(packet), found);
    }
    if (packet.has_ports) collect_ports(kind, packet.source_port, packet.destination_port, found);
    by_source_.collect(packet.source.bytes.data(), packet.family, found);
    by_destination_.collect(packet.destination.bytes.data(), packet.family, found);
  }
  // The same, of TCP or UDP with a whole header.
  template <typename Found>
  void collect(const PlainFacts& packet, const Found& found) const {
    const Kind& kind = kinds_[packet.protocol == packet::protocol_tcp ? tcp : udp];
    collect_split(kind, packet.protocol == packet::protocol_tcp ? packet.tcp_flags : packet.first_byte, found);
    collect_ports(kind, packet.source_port, packet.destination_port, found);
    by_source_.collect(packet.source, packet.family, found);
    by_destination_.collect(packet.destination, packet.family, found);
  }

 private:
  // Rules by ranges of ports between which nothing changes.
  struct Side {
    std::array<std::uint64_t, 1024> some{};  // a bit for each port: it has a list
    std::vector<std::uint16_t> list_of;      // by port; empty: no lists
    std::vector<std::vector<std::uint32_t>> lists;
  };
  enum : unsigned { tcp, udp, icmp, other };
  static bool has(const Side& side, std::uint16_t port) { return (side.some[port / 64] >> port % 64 & 1) != 0; }
  struct Kind {
    std::vector<std::uint32_t> always;              // whatever the ports
    std::vector<std::vector<std::uint32_t>> split;  // of TCP and UDP, instead: by split_of()
    std::bitset<257> some;                          // by split_of(): there are any
    Side destination, source;
  };
  struct Narrowed {
    std::uint32_t rank;
    const PortSet* ports;
  };
  template <typename Found>
  static void collect_split(const Kind& kind, unsigned at, const Found& found) {
    if (!kind.some[at]) return;
    for (const std::uint32_t rank : kind.split[at]) found(rank);
  }
  template <typename Found>
  static void collect_ports(const Kind& kind, std::uint16_t source, std::uint16_t destination, const Found& found) {
    for (const auto& [side, port] : {std::pair(&kind.destination, destination), std::pair(&kind.source, source)}) {
      if (!has(*side, port)) continue;
      for (const std::uint32_t rank : side->lists[side->list_of[port]]) found(rank);
    }
  }
  std::vector<Entry> enter_by_addresses(const std::vector<Entry>& entries);
  static bool may_be_of(const Rule& rule, unsigned kind);
  // The header's flags of TCP; else the first byte of the payload, 256 if there is none.
  static unsigned split_of(const PacketFacts& packet) {
    if (packet.has_tcp) return packet.tcp_flags;
    return packet.payload.empty() ? 256 : static_cast<std::uint8_t>(packet.payload.front());
  }
  static void split(const std::vector<Entry>& always, unsigned kind_number, Kind& kind);
  static unsigned kind_of(const PacketFacts& packet);
  static Side side_of(const std::vector<Narrowed>& rules);

  std::array<Kind, 4> kinds_;  // TCP, UDP, ICMP, the rest
  AddressIndex by_source_, by_destination_;
  bool is_empty_ = true;
};

}  // namespace sluice::match
