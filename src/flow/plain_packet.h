// A frame as most are, read for the flow table in one go: untagged Ethernet II, IPv4 without options or IPv6 without
// extension headers, whole, no fragment, TCP without SYN or UDP with a whole header.
//
//   Packet packet;
//   if (!read_plain_packet(frame, packet)) ...   // any other frame: packet/header_facts.h, then read_packet()
//
// What it reads is what read_packet() reads of the same frame. A SYN is left to that one because of its options.
//
// Thread-safety: any thread. Reads nothing behind the frame. Cost: some 3 ns, a third of the long way.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "flow/packet.h"
#include "packet/headers.h"

namespace sluice::flow {
namespace detail {

// One store of 16 bytes, as it is read on.
inline void set_address(std::array<std::uint8_t, 16>& address, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(address.data()), bytes);
}

inline bool read_plain_tcp(std::string_view segment, Packet& packet) {
  if (segment.size() < sizeof(packet::TcpHeader)) return false;
  const auto& tcp = *reinterpret_cast<const packet::TcpHeader*>(segment.data());
  const std::size_t length = tcp.data_offset / 16 * 4U;
  if (length < sizeof(packet::TcpHeader) || length > segment.size() || (tcp.flags & tcp_syn) != 0) return false;
  packet.source_port = packet::be16(tcp.source_port);
  packet.destination_port = packet::be16(tcp.destination_port);
  packet.tcp_flags = tcp.flags;
  packet.window_scale = 0xff;
  packet.window = packet::be16(tcp.window);
  packet.sequence = packet::be32(tcp.sequence);
  packet.acknowledgment = packet::be32(tcp.acknowledgment);
  packet.payload = {segment.data() + length, segment.size() - length};
  return true;
}

inline bool read_plain_udp(std::string_view datagram, Packet& packet) {
  if (datagram.size() < sizeof(packet::UdpHeader)) return false;
  const auto& udp = *reinterpret_cast<const packet::UdpHeader*>(datagram.data());
  const std::size_t said = packet::be16(udp.length);
  if (said < sizeof(packet::UdpHeader)) return false;  // 0 means something over IPv6
  packet.source_port = packet::be16(udp.source_port);
  packet.destination_port = packet::be16(udp.destination_port);
  packet.tcp_flags = 0;
  packet.payload = {datagram.data() + sizeof(packet::UdpHeader),
                    std::min(said, datagram.size()) - sizeof(packet::UdpHeader)};
  return true;
}

}  // namespace detail

// False: it is none such; `packet` is then unspecified.
[[gnu::always_inline]] inline bool read_plain_packet(std::string_view frame, Packet& packet) {
  constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
  if (frame.size() < ethernet + sizeof(packet::Ipv4Header)) return false;
  const std::uint16_t type = reinterpret_cast<const packet::EthernetHeader*>(frame.data())->ethertype;
  const char* const bytes = frame.data() + ethernet;
  const std::size_t there = frame.size() - ethernet;
  std::size_t header = sizeof(packet::Ipv4Header), length = 0;
  if (type == packet::be16(packet::ethertype_ipv4)) {
    const auto& ip = *reinterpret_cast<const packet::Ipv4Header*>(bytes);
    length = packet::be16(ip.total_length);
    constexpr std::uint16_t pieces = packet::be16(packet::ipv4_more_fragments | packet::ipv4_fragment_offset);
    if (ip.version_ihl != 0x45 || (ip.fragment & pieces) != 0) return false;
    packet.family = 4;
    packet.protocol = ip.protocol;
    detail::set_address(packet.source, _mm_loadu_si32(&ip.source));
    detail::set_address(packet.destination, _mm_loadu_si32(&ip.destination));
  } else if (type == packet::be16(packet::ethertype_ipv6) && there >= sizeof(packet::Ipv6Header)) {
    const auto& ip = *reinterpret_cast<const packet::Ipv6Header*>(bytes);
    header = sizeof(packet::Ipv6Header);
    length = header + packet::be16(ip.payload_length);
    if (static_cast<std::uint8_t>(bytes[0]) >> 4 != 6) return false;
    packet.family = 6;
    packet.protocol = ip.next_header;
    detail::set_address(packet.source, _mm_loadu_si128(reinterpret_cast<const __m128i*>(ip.source)));
    detail::set_address(packet.destination, _mm_loadu_si128(reinterpret_cast<const __m128i*>(ip.destination)));
  } else {
    return false;
  }
  if (length > there || length < header) return false;
  packet.ip_length = static_cast<std::uint32_t>(length);
  packet.fragment = false;
  const std::string_view rest(bytes + header, length - header);
  if (packet.protocol == packet::protocol_udp) return detail::read_plain_udp(rest, packet);
  return packet.protocol == packet::protocol_tcp && detail::read_plain_tcp(rest, packet);
}

// Of a frame that read_plain_packet() takes: its Packet::source_port. Of others anything.
inline std::uint16_t plain_source_port(std::string_view frame) {
  constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
  if (frame.size() <= ethernet) return 0;
  const bool ipv4 = static_cast<std::uint8_t>(frame[ethernet]) >> 4 == 4;
  const std::size_t at = ethernet + (ipv4 ? sizeof(packet::Ipv4Header) : sizeof(packet::Ipv6Header));
  std::uint16_t port = 0;
  if (frame.size() >= at + sizeof port) std::memcpy(&port, frame.data() + at, sizeof port);
  return packet::be16(port);
}

}  // namespace sluice::flow
