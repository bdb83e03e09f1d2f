// A symmetric hash of a flow: both directions of a conversation give the same value, so that they share a lane.
//
// Over the two addresses, the protocol and, for TCP, UDP, UDP-Lite, SCTP and DCCP (has_ports()), the two ports.
// Fragments are hashed without ports: only the first has them, and all fragments of a datagram must stay together. A
// frame without IP, or with an IP packet that is cut, gives 0. Who sends must not be able to take a packet out of its
// conversation by what receivers skip: what packet/metadata.h goes over counts for nothing. That are VLAN tags, IPv6's
// hop-by-hop, routing and destination options headers, and atomic fragment headers. Other headers, among them AH's, are
// the packet's protocol.
//
// All 32 bits are well mixed: take `hash % n` or `(hash * n) >> 32`. The hash has no key, so that it is the same on
// every machine and in every run; it does not resist a sender who picks addresses to collide.
//
// Thread-safety: any thread. Cost: about 2 ns for IPv4, 3 ns for IPv6; with tags or extension headers some 10 ns and 2
// ns for each header. Multiply-and-fold mixing as in wyhash (Wang Yi).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "packet/headers.h"
#include "packet/metadata.h"
#include "packet/parse.h"

namespace sluice::packet {
namespace detail {

inline std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Order of the two ends must not matter: the smaller goes first.
inline std::uint32_t hash_ends(std::uint64_t a, std::uint64_t b, std::uint8_t protocol) {
  const std::uint64_t low = std::min(a, b) ^ 0x9e3779b97f4a7c15U;
  const std::uint64_t high = std::max(a, b) ^ 0xd1b54a32d192ed03U;
  const std::uint64_t mixed = multiply_fold(low, high) ^ (std::uint64_t{protocol} << 56);
  const std::uint64_t result = multiply_fold(mixed ^ 0xe7037ed1a0b428dbU, 0x8ebc6af09c88c6e3U);
  return static_cast<std::uint32_t>(result ^ (result >> 32));
}

template <typename Word>
inline Word load(const std::uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t ipv6_end(const std::uint8_t* address, std::uint64_t port) {
  return multiply_fold(load<std::uint64_t>(address) ^ 0xa0761d6478bd642fU,
                       load<std::uint64_t>(address + 8) ^ 0x589965cc75374cc3U) +
         port;
}

inline std::uint32_t hash_ipv6(const std::uint8_t* ip, std::uint64_t source_port, std::uint64_t destination_port,
                               std::uint8_t protocol) {
  return hash_ends(ipv6_end(ip + 8, source_port), ipv6_end(ip + 24, destination_port), protocol);
}

[[gnu::cold]] std::uint32_t hash_by_metadata(const std::uint8_t* frame, std::uint32_t length);

}  // namespace detail

// `meta`: of the same frame or packet, to the depth `transport`.
std::uint32_t flow_hash(const std::uint8_t* frame, const Metadata& meta);
// The same. `view`: from parse_frame() of the same frame, which answered no_reason.
inline std::uint32_t flow_hash(const std::uint8_t* data, std::uint32_t length, const FrameView& view) {
  if (view.l3_length == 0) [[unlikely]] {
    return detail::hash_by_metadata(data, length);
  }
  const std::uint8_t* ip = data + view.l3_offset;
  const bool ipv4 = ip[0] >> 4 == 4;
  const std::uint32_t l4 = ipv4 ? (ip[0] & 0x0fU) * 4U : std::uint32_t{sizeof(Ipv6Header)};
  std::uint64_t source_port = 0;
  std::uint64_t destination_port = 0;
  if (!view.fragment && has_ports(view.protocol)) {
    if (l4 + 4 <= view.l3_length) {
      source_port = detail::load<std::uint16_t>(ip + l4);
      destination_port = detail::load<std::uint16_t>(ip + l4 + 2);
    }
  } else if (!ipv4 && is_ipv6_extension(view.protocol)) [[unlikely]] {
    return detail::hash_by_metadata(data, length);
  }
  if (ipv4) {
    const std::uint64_t source = detail::load<std::uint32_t>(ip + 12) | source_port << 32;
    const std::uint64_t destination = detail::load<std::uint32_t>(ip + 16) | destination_port << 32;
    return detail::hash_ends(source, destination, view.protocol);
  }
  return detail::hash_ipv6(ip, source_port, destination_port, view.protocol);
}

}  // namespace sluice::packet
