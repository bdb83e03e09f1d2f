// ESP as bytes of a frame (RFC 4303), tunnel and transport mode, over IPv4 and IPv6, in UDP or not (RFC 3948): puts a
// packet in and takes it out. The cryptography in between is a job that any device may do (crypto/job.h).
//
//   out:  esp_put_on()  headers, padding, trailer  -> job seals ->  frame leaves
//   in:   find_outer(), esp_look()                   -> job opens ->  esp_take_off()
//
//   Ethernet | outer IP | UDP? | SPI, sequence number | IV | inner packet | padding, its length, next header | ICV
//                                \--- authenticated --------------------------------------------------/
//                                                            \--- enciphered ------------------------/
//
// Thread-safety: any thread; no state but the caller's. Nothing is read or written outside of what is given, and no
// call allocates. Cost: headers alone, about 20 ns for each call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/job.h"
#include "ipsec/outer_packet.h"
#include "ipsec/packet_format.h"
#include "packet/headers.h"

namespace sluice::ipsec {

// --- Out ---

// Bytes that are added in front of, and behind, a packet.
inline std::uint32_t esp_front(const PacketFormat& format) {
  return format.outer_bytes + format.clear_bytes();
}
std::uint32_t esp_behind(const PacketFormat& format, const InnerPacket& inner);
// The largest inner packet whose ESP packet fits `mtu`: bytes of IP, below 0 never. Transport mode: of a packet with
// headers of `headers` bytes.
std::uint32_t esp_most_inner(const PacketFormat& format, std::uint32_t mtu, std::uint32_t headers);

// `frame` has esp_front() bytes more in front than the packet's frame had, of any value, and esp_behind() bytes behind
// the packet. Writes all but what the job writes, and the job but for its key. The Ethernet header stays, with the
// outer packet's type. `sequence`: of this packet.
void esp_put_on(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
                crypto::Job& job);

// Over IPv6 UDP has a checksum: of the whole frame, when the job is done. AH may be around it. Cost: a pass over the
// packet.
void esp_checksum(const PacketFormat& format, std::uint8_t* frame, std::uint32_t length);

// --- In ---

// False: it is too short, or of a length that its cipher does not make. `upper`: of the sequence number, of ESN. Writes
// the job but for its key.
bool esp_look(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t upper,
              crypto::Job& job);

// Of a packet that was opened and found authentic. Moves the Ethernet header in front of the packet, and puts the
// packet right: transport mode's headers, tunnel mode's ECN. The frame begins at `frame` + front then.
Taken esp_take_off(const PacketFormat& format, std::uint8_t* frame, const OuterView& view);

}  // namespace sluice::ipsec
