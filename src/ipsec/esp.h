// ESP as bytes of a frame (RFC 4303), tunnel and transport mode, over IPv4 and IPv6, in UDP or not (RFC 3948): puts a
// packet in and takes it out. The cryptography in between is a job that any device may do (crypto/job.h).
//
//   out:  esp_put_on()  headers, padding, trailer  -> job seals ->  frame leaves
//   in:   find_esp(), esp_look()                   -> job opens ->  esp_take_off()
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

#include "base/error.h"
#include "crypto/job.h"
#include "ipsec/security_association.h"
#include "packet/headers.h"

namespace sluice::ipsec {

inline constexpr std::uint16_t nat_traversal_port = 4500;

// What of an SA its packets are made by. Constant.
struct alignas(64) EspFormat {
  enum class Iv : std::uint8_t { none, counter, block };  // counter: 8 bytes; block: CBC's 16
  std::uint32_t spi = 0;                                  // network order
  std::uint8_t icv = 0;                                   // bytes
  std::uint8_t align = 4;                                 // of what is enciphered, bytes
  Iv iv = Iv::none;
  Mode mode = Mode::tunnel;
  bool esn = false, copies_dscp = true, ecn = true, has_udp = false;
  DontFragment dont_fragment = DontFragment::copy;
  std::uint8_t family = 4;       // of the outer header
  std::uint8_t outer_bytes = 0;  // that are put in front of ESP: tunnel mode's IP header, and the UDP header
  std::uint16_t pad_to = 0;
  // IVs of counter modes are this plus the sequence number. It is random, so that a key that is used again after a
  // restart, as in a file, does not meet the same IVs.
  std::uint64_t first_iv = 0;
  std::uint8_t outer[sizeof(packet::Ipv6Header) + sizeof(packet::UdpHeader)] = {};

  std::uint32_t iv_bytes() const { return iv == Iv::none ? 0 : iv == Iv::counter ? 8 : 16; }
  // Bytes in front of what is enciphered, from the SPI on.
  std::uint32_t clear_bytes() const { return sizeof(packet::EspHeader) + iv_bytes(); }
};

// An Error: the transform is none that ESP has.
Expected<EspFormat> esp_format(const SaSettings& sa);

// --- Out ---

// What esp_put_on() has to know of a packet: a whole IP packet behind an Ethernet header of 14 bytes.
struct InnerPacket {
  std::uint8_t family = 4;
  std::uint8_t protocol = 0;   // transport mode: of what follows `headers`
  std::uint8_t tos = 0;        // or traffic class
  bool dont_fragment = false;  // IPv6: true
  std::uint16_t length = 0;    // bytes, IP header included
  std::uint16_t headers = 0;   // transport mode: bytes of the IP header, with extension headers that stay in front
  std::uint16_t named_at = 0;  // transport mode: offset in the packet of the byte that names `protocol`
};
// False: it is none, or a fragment in transport mode (RFC 4303 3.3.4: those are tunnelled).
bool look_at_inner(const std::uint8_t* frame, std::uint32_t length, Mode mode, InnerPacket& inner);

// Bytes that are added in front of, and behind, a packet.
inline std::uint32_t esp_front(const EspFormat& format) {
  return format.outer_bytes + format.clear_bytes();
}
std::uint32_t esp_behind(const EspFormat& format, const InnerPacket& inner);
// The largest inner packet whose ESP packet fits `mtu`: bytes of IP, below 0 never. Transport mode: of a packet with
// headers of `headers` bytes.
std::uint32_t esp_most_inner(const EspFormat& format, std::uint32_t mtu, std::uint32_t headers);

// `frame` has esp_front() bytes more in front than the packet's frame had, of any value, and esp_behind() bytes behind
// the packet. Writes all but what the job writes, and the job but for its key. The Ethernet header stays, with the
// outer packet's type. `sequence`: of this packet.
void esp_put_on(const EspFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
                crypto::Job& job);

// --- In ---

struct EspView {
  std::uint32_t spi = 0;       // host order
  std::uint32_t sequence = 0;  // the lower half
  std::uint32_t esp = 0;       // offset of the SPI
  std::uint32_t length = 0;    // bytes from there to the end of the IP packet
  std::uint16_t named_at = 0;  // offset of the byte that says ESP or UDP
  std::uint8_t family = 0;
  std::uint8_t tos = 0;
  bool in_udp = false;
  std::uint16_t udp_source = 0;          // host order
  const std::uint8_t* source = nullptr;  // in the frame
  const std::uint8_t* destination = nullptr;
};
enum class EspKind : std::uint8_t {
  other,  // no ESP
  esp,
  keepalive,  // RFC 3948 section 2.3
  fragment,   // of ESP, or of UDP that may hold it: to be put together first
  cut,        // ESP that is too short for its header
};
// IKE on port 4500 is `other`. Of a keepalive and a fragment only family and addresses are known. Frames with VLAN tags
// are `other`.
EspKind find_esp(const std::uint8_t* frame, std::uint32_t length, EspView& view);

// False: it is too short, or of a length that its cipher does not make. `upper`: of the sequence number, of ESN. Writes
// the job but for its key.
bool esp_look(const EspFormat& format, std::uint8_t* frame, const EspView& view, std::uint32_t upper, crypto::Job& job);

enum class EspContent : std::uint8_t {
  packet,
  dummy,      // RFC 4303 2.6: nothing was sent
  malformed,  // padding, or a next header or a length that do not fit the mode
  congested,  // RFC 6040: to be dropped, because the inside could not hear of the congestion
};
struct EspTaken {
  EspContent content = EspContent::malformed;
  std::uint32_t front = 0;   // bytes to remove from the frame's front
  std::uint32_t length = 0;  // of the frame then
};
// Of a packet that was opened and found authentic. Moves the Ethernet header in front of the packet, and puts the
// packet right: transport mode's headers, tunnel mode's ECN. The frame begins at `frame` + front then.
EspTaken esp_take_off(const EspFormat& format, std::uint8_t* frame, const EspView& view);

}  // namespace sluice::ipsec
