// The checks that a router makes before it looks up a route: what kind of frame it is, and whether it is well formed.
//
//   FrameView view;
//   if (const Reason reason = parse_frame(data, length, view); reason != no_reason) burst.drop(i, reason);
//   else if (view.kind == FrameKind::host) burst.punt(i);
//   else ...  // view.kind is ipv4 or ipv6: a unicast packet without options, fit for the fast path
//
// Validation follows RFC 1812 sections 5.2.2 (header), 5.3.4 (link-layer broadcast) and 5.3.7 (martian addresses), and
// RFC 8200 section 3 and RFC 4291 section 2 for IPv6. The TTL is reported, not checked: whether it suffices depends on
// whose packet it is. Bytes behind the IP packet (Ethernet padding) are allowed. The frame's destination MAC address is
// not compared with the port's.
//
// Thread-safety: any thread. It reads nothing at or behind data + length. Cost: 2 to 5 ns for unicast IPv4 and IPv6
// without options; other frames take a call to parse.cc. is_plain_ipv4() and is_plain_ipv6() tell only whether a frame
// is of these usual kinds, and make no view.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/reason.h"

namespace sluice::packet {

enum class FrameKind : std::uint8_t {
  ipv4,
  ipv6,
  // Valid, and for the host's kernel, not for the fast path: other ethertypes (ARP, VLAN tags, 802.3 lengths),
  // link-layer or IP multicast and broadcast, link-local addresses, the unspecified address as a source, IPv4 options,
  // IPv6 hop-by-hop options.
  host,
};

struct FrameView {
  FrameKind kind;
  std::uint8_t ttl;         // or hop limit
  std::uint8_t protocol;    // or the next header of the IPv6 header (44 for a fragment)
  std::uint8_t l3_offset;   // offset of the IP header in the frame; without IP: of what follows the Ethernet header
  std::uint16_t l3_length;  // bytes of the IP packet with its header, as the header says; 0: the frame has no IP
  bool fragment;            // a fragment of a datagram, first or later
};

inline const Reason frame_too_short =
    register_reason("frame_too_short", "the frame ends before its Ethernet or IP header does");  // RFC 1812 5.2.2 (1)
inline const Reason bad_ip_version = register_reason(
    "bad_ip_version", "the IP version is not the one of the ethertype");  // RFC 1812 5.2.2 (3), RFC 8200 3
inline const Reason bad_header_length =
    register_reason("bad_header_length", "the IPv4 header length is below 20 bytes");  // RFC 1812 5.2.2 (4)
inline const Reason bad_total_length = register_reason(
    "bad_total_length", "the IP length is longer than the frame or shorter than the header");  // RFC 1812 5.2.2 (5)
inline const Reason bad_checksum =
    register_reason("bad_checksum", "the IPv4 header checksum is wrong");  // RFC 1812 5.2.2 (2)
inline const Reason bad_source = register_reason(
    "bad_source", "the source address is not a unicast address");  // RFC 1812 5.3.7; RFC 4291 2.5.3, 2.7
inline const Reason bad_destination = register_reason(
    "bad_destination", "the destination address must not be on a network");  // RFC 1812 5.3.7; RFC 4291 2.5.2, 2.5.3

namespace detail {

// parse_frame() without the fast case: any frame, all checks, one by one.
[[gnu::cold]] Reason parse_slow(const std::uint8_t* data, std::uint32_t length, FrameView& view);

// Not 0/8, 127/8, 169.254/16 and its neighbours, multicast, class E: what the fast case takes without a closer look.
inline constexpr std::array<bool, 256> ordinary_octet = [] {
  std::array<bool, 256> ordinary{};
  for (unsigned octet = 1; octet < 224; ++octet) {
    ordinary[octet] = octet != 127 && octet != 169;
  }
  return ordinary;
}();
constexpr bool ordinary_ipv4(std::uint8_t first_octet) {
  return ordinary_octet[first_octet];
}

// Not ::/64 (unspecified, loopback), link-local or multicast.
inline bool ordinary_ipv6(const std::uint8_t* address) {
  std::uint64_t upper;
  std::memcpy(&upper, address, sizeof upper);
  return (upper != 0) & (address[0] < 0xfe);
}

// Ethertype, version and IPv4's header length (IPv6's traffic class masked out) stand side by side: one comparison.
[[gnu::always_inline]] inline std::uint32_t type_and_version(const std::uint8_t* data) {
  std::uint32_t word;
  std::memcpy(&word, data + 12, sizeof word);
  return word;
}
static_assert(std::endian::native == std::endian::little, "the words below are in memory order");
inline constexpr std::uint32_t plain_ipv4_mask = 0x00ffffff, plain_ipv4_word = 0x00450008;
inline constexpr std::uint32_t plain_ipv6_mask = 0x00f0ffff, plain_ipv6_word = 0x0060dd86;

}  // namespace detail

// Whether the options of an IPv4 packet have a loose or strict source route (RFC 791 section 3.1). parse_frame() must
// have found its header good. Nothing behind a malformed option is looked at.
[[gnu::cold]] bool has_source_route(const std::uint8_t* packet);

// Whether the frame is IPv4 without options and passes every check of parse_frame() but those of the MAC addresses.
// False also for rare addresses, which need a closer look. All conditions are one branch, because they nearly always
// hold. About 2 ns.
[[gnu::always_inline]] inline bool is_plain_ipv4(const std::uint8_t* data, std::uint32_t length) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  if (length < l3 + sizeof(Ipv4Header) ||
      (detail::type_and_version(data) & detail::plain_ipv4_mask) != detail::plain_ipv4_word) {
    return false;
  }
  const auto& ip = header_at<Ipv4Header>(data, l3);
  // Not shorter than the header, not longer than the frame.
  unsigned fine = be16(ip.total_length) - std::uint32_t{sizeof(Ipv4Header)} <= length - l3 - sizeof(Ipv4Header);
  fine &= ipv4_checksum_ok(&ip);
  fine &= detail::ordinary_ipv4(data[l3 + 12]);
  fine &= detail::ordinary_ipv4(data[l3 + 16]);
  return fine != 0;
}

