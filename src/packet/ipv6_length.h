// How long an IPv6 packet is to those who get it.
//
// Thread-safety: any thread. Cost: a ns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packet/headers.h"

namespace sluice::packet {

// In bytes, this header included; `in_frame`: those that are there, from the header on, which may be fewer. A payload
// length of 0 in front of hop-by-hop options stands for a jumbogram (RFC 2675), and means all of the frame: Linux does
// not ask whether the option that says so is among them. (With it hosts refuse the packet, which is longer than any
// frame or no jumbogram.)
inline std::uint32_t ipv6_length(const Ipv6Header& ip, std::size_t in_frame) {
  if (ip.payload_length == 0 && ip.next_header == protocol_hop_by_hop) return static_cast<std::uint32_t>(in_frame);
  return static_cast<std::uint32_t>(sizeof(Ipv6Header)) + be16(ip.payload_length);
}

}  // namespace sluice::packet
