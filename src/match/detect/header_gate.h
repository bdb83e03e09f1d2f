// Whether a rule may hold for a packet, by what is compared in a few nanoseconds: protocol, ports, TCP flags, ICMP's
// type and the payload's size. The matcher reports what it finds by classes of traffic, 32 for the ports of thousands
// of rules, and a pattern of two bytes is in most payloads. Most rules that it leads to end here, and with them most
// packets, before anything of flows and buffers is put together for them.
//
// A necessary condition: what does not pass does not hold. What passes need not hold (confirm/header_match.h).
//
// Immutable once made; any thread. Memory: 40 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "match/confirm/header_match.h"
#include "match/confirm/packet_facts.h"
#include "match/rules/rule.h"

namespace sluice::match {

// What is compared, of a packet of TCP or UDP with a whole header.
struct PlainFacts {
  std::uint8_t protocol = 0, tcp_flags = 0;
  std::uint8_t family = 0;                                       // 4 or 6, of the addresses; 0: they are not known
  const std::uint8_t *source = nullptr, *destination = nullptr;  // addresses, in network order
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint16_t first_byte = 256;  // of the payload; 256: there is none
  std::size_t payload = 0;         // bytes, all of which are inspected
};

class HeaderGate {
 public:
  static constexpr std::size_t unknown = ~std::size_t{0};

  // `rule` is asked for its ports as long as this is used.
  explicit HeaderGate(const Rule& rule);

  // `inspected`: how many bytes Buffer::payload has, of the packet or of a stream.
  bool passes(const PacketFacts& packet, std::size_t inspected) const {
    if (transport_ != 0 && packet.protocol != transport_) return false;
    if ((packet.tcp_flags & flags_asked_) != flags_set_) return false;
    if (by_type_ && (!packet.has_icmp || !type_.holds(packet.icmp_type))) return false;
    if (!packet_.holds(packet.payload.size())) return false;
    if (inspected != unknown && !inspected_.holds(inspected)) return false;
    return !by_ports_ || (packet.has_ports && passes_ports(packet.source_port, packet.destination_port));
  }
  bool passes(const PlainFacts& packet) const {
    if (transport_ != 0 && packet.protocol != transport_) return false;
    if ((packet.tcp_flags & flags_asked_) != flags_set_ || by_type_) return false;
    if (!packet_.holds(packet.payload) || !inspected_.holds(packet.payload)) return false;
    return !by_ports_ || passes_ports(packet.source_port, packet.destination_port);
  }

  // What the rule says of the flow, but for its application and bytes.
  bool passes(const FlowFacts& flow) const {
    if (direction_ != FlowDirection::any && (!flow.known || flow.direction != direction_)) return false;
    const bool established = flow.known && flow.established;
    return state_ == FlowState::established ? established : state_ != FlowState::not_established || !established;
  }

  // Other packets of the same flow and direction may pass.
  bool passes_ends(const PacketFacts& packet) const {
    if (transport_ != 0 && packet.protocol != transport_) return false;
    return !by_ports_ || (packet.has_ports && passes_ports(packet.source_port, packet.destination_port));
  }
  // With more bytes of Buffer::payload it may pass.
  bool too_short(std::size_t inspected) const { return inspected < inspected_.first; }

 private:
  static constexpr std::uint16_t most = 65535;  // of sizes: or more
  struct Range {
    std::uint16_t first = 0, last = most;
    bool holds(std::size_t value) const {
      const std::size_t known = std::min<std::size_t>(value, most);
      return known >= first && known <= last;
    }
    void narrow(std::int64_t from, std::int64_t to);
  };
  bool passes_ports(std::uint16_t source, std::uint16_t destination) const {
    return source_.holds(source) && destination_.holds(destination) &&
           (ranges_say_all_ || passes_port_sets(source, destination));
  }
  bool passes_port_sets(std::uint16_t source, std::uint16_t destination) const;
  void take_ports();
  void take(const NumberCheck& check);
  void take(const BitCheck& check);
  void take(const Check& check);

  const Rule* rule_;
  Range type_;                  // of ICMP
  Range packet_, inspected_;    // bytes
  Range source_, destination_;  // ports, from the least to the greatest that the rule names
  std::uint8_t transport_ = 0;  // 0: any
  std::uint8_t flags_asked_ = 0, flags_set_ = 0;
  bool by_type_ = false, by_ports_ = false, ranges_say_all_ = true;
  FlowDirection direction_;
  FlowState state_;
};

}  // namespace sluice::match
