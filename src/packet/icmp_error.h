// ICMP errors of a router: which frames may be answered by one, and turning a frame, where it lies, into the error that
// goes back to its sender.
//
//   IPv4  time exceeded in transit; fragmentation needed, with the next link's MTU      RFC 792, RFC 1812 4.3.2 and
//                                                                                       5.3.1, RFC 1191 section 4
//   IPv6  hop limit exceeded in transit; packet too big                                 RFC 4443 3.2 and 3.3
//
// The error quotes the packet as it came, from its IP header on, without Ethernet padding: as much as fits into 576
// bytes of IPv4 (RFC 1812 section 4.3.2.3) or 1,280 of IPv6 (RFC 4443 section 2.4 c). It has precedence 6 (RFC 1812
// section 4.3.2.5; IPv6: traffic class 0), a TTL or hop limit of 64, and IPv4 identification 0 under "don't fragment"
// (RFC 6864 section 4.1). How many errors are sent is the caller's business.
//
// Thread-safety: any thread. Cost: the checks a few ns; the error a move and a checksum of what is quoted.
#pragma once

#include <cstdint>

#include "packet/ip_address.h"

namespace sluice::packet {

// Whether an error may answer this frame, which may be of any bytes. It is a whole IPv4 or IPv6 packet
// (packet/metadata.h), in VLANs or not, in a frame from one interface to one interface, from and to a unicast address
// of hosts (not multicast, broadcast, unspecified or loopback). It is the first fragment if it is one, and neither an
// ICMP error nor an ICMPv6 redirect, nor one that cannot be distinguished from these (RFC 1812 section 4.3.2.7, RFC
// 4443 section 2.4 e).
bool may_answer_with_icmp_error(const std::uint8_t* frame, std::uint32_t length);

// prohibited: destination unreachable, communication administratively prohibited (RFC 1812 section 5.2.7.1, RFC 4443
// section 3.1).
enum class IcmpErrorKind : std::uint8_t { time_exceeded, too_big, prohibited };

struct IcmpError {
  IcmpErrorKind kind;
  std::uint32_t mtu = 0;        // too_big: of the next link, in bytes of IP; above 65,535 IPv4 says that
  const IpAddress& source;      // of the packet's own family
  const std::uint8_t* own_mac;  // of the port that the error leaves by, 6 bytes
  // Of the packet, where all that fits is not to be: its headers and 8 bytes are the least that RFC 792 allows.
  std::uint32_t most_quoted = 0xffffffff;
};

// The capacity that an error needs at least, besides VLAN tags: its headers, and the quoted packet's IP header (IPv6).
inline constexpr std::uint32_t least_icmp_error_capacity = 14 + 40 + 8 + 40;

// Makes the frame of `length` bytes the error, from `own_mac` to the link address that the frame came from; returns its
// new length. may_answer_with_icmp_error() has said yes. VLAN tags stay. `capacity`: bytes at `frame` that may be
// written; of the quote what does not fit is left out. With less than least_icmp_error_capacity the frame stays as it
// is, and 0 is returned.
std::uint32_t make_icmp_error(std::uint8_t* frame, std::uint32_t length, std::uint32_t capacity,
                              const IcmpError& error);

}  // namespace sluice::packet
