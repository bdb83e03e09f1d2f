// Which UDP looks like RTP or RTCP, wherever it comes from: what [srtp] unprotected = "drop" keeps from going on where
// no stream protects it (docs/srtp.md). Which addresses send media is not known here, so it goes by what is in the
// packet.
//
// Its payload begins with a byte from 128 to 191, which is version 2 and distinguishes RTP and RTCP from STUN, ZRTP,
// DTLS and TURN (RFC 5764 section 5.1.2, RFC 7983), and both its ports are 1024 or above: the first byte of DNS and of
// SNMP is anything. Of protocols at high ports whose packets begin with any byte some look so, too: ESP in UDP, DNS
// through a resolver's high ports. SRTP looks like RTP.
//
// Nothing at or behind frame + length is read. Thread-safety: any thread. Cost: of a plain frame one load from its
// first or second line; of an odd one what packet::read_metadata() takes.
#pragma once

#include <cstdint>

#include "function/srtp/media_frame.h"

namespace sluice::function {

// `media`: of this frame, by read_media_frame(). A fragment that is not a datagram's first has neither ports nor that
// byte, and is none.
bool may_be_clear_media(const std::uint8_t* frame, std::uint32_t length, const MediaFrame& media);

}  // namespace sluice::function
