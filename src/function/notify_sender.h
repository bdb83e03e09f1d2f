// A frame that is refused turned, where it lies, into the answer to its sender. Of TCP that is an RST as from the other
// end, of all else an ICMP error "communication administratively prohibited" as from the packet's destination (RFC 1812
// section 5.2.7.1, RFC 4443 section 3.1). VLAN tags stay.
//
// Thread-safety: any thread. Cost: as packet/icmp_error.h and packet/tcp_reset.h.
#pragma once

#include <cstdint>

namespace sluice::function {

// What an ICMP error quotes: all that fits, or the headers with 8 bytes of what IP carries, such as the UDP header (RFC
// 792), where what is behind them is not what came in.
enum class Quote : std::uint8_t { packet, headers };

// `capacity`: bytes at `frame` that may be written. The answer's length; 0, and the frame as it was: it may get none (a
// multicast, a later fragment, an ICMP error, an RST, ...).
std::uint32_t notify_sender(std::uint8_t* frame, std::uint32_t length, std::uint32_t capacity,
                            Quote quote = Quote::packet);

}  // namespace sluice::function