// The same for IPv6 without hop-by-hop options.
[[gnu::always_inline]] inline bool is_plain_ipv6(const std::uint8_t* data, std::uint32_t length) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  if (length < l3 + sizeof(Ipv6Header) ||
      (detail::type_and_version(data) & detail::plain_ipv6_mask) != detail::plain_ipv6_word) {
    return false;
  }
  const auto& ip = header_at<Ipv6Header>(data, l3);
  unsigned fine = be16(ip.payload_length) <= std::min<std::uint32_t>(length - l3, 0xffff) - sizeof(Ipv6Header);
  fine &= ip.next_header != protocol_hop_by_hop;
  fine &= detail::ordinary_ipv6(ip.source);
  fine &= detail::ordinary_ipv6(ip.destination);
  return fine != 0;
}

// no_reason: `view` describes the frame. Else: why the frame must be dropped; `view` has any values then.
[[gnu::always_inline]] inline Reason parse_frame(const std::uint8_t* data, std::uint32_t length, FrameView& view) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  const bool unicast_frame = length != 0 && (data[0] & 1) == 0;
  if (unicast_frame && is_plain_ipv4(data, length)) [[likely]] {
    const auto& ip = header_at<Ipv4Header>(data, l3);
    const bool fragment = (ip.fragment & be16(ipv4_more_fragments | ipv4_fragment_offset)) != 0;
    view = {FrameKind::ipv4, ip.ttl, ip.protocol, l3, be16(ip.total_length), fragment};
    return no_reason;
  }
  if (unicast_frame && is_plain_ipv6(data, length)) {
    const auto& ip = header_at<Ipv6Header>(data, l3);
    const auto total = static_cast<std::uint16_t>(sizeof(Ipv6Header) + be16(ip.payload_length));
    view = {FrameKind::ipv6, ip.hop_limit, ip.next_header, l3, total, ip.next_header == protocol_fragment};
    return no_reason;
  }
  return detail::parse_slow(data, length, view);
}

}  // namespace sluice::packet
