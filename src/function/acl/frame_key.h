// From a frame to the key that rules are matched against (lookup/acl/acl_rule.h), and the DSCP of a frame.
//
// Any bytes of any length may come: a bridge checks nothing. Nothing at or behind frame + length is read. What is IP,
// and behind which tags and extension headers its transport is found, packet/metadata.h says. Frames behind other
// encapsulations (PPPoE, MPLS, 802.3 lengths) are not IP here.
//
//   ports     of TCP, UDP, UDP-Lite, DCCP and SCTP, in the whole packet and in the first fragment. A later fragment has
//             no such header: its ports and flags are 0, its protocol is the datagram's
//   protocol  IPv6: of the first header that is no extension header. AH and ESP are protocols like any other
//   flags     TCP: the flags byte; ICMP and ICMPv6: the type
//
// malformed: an IP frame of which no such key can be made, so that no rule can judge it, and which no host would take
// either, or only to be deceived: the IP version is not the ethertype's, a length contradicts the frame, a header that
// the key needs is cut short (TCP: before its flags), or it is the TCP fragment at offset 1, which rewrites the flags
// of the one before it (RFC 1858, RFC 3128). The header's checksum is not looked at.
//
// Thread-safety: any thread. Cost: 5 to 10 ns for IPv4 and IPv6 without extensions.
#pragma once

#include <cstdint>
#include <cstring>

#include "lookup/acl/acl_rule.h"
#include "packet/metadata.h"

namespace sluice::function {

enum class KeyKind : std::uint8_t { not_ip, ipv4, ipv6, malformed };

// Writes one of the keys: which, says the answer.
KeyKind make_key(const std::uint8_t* frame, std::uint32_t length, lookup::acl::Key4& key4, lookup::acl::Key6& key6);

// The same for what most frames are: IPv4 that packet::read_plain() takes. False: ask make_key().
inline bool make_plain_key(const std::uint8_t* frame, std::uint32_t length, lookup::acl::Key4& key) {
  packet::Metadata meta;
  if (!packet::read_plain(frame, length, meta) || meta.family != 4) return false;
  std::uint64_t addresses;
  std::uint32_t ports;
  std::memcpy(&addresses, meta.source(frame), sizeof addresses);
  std::memcpy(&ports, frame + meta.transport, sizeof ports);
  const bool is_tcp = meta.protocol == packet::protocol_tcp;
  const std::uint64_t flags = is_tcp ? packet::header_at<packet::TcpHeader>(frame, meta.transport).flags : 0;
  const std::uint64_t words[] = {addresses, ports | std::uint64_t{meta.protocol} << 32 | flags << 40};
  static_assert(sizeof words == sizeof key);
  std::memcpy(&key, words, sizeof key);
  return true;
}

// Writes the DSCP (RFC 2474: 0 to 63) into the IPv4 TOS byte, whose checksum follows, or into the IPv6 traffic class.
// The two bits of ECN stay. Only for a frame of which make_key() made a key.
void set_dscp(std::uint8_t* frame, std::uint32_t length, std::uint8_t dscp);

}  // namespace sluice::function
