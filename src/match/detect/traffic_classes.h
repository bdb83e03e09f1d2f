// Which rules matter for a packet by its protocol and ports alone: up to 32 classes of traffic, so that a matcher
// reports only what the packet's own rules look for (Snort's and Suricata's port groups, as a bit each).
//
// The TCP ports that rules name most often form up to 12 groups. A TCP packet's class follows from the group of its
// destination port and that of its source port: one for each group on either side, one for ports of no group, one for
// packets with both. A packet with a port that some rule names, but of no group, is of a class of its own, and so are
// UDP packets with such a port. What looks for two bytes on port 5632 shall not be reported of everybody's packets.
// Further classes: other UDP, ICMP, the rest.
//
// Immutable once made; any thread. class_of(): a few ns. Memory: 64 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "match/automaton/pattern.h"
#include "match/confirm/packet_facts.h"
#include "match/rules/rule.h"

namespace sluice::match {

class TrafficClasses {
 public:
  explicit TrafficClasses(std::span<const Rule> rules);

  unsigned class_of(const PacketFacts& packet) const {
    return class_of(packet.protocol, packet.source_port, packet.destination_port, packet.has_ports);
  }
  unsigned class_of(std::uint8_t protocol, std::uint16_t source_port, std::uint16_t destination_port,
                    bool has_ports) const;
  // The classes of which some packet may satisfy the rule's header.
  ClassMask classes_of(const Rule& rule) const;

 private:
  static constexpr unsigned most_groups = 12;
  static constexpr unsigned to_group = 1, from_group = to_group + most_groups, both_sides = from_group + most_groups;
  static constexpr unsigned tcp_named = both_sides + 1, udp = tcp_named + 1, udp_named = udp + 1, icmp = udp_named + 1,
                            other = icmp + 1;
  static_assert(other < max_classes);

 public:
  static constexpr ClassMask icmp_class = ClassMask{1} << icmp, other_class = ClassMask{1} << other,
                             udp_classes = ClassMask{1} << udp | ClassMask{1} << udp_named,
                             tcp_classes = (ClassMask{1} << udp) - 1,
                             named_classes = ClassMask{1} << tcp_named | ClassMask{1} << udp_named;

 private:
  bool may_match(const Rule& rule, const PortSet& source, const PortSet& destination) const;

  static constexpr std::uint8_t group_bits = 0x3f, is_tcp_named = 0x40, is_udp_named = 0x80;
  std::vector<std::uint8_t> group_of_;  // by port, with those bits; 0: none
  std::vector<PortSet> groups_;         // [0]: the ports of no group that no rule names
  PortSet grouped_, tcp_named_, udp_named_, udp_plain_;
};

}  // namespace sluice::match
