// The segment that ends a TCP conversation from in between, an RST in the place of a segment: to its sender as if the
// other side had sent it (RFC 9293 section 3.10.7.1: <SEQ=SEG.ACK><CTL=RST>, or
// <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>). Or to its receiver as if the sender had given up: <SEQ=SEG.SEQ>, where
// the receiver expects the segment (RFC 5961 section 3.2), with its acknowledgement.
//
// Thread-safety: any thread. Cost: some 50 ns.
#pragma once

#include <cstdint>

namespace sluice::packet {

enum class ResetTo : std::uint8_t { sender, receiver };

// Makes the frame an RST: to its sender, with link addresses exchanged, or to its receiver, with those it has. VLAN
// tags stay, IP options and extension headers go. Returns its new length, which is no more than `length`. 0, and the
// frame as it was: it is no whole TCP segment (a fragment, cut, behind a routing header), or an RST itself.
std::uint32_t make_tcp_reset(std::uint8_t* frame, std::uint32_t length, ResetTo to);

}  // namespace sluice::packet
