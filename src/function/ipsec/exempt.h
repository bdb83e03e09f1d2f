// Traffic of the gateway itself that no policy is asked about, and what of it is IPsec without an SA.
#pragma once

#include <cstdint>

#include "function/ipsec/drop_reasons.h"
#include "ipsec/outer_packet.h"
#include "ipsec/packet_key.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::function {

inline constexpr std::uint16_t ike_port = 500;

// IKE, by which SAs come (RFC 7296), and neighbour discovery, without which nothing leaves: to and from the gateway
// itself. strongSwan and Linux have the same exceptions, by policies of sockets.
inline bool is_exempt(const std::uint8_t* frame, const packet::Metadata& meta) {
  if (meta.protocol == packet::protocol_udp && meta.has_ports) {
    const auto is_ike = [](std::uint16_t port) { return port == ike_port || port == ipsec::nat_traversal_port; };
    return is_ike(meta.source_port) || is_ike(meta.destination_port);
  }
  if (meta.protocol != packet::protocol_icmpv6 || !meta.has_header) return false;
  constexpr std::uint8_t router_solicitation = 133, redirect = 137;
  const std::uint8_t type = frame[meta.transport];
  return type >= router_solicitation && type <= redirect;
}

enum class Asks : std::uint8_t {
  nothing,  // no IP
  exempt,   // is_exempt(), if it is from or to the gateway itself
  policies,
};

// What a frame is to policies, and the key to ask them with, unless it is nothing.
[[gnu::noinline]] inline Asks look_at_odd(const std::uint8_t* frame, std::uint32_t length, ipsec::PacketKey& key) {
  packet::Metadata meta;
  packet::read_frame_metadata(frame, 0, length, packet::Depth::transport, meta);
  if (meta.family == 0) return Asks::nothing;
  ipsec::write_packet_key(key, frame, meta);
  return is_exempt(frame, meta) ? Asks::exempt : Asks::policies;
}
// Of a plain frame only what is asked for is read.
[[gnu::always_inline]] inline Asks look_at_packet(const std::uint8_t* frame, std::uint32_t length,
                                                  ipsec::PacketKey& key) {
  packet::Metadata meta;
  if (!packet::read_plain(frame, length, meta)) [[unlikely]]
    return look_at_odd(frame, length, key);
  ipsec::write_packet_key(key, frame, meta);
  return is_exempt(frame, meta) ? Asks::exempt : Asks::policies;
}

// Of a frame to the gateway itself that no SA has taken: ESP and AH are nobody's.
inline packet::Reason why_not_own(const std::uint8_t* frame, std::uint32_t length) {
  ipsec::OuterView outer;
  switch (ipsec::find_outer(frame, length, outer)) {
    case ipsec::OuterKind::ipsec:
      return ipsec_no_sa_in;
    case ipsec::OuterKind::cut:
      return ipsec_malformed;
    case ipsec::OuterKind::fragment:
      return outer.in_udp ? packet::no_reason : ipsec_fragment;
    default:
      return packet::no_reason;
  }
}

}  // namespace sluice::function
