// From a frame to the key that rules are matched against (lookup/acl/acl_rule.h), and the DSCP of a frame.
//
// Any bytes of any length may come: a bridge checks nothing. Nothing at or behind frame + length is read. What is IP is
// found by its ethertype, behind up to four VLAN tags (802.1Q, 802.1ad, and 0x9100). Frames behind other encapsulations
// (PPPoE, MPLS, 802.3 lengths) are not IP here.
//
//   ports     of TCP, UDP, UDP-Lite, DCCP and SCTP, in the whole packet and in the first fragment. A later fragment has
//             no such header: its ports and flags are 0, its protocol is the datagram's
//   protocol  IPv6: of the first header that is no extension header, behind at most eight of hop-by-hop options,
//             routing, destination options and fragment. AH and ESP are protocols like any other
//   flags     TCP: the flags byte; ICMP and ICMPv6: the type
//
// malformed: an IP frame of which no such key can be made, so that no rule can judge it, and which no host would take
// either, or only to be deceived: the IP version is not the ethertype's, a length contradicts the frame, a header that
// the key needs is cut short (TCP: before its flags), there are more tags or extension headers, or it is the TCP
// fragment at offset 1, which rewrites the flags of the one before it (RFC 1858, RFC 3128). The header's checksum is
// not looked at.
//
// Thread-safety: any thread. Cost: 5 to 10 ns for IPv4 and IPv6 without extensions.
#pragma once

#include <cstdint>
#include <cstring>

#include "lookup/acl/acl_rule.h"

namespace sluice::function {

enum class KeyKind : std::uint8_t { not_ip, ipv4, ipv6, malformed };

// Writes one of the keys: which, says the answer.
KeyKind make_key(const std::uint8_t* frame, std::uint32_t length, lookup::acl::Key4& key4, lookup::acl::Key6& key6);

// The same for what most frames are: IPv4 of TCP or UDP, without tags, options or an offset, and long enough. False:
// ask make_key().
inline bool make_plain_key(const std::uint8_t* frame, std::uint32_t length, lookup::acl::Key4& key) {
  constexpr std::uint32_t ethernet = 14, tcp_to_flags = 14, least = ethernet + 20 + tcp_to_flags;
  constexpr std::uint8_t tcp = 6, udp = 17;
  if (length < least) return false;
  const auto read16 = [&](std::uint32_t at) { return static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]); };
  const std::uint32_t total = read16(16);
  const std::uint8_t protocol = frame[23];
  const bool plain = read16(12) == 0x0800 && frame[14] == 0x45 && (read16(20) & 0x1fff) == 0 &&
                     (protocol == tcp || protocol == udp) && total >= least - ethernet && total <= length - ethernet;
  if (!plain) return false;
  std::uint64_t addresses;
  std::uint32_t ports;
  std::memcpy(&addresses, frame + 26, sizeof addresses);
  std::memcpy(&ports, frame + 34, sizeof ports);
  const std::uint64_t flags = protocol == tcp ? frame[47] : 0;
  const std::uint64_t words[] = {addresses, ports | std::uint64_t{protocol} << 32 | flags << 40};
  static_assert(sizeof words == sizeof key);
  std::memcpy(&key, words, sizeof key);
  return true;
}

// Writes the DSCP (RFC 2474: 0 to 63) into the IPv4 TOS byte, whose checksum follows, or into the IPv6 traffic class.
// The two bits of ECN stay. Only for a frame of which make_key() made a key.
void set_dscp(std::uint8_t* frame, std::uint32_t length, std::uint8_t dscp);

}  // namespace sluice::function
