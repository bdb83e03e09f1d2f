#include "flow/packet.h"

#include <algorithm>
#include <cstring>

#include "packet/headers.h"

namespace sluice::flow {
namespace {

using packet::be16;
using packet::be32;
using packet::header_at;

// The window scale option of a SYN, 0xff without one.
std::uint8_t window_scale(const std::uint8_t* options, std::uint32_t length) {
  std::uint32_t at = 0;
  while (at < length && options[at] != 0) {
    if (options[at] == 1) {
      ++at;
      continue;
    }
    if (at + 1 >= length || options[at + 1] < 2) {
      break;
    }
    if (options[at] == 3 && options[at + 1] == 3 && at + 2 < length) {
      return std::min<std::uint8_t>(options[at + 2], 14);
    }
    at += options[at + 1];
  }
  return 0xff;
}

bool read_tcp(const std::uint8_t* at, std::uint32_t length, Packet& out) {
  if (length < sizeof(packet::TcpHeader)) {
    return false;
  }
  const auto& tcp = header_at<packet::TcpHeader>(at, 0);
  const std::uint32_t header = (tcp.data_offset >> 4) * 4U;
  if (header < sizeof tcp || header > length) {
    return false;
  }
  out.source_port = be16(tcp.source_port);
  out.destination_port = be16(tcp.destination_port);
  out.sequence = be32(tcp.sequence);
  out.acknowledgment = be32(tcp.acknowledgment);
  out.tcp_flags = tcp.flags;
  out.window = be16(tcp.window);
  out.window_scale = 0xff;
  if ((tcp.flags & tcp_syn) != 0) {
    out.window_scale = window_scale(at + sizeof tcp, header - static_cast<std::uint32_t>(sizeof tcp));
  }
  out.payload = {reinterpret_cast<const char*>(at + header), length - header};
  return true;
}

bool read_udp(const std::uint8_t* at, std::uint32_t length, Packet& out) {
  if (length < sizeof(packet::UdpHeader)) {
    return false;
  }
  const auto& udp = header_at<packet::UdpHeader>(at, 0);
  out.source_port = be16(udp.source_port);
  out.destination_port = be16(udp.destination_port);
  const std::uint32_t said = std::max<std::uint32_t>(be16(udp.length), sizeof udp);
  out.payload = {reinterpret_cast<const char*>(at + sizeof udp), std::min(said, length) - sizeof udp};
  return true;
}

bool read_icmp(const std::uint8_t* at, std::uint32_t length, Packet& out) {
  if (length < sizeof(packet::IcmpHeader)) {
    return false;
  }
  const bool echo = out.protocol == packet::protocol_icmp ? at[0] == 0 || at[0] == 8 : at[0] == 128 || at[0] == 129;
  if (echo) {
    out.source_port = out.destination_port = static_cast<std::uint16_t>(at[4] << 8 | at[5]);
  }
  out.payload = {reinterpret_cast<const char*>(at + sizeof(packet::IcmpHeader)), length - sizeof(packet::IcmpHeader)};
  return true;
}

bool read_transport(const std::uint8_t* at, std::uint32_t length, Packet& out) {
  out.source_port = out.destination_port = 0;
  out.tcp_flags = 0;
  out.payload = {};
  if (out.fragment) {
    return true;
  }
  switch (out.protocol) {
    case packet::protocol_tcp:
      return read_tcp(at, length, out);
    case packet::protocol_udp:
    case packet::protocol_udp_lite:
      return read_udp(at, length, out);
    case packet::protocol_icmp:
    case packet::protocol_icmpv6:
      return read_icmp(at, length, out);
    default:
      if ((out.protocol == packet::protocol_sctp || out.protocol == packet::protocol_dccp) && length >= 4) {
        out.source_port = static_cast<std::uint16_t>(at[0] << 8 | at[1]);
        out.destination_port = static_cast<std::uint16_t>(at[2] << 8 | at[3]);
      }
      out.payload = {reinterpret_cast<const char*>(at), length};
      return true;
  }
}

bool read_ipv4(const std::uint8_t* ip, std::uint32_t length, Packet& out) {
  if (length < sizeof(packet::Ipv4Header)) {
    return false;
  }
  const auto& header = header_at<packet::Ipv4Header>(ip, 0);
  const std::uint32_t size = (header.version_ihl & 0x0fU) * 4U;
  const std::uint32_t total = be16(header.total_length);
  if (size < sizeof header || total < size || total > length) {
    return false;
  }
  out.family = 4;
  out.protocol = header.protocol;
  out.ip_length = total;
  out.source.fill(0);
  out.destination.fill(0);
  std::memcpy(out.source.data(), ip + 12, 4);
  std::memcpy(out.destination.data(), ip + 16, 4);
  out.fragment = (be16(header.fragment) & (packet::ipv4_more_fragments | packet::ipv4_fragment_offset)) != 0;
  return read_transport(ip + size, total - size, out);
}

bool read_ipv6(const std::uint8_t* ip, std::uint32_t length, Packet& out) {
  if (length < sizeof(packet::Ipv6Header)) {
    return false;
  }
  const auto& header = header_at<packet::Ipv6Header>(ip, 0);
  const std::uint32_t total = static_cast<std::uint32_t>(sizeof header) + be16(header.payload_length);
  if (total > length) {
    return false;
  }
  out.family = 6;
  out.ip_length = total;
  out.fragment = false;
  std::memcpy(out.source.data(), header.source, 16);
  std::memcpy(out.destination.data(), header.destination, 16);
  std::uint8_t next = header.next_header;
  std::uint32_t at = sizeof header;
  while (next == packet::protocol_hop_by_hop || next == packet::protocol_routing ||
         next == packet::protocol_destination_options || next == packet::protocol_fragment) {
    if (at + 8 > total) {
      return false;
    }
    if (next == packet::protocol_fragment) {
      out.fragment = out.fragment || (be16(header_at<packet::Ipv6Fragment>(ip, at).offset_more) & 0xfff9U) != 0;
      next = ip[at];
      at += 8;
      if (out.fragment) {
        break;
      }
      continue;
    }
    next = ip[at];
    at += (ip[at + 1] + 1U) * 8U;
    if (at > total) {
      return false;
    }
  }
  out.protocol = next;
  return read_transport(ip + at, total - at, out);
}

}  // namespace

bool read_packet(const std::uint8_t* ip, std::uint32_t length, Packet& packet) {
  if (length == 0) {
    return false;
  }
  switch (ip[0] >> 4) {
    case 4:
      return read_ipv4(ip, length, packet);
    case 6:
      return read_ipv6(ip, length, packet);
    default:
      return false;
  }
}

}  // namespace sluice::flow
