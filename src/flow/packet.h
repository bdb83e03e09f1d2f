// An IP packet as the flow table and the streams see it: who speaks to whom, and what the transport header says.
//
//   Packet packet;
//   if (read_packet(facts, packet)) ...     // packet/header_facts.h of the frame
//
// A fragment (IPv4 or IPv6, first or later) has no ports and no payload here; its datagram has (fragments.h). ICMP
// echoes and their replies carry the identifier as both ports, so that a ping is one flow; other ICMP has ports 0.
//
// Thread-safety: any thread. Reads nothing outside the packet. Cost: some ns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "packet/header_facts.h"

namespace sluice::flow {

// Towards the side that began the conversation, or from it.
enum class Direction : std::uint8_t { to_server = 0, to_client = 1 };
constexpr Direction opposite(Direction direction) {
  return direction == Direction::to_server ? Direction::to_client : Direction::to_server;
}

// TCP flags (RFC 9293 section 3.1).
inline constexpr std::uint8_t tcp_fin = 0x01, tcp_syn = 0x02, tcp_rst = 0x04, tcp_ack = 0x10;

struct Packet {
  std::array<std::uint8_t, 16> source{};  // network order; IPv4 in the first four bytes, zeros behind
  std::array<std::uint8_t, 16> destination{};
  std::uint16_t source_port = 0;  // host order
  std::uint16_t destination_port = 0;
  std::uint8_t family = 0;    // 4 or 6
  std::uint8_t protocol = 0;  // of the transport header, behind IPv6 extension headers
  bool fragment = false;
  std::uint32_t ip_length = 0;  // bytes, IP header included

  // TCP only, host order.
  std::uint8_t tcp_flags = 0;
  std::uint8_t window_scale = 0xff;  // of a SYN's options (RFC 7323); 0xff: none
  std::uint16_t window = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;

  std::string_view payload;  // behind the transport header, in the packet's own memory
};

// False: no IPv4 or IPv6 packet, or one that is cut or ends within its headers; `packet` is then unspecified.
bool read_packet(const packet::HeaderFacts& facts, Packet& packet);
// Whether a TCP header, with its options, has Fast Open's (RFC 7413), or the experimental one before it.
bool has_fast_open(std::string_view tcp_header);
// From the IP header on.
bool read_packet(const std::uint8_t* ip, std::uint32_t length, Packet& packet);

}  // namespace sluice::flow
