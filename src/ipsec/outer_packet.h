// ESP and AH packets as they come in, and what is left when these are taken off.
//
// Thread-safety: any thread; no state but the caller's. Nothing is read or written outside of what is given. Cost: some
// 10 ns for each call.
#pragma once

#include <cstdint>
#include <cstring>

#include "ipsec/packet_format.h"
#include "packet/headers.h"

namespace sluice::ipsec {

inline constexpr std::uint16_t nat_traversal_port = 4500;

struct OuterView {
  std::uint32_t spi = 0;       // host order
  std::uint32_t sequence = 0;  // the lower half
  std::uint32_t at = 0;        // offset of the ESP or AH header
  std::uint32_t length = 0;    // bytes from there to the end of the IP packet
  std::uint16_t named_at = 0;  // offset of the byte that says ESP, AH or UDP
  Protocol protocol = Protocol::esp;
  std::uint8_t family = 0;
  std::uint8_t tos = 0;
  bool in_udp = false;
  bool is_own_fragment = false;          // of a fragment: it shows by itself that its packet holds ESP or AH
  std::uint16_t udp_source = 0;          // host order
  const std::uint8_t* source = nullptr;  // in the frame
  const std::uint8_t* destination = nullptr;
};
enum class OuterKind : std::uint8_t {
  other,  // neither ESP nor AH
  ipsec,
  keepalive,  // RFC 3948 section 2.3
  fragment,   // of ESP or AH, or of UDP that may hold ESP: to be put together first
  cut,        // too short for its header
};
// IKE on port 4500 is `other`. Of a keepalive and a fragment only family, addresses and whether it is UDP are known. A
// fragment of UDP shows that it is ESP's if it is the first, with the port and an SPI.
// Frames with VLAN tags are `other`.
OuterKind find_outer(const std::uint8_t* frame, std::uint32_t length, OuterView& view);

// Whether find_outer() has to look; false: it would say `other`. Most frames are none.
inline bool may_be_outer(const std::uint8_t* frame, std::uint32_t length) {
  constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
  const auto is_protocol = [](std::uint8_t protocol) {
    return protocol == packet::protocol_esp || protocol == packet::protocol_ah || protocol == packet::protocol_udp;
  };
  // `at`: of the destination port. What is cut off may be it.
  const auto may_be_port = [&](std::uint32_t at) {
    return length < at + 2 || (frame[at] == nat_traversal_port >> 8 && frame[at + 1] == (nat_traversal_port & 0xff));
  };
  if (length < ethernet + sizeof(packet::Ipv4Header)) return false;
  std::uint16_t type;
  std::memcpy(&type, frame + 12, sizeof type);
  if (type == packet::be16(packet::ethertype_ipv4)) {
    const std::uint8_t protocol = frame[ethernet + 9];
    if (protocol != packet::protocol_udp) return is_protocol(protocol);
    if ((frame[ethernet + 6] & 0x3f) != 0 || frame[ethernet + 7] != 0) return true;  // a fragment
    return may_be_port(ethernet + (frame[ethernet] & 0xfU) * 4U + 2);
  }
  if (type != packet::be16(packet::ethertype_ipv6)) return false;
  const std::uint8_t next_header = frame[ethernet + 6];
  if (next_header == packet::protocol_udp) return may_be_port(ethernet + sizeof(packet::Ipv6Header) + 2);
  return is_protocol(next_header) || packet::is_ipv6_extension(next_header);
}

enum class Content : std::uint8_t {
  packet,
  dummy,      // RFC 4303 2.6: nothing was sent
  malformed,  // padding, or a next header or a length that do not fit the mode
  congested,  // RFC 6040: to be dropped, because the inside could not hear of the congestion
};
struct Taken {
  Content content = Content::malformed;
  std::uint32_t front = 0;   // bytes to remove from the frame's front
  std::uint32_t length = 0;  // of the frame then
};
// What stands `at` in the frame, `payload` bytes of protocol `next_header`, is the packet that was protected. Moves the
// Ethernet header in front of it, and puts it right: transport mode's headers and, in UDP, the checksum of TCP and UDP
// inside, whose addresses NAT may have changed (RFC 3948 section 3.1.2); tunnel mode's ECN.
Taken take_out(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t at,
               std::uint32_t payload, std::uint8_t next_header);

}  // namespace sluice::ipsec
