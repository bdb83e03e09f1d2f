// AH as bytes of a frame (RFC 4302), tunnel and transport mode, over IPv4 and IPv6: puts the header on and takes it
// off. The cryptography in between is a job that any device may do (crypto/job.h).
//
//   out:  ah_put_on()           -> job seals ->  ah_finish()    ->  frame leaves
//   in:   find_outer(), ah_look() -> job opens ->  ah_take_off()
//
//   Ethernet | IP, extension headers | AH: next header, length, SPI, sequence number, ICV | what it protects | tag
//              \---- authenticated, with zeros for what changes on the way and for the ICV ----------------/
//
// A job's tag stands behind the packet, and AH's in the midst of it. So the frame has the ICV's bytes more at its end
// while a job is under way, and zeros where fields may change on the way: AhKept has those, and both calls that follow
// put them back.
//
// Mutable fields: RFC 4302 appendix A. IPv4 options and IPv6 routing headers are not authenticated here: their packets
// are refused. Of hop-by-hop and destination options, those that change on the way count as zeros.
//
// Thread-safety: any thread; no state but the caller's. Nothing is read or written outside of what is given, and no
// call allocates. Cost: headers alone.
#pragma once

#include <cstdint>

#include "crypto/job.h"
#include "ipsec/outer_packet.h"
#include "ipsec/packet_format.h"

namespace sluice::ipsec {

// What an IP header held where there are zeros now.
struct AhKept {
  std::uint32_t first_word = 0;  // IPv4: its first four bytes, which have the TOS; IPv6: class and flow label
  std::uint16_t fragment = 0;    // IPv4
  std::uint16_t checksum = 0;    // IPv4
  std::uint8_t ttl = 0;
  std::uint8_t family = 0;
};

// Bytes of the header with its ICV, padded for the family; these and outer headers are put in front.
std::uint32_t ah_bytes(const PacketFormat& format);
inline std::uint32_t ah_front(const PacketFormat& format) {
  return format.outer_bytes + ah_bytes(format);
}
// Bytes behind the packet for the job's tag; they go again.
inline std::uint32_t ah_behind(const PacketFormat& format) {
  return format.icv;
}
// The largest inner packet whose AH packet fits `mtu`; transport mode: with the headers that it has.
std::uint32_t ah_most_inner(const PacketFormat& format, std::uint32_t mtu);

// `frame` has ah_front() bytes more in front than the packet's frame had, and ah_behind() bytes behind the packet.
// False: the packet has headers that are not authenticated here, and nothing has changed.
bool ah_put_on(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
               crypto::Job& job, AhKept& kept);
// Of a frame that ah_put_on() has made, once its job is done: moves the tag into its place. The frame is ah_behind()
// bytes shorter then.
void ah_finish(const PacketFormat& format, std::uint8_t* frame, const crypto::Job& job, const AhKept& kept);
// The job that ah_put_on() has made, once more, but for its key: for who computes what is inside first. `length`: of
// the frame without the ah_behind() bytes.
void ah_job(const PacketFormat& format, std::uint8_t* frame, std::uint32_t length, std::uint64_t sequence,
            crypto::Job& job);

// `frame` has format.icv bytes behind the IP packet that may be written. `upper`: of the sequence number, of ESN.
// False: it is malformed, or has headers that are not authenticated here, and nothing has changed.
bool ah_look(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t upper,
             crypto::Job& job, AhKept& kept);
// Of a packet that was opened and found authentic (outer_packet.h, take_out()).
Taken ah_take_off(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, const AhKept& kept);

}  // namespace sluice::ipsec
