// Whether a received frame's TCP or UDP checksum is right: a look at samples, for ports whose driver does not say which
// checksums are unfinished (offload.h).
//
// Never allocates, never reads outside the frame; any thread. Cost: a sum over the segment (partial_sum() in checksum.h
// says what that takes), two at most, whatever is in the frame.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::packet {

enum class ChecksumState : std::uint8_t {
  none,   // nothing to judge: neither TCP nor UDP, a fragment, cut short, or UDP without a checksum
  right,  // RFC 9293 section 3.1, RFC 768, RFC 8200 section 8.1
  wrong,
};

// Of what is behind the outermost IP headers or, of VXLAN (RFC 7348), of the frame inside as well: there wrong wins. A
// tunnel inside that tunnel is a datagram like others: who sends frames decides how many there are.
ChecksumState check_transport(const std::uint8_t* frame, std::size_t length);

}  // namespace sluice::packet
