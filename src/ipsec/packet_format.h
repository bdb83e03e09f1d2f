// What the packets of an SA look like, for esp.h and ah.h, and what has to be known of a packet that is protected.
//
// Thread-safety: constant after they were made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "ipsec/security_association.h"
#include "packet/headers.h"

namespace sluice::ipsec {

// What of an SA its packets are made by. Constant.
struct PacketFormat {
  enum class Iv : std::uint8_t { none, counter, block };  // counter: 8 bytes; block: CBC's 16
  std::uint32_t spi = 0;                                  // network order
  Protocol protocol = Protocol::esp;
  std::uint8_t icv = 0;    // bytes
  std::uint8_t align = 4;  // of what is enciphered, bytes: a power of two
  Iv iv = Iv::none;
  Mode mode = Mode::tunnel;
  bool esn = false, copies_dscp = true, ecn = true, has_udp = false;
  DontFragment dont_fragment = DontFragment::copy;
  std::uint8_t family = 4;       // of the outer header
  std::uint8_t outer_bytes = 0;  // that are put in front of ESP or AH: tunnel mode's IP header, and the UDP header
  std::uint16_t pad_to = 0;
  // IVs of counter modes are this plus the sequence number. It is random, so that a key that is used again after a
  // restart, as in a file, does not meet the same IVs.
  std::uint64_t first_iv = 0;
  std::uint8_t outer[sizeof(packet::Ipv6Header) + sizeof(packet::UdpHeader)] = {};

  std::uint32_t iv_bytes() const { return iv == Iv::none ? 0 : iv == Iv::counter ? 8 : 16; }
  // The bits of a length that are 0 where it is a multiple of `align`.
  std::uint32_t last_of_align() const { return align - 1U; }
  // Bytes in front of what is enciphered, from the SPI on.
  std::uint32_t clear_bytes() const { return sizeof(packet::EspHeader) + iv_bytes(); }
};

// An Error: the transform is none that the protocol has.
Expected<PacketFormat> packet_format(const SaSettings& sa);

// What has to be known of a packet that is protected: a whole IP packet behind an Ethernet header of 14 bytes.
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

// Writes what the outer header of tunnel mode, at `ip`, has of its own packet. `length`: bytes of that, this header
// included.
void write_outer(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* ip,
                 std::uint32_t length);
// The packet whose headers are at `ip` has another length, and another protocol at `named_at`.
void change_headers(std::uint8_t* ip, std::uint8_t family, std::uint32_t length, std::uint32_t named_at,
                    std::uint8_t protocol);

}  // namespace sluice::ipsec
