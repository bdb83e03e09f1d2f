// ICMP errors that say an outbound packet of ESP or AH was too large for a link on its way: "fragmentation needed"
// (RFC 792, RFC 1191 section 4) and Packet Too Big (RFC 4443 section 3.2).
//
// Thread-safety: any thread. Cost: is_too_big() two comparisons for most frames.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ipsec/security_association.h"

namespace sluice::ipsec {

// What one says, of the packet that it quotes.
struct TooBig {
  std::array<std::uint8_t, 16> source{}, destination{};  // as in the packet
  std::uint8_t family = 0;
  Protocol protocol = Protocol::esp;
  bool in_udp = false;
  std::uint32_t spi = 0, sequence = 0;  // host order; the sequence number's lower half
  std::uint32_t mtu = 0;                // of the link, as the error has it: of old routers 0
  std::uint32_t length = 0;             // of the IP packet that was too large
};

// Whether the frame is such an error, by its first bytes. Those with IPv4 options, extension headers and VLAN tags are
// not looked for.
bool is_too_big(const std::uint8_t* frame, std::uint32_t length);
// Of such a frame. Nothing: it is malformed, its checksum is wrong, it goes to another host than the quoted packet came
// from, or what it quotes is no ESP or AH, or ends before the sequence number (RFC 1812 section 4.3.2.3 has routers
// quote more).
std::optional<TooBig> read_too_big(const std::uint8_t* frame, std::uint32_t length);

}  // namespace sluice::ipsec
