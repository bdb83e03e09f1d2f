// RTP's and RTCP's fixed headers with the checks that protecting a packet needs (RFC 3550 sections 5.1, 5.3.1, 6.1),
// and which of the two a packet on a shared port is (RFC 5761). SRTP's headers are the same: they are in clear. Padding
// and the packets behind the first of an RTCP compound lie in what is enciphered, so nothing here looks at them. Nor
// does it look at the first one's length, by which no byte is found and which is too large in RFC 7714's own vectors.
// No call reads behind the packet's end.
#pragma once

#include <cstdint>
#include <span>

#include "media/srtp/status.h"

namespace sluice::srtp {

struct RtpHeader {
  std::uint32_t ssrc;
  std::uint16_t sequence;
  std::uint16_t length;  // with CSRCs and the extension: where the payload begins
};

inline constexpr std::uint32_t rtp_fixed_length = 12;
inline constexpr std::uint32_t rtcp_fixed_length = 8;  // the first header and the sender's SSRC
inline constexpr std::uint32_t max_packet_length = 65535;

// too_short, bad_version, bad_header (also: longer than max_packet_length).
Status parse_rtp(std::span<const std::uint8_t> packet, RtpHeader& header);
// The same of RTCP; its first packet type must be one.
Status parse_rtcp(std::span<const std::uint8_t> packet, std::uint32_t& ssrc);

enum class PacketKind : std::uint8_t { rtp, rtcp, other };
// By the version and by packet types 192 to 223, which RTP payload types 64 to 95 must not be used for (RFC 5761
// section 4). STUN, DTLS and what else is not version 2 is `other`. Two bytes decide; less is `other`.
PacketKind kind_of(std::span<const std::uint8_t> packet);

}  // namespace sluice::srtp
