// Explicit congestion notification through tunnels: copied when a packet is wrapped (RFC 6040 section 4.1, normal
// mode), and combined when it is unwrapped (section 4.2).
//
// Thread-safety: any thread. Cost: a few ns.
#pragma once

#include <cstdint>
#include <optional>

namespace sluice::packet {

enum Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

// The inner field when the outer header goes (RFC 6040 figure 4); nothing: the frame is to be dropped, for a transport
// without ECN would not see the mark.
std::optional<Ecn> ecn_unwrapped(Ecn inner, Ecn outer);

// What of an inner frame the outer header follows. Behind VLAN tags, too.
struct InnerIp {
  std::uint32_t offset = 0;  // of the IP header; 0: the frame holds no whole one
  std::uint8_t family = 0;
  std::uint8_t tos = 0;  // or traffic class
  std::uint8_t ttl = 0;
  bool dont_fragment = false;  // IPv6: always
};
InnerIp inner_ip(const std::uint8_t* frame, std::uint32_t length);
// Writes the field of the IP header that inner_ip() found, and mends the IPv4 checksum for it.
void set_ecn(std::uint8_t* frame, const InnerIp& ip, Ecn ecn);

}  // namespace sluice::packet
