#include "flow/packet.h"

#include <algorithm>

#include "packet/headers.h"

namespace sluice::flow {
namespace {

// Calls `option` with the kind and value of each of a TCP header's options, until it says true; whether it has.
template <typename Option>
bool any_option(std::string_view options, Option option) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(options[at]); };
  for (std::size_t at = 0; at < options.size() && byte(at) != 0;) {
    if (byte(at) == 1) {
      ++at;
      continue;
    }
    if (at + 1 >= options.size() || byte(at + 1) < 2) {
      break;
    }
    const std::size_t length = byte(at + 1);
    if (option(byte(at), length, options.substr(at + 2, length - 2))) {
      return true;
    }
    at += length;
  }
  return false;
}

// The window scale option of a SYN, 0xff without one.
std::uint8_t window_scale(std::string_view options) {
  std::uint8_t scale = 0xff;
  any_option(options, [&](std::uint8_t kind, std::size_t length, std::string_view value) {
    if (kind != 3 || length != 3 || value.empty()) {
      return false;
    }
    scale = std::min<std::uint8_t>(static_cast<std::uint8_t>(value[0]), 14);
    return true;
  });
  return scale;
}

// Both halves by themselves: they have just been written so, and 16 bytes at once would wait for both stores.
std::string_view copy_of(std::string_view from) {
  const char* data = from.data();
  std::size_t size = from.size();
  asm("" : "+r"(data), "+r"(size));
  return {data, size};
}

// The two ends' ports, where HeaderFacts has none; false: the transport's header is cut or makes no sense.
bool read_transport(const packet::HeaderFacts& facts, Packet& out) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(facts.payload.data());
  switch (facts.protocol) {
    case packet::protocol_tcp:
      return facts.has_tcp;
    case packet::protocol_udp:
      return facts.has_ports;
    case packet::protocol_icmp:
    case packet::protocol_icmpv6: {
      const bool v4 = facts.protocol == packet::protocol_icmp;
      const bool echo = v4 ? facts.icmp_type == 0 || facts.icmp_type == 8 : facts.icmp_type >= 128;
      if (echo && facts.icmp_id && (v4 || facts.icmp_type <= 129)) {
        out.source_port = out.destination_port = *facts.icmp_id;
      }
      return facts.transport_header.size() >= sizeof(packet::IcmpHeader);
    }
    default:
      if (!packet::has_ports(facts.protocol)) return true;
      if (!facts.has_ports && facts.payload.size() >= 4) {
        out.source_port = static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
        out.destination_port = static_cast<std::uint16_t>(bytes[2] << 8 | bytes[3]);
      }
      return facts.protocol != packet::protocol_udp_lite || facts.payload.size() >= sizeof(packet::UdpHeader);
  }
}

}  // namespace

bool read_packet(const packet::HeaderFacts& facts, Packet& packet) {
  if (facts.family == 0 || !facts.whole) {
    return false;
  }
  packet.source = facts.source.bytes;
  packet.destination = facts.destination.bytes;
  packet.family = facts.family;
  packet.fragment = facts.fragment();
  packet.ip_length = facts.ip_length;
  packet.window_scale = 0xff;
  if (packet.fragment) {
    packet.protocol = facts.family == 6 ? facts.fragment_protocol : facts.protocol;
    packet.source_port = packet.destination_port = 0;
    packet.tcp_flags = 0;
    packet.payload = {};
    return true;
  }
  packet.protocol = facts.protocol;
  packet.source_port = facts.source_port;
  packet.destination_port = facts.destination_port;
  packet.tcp_flags = facts.tcp_flags;
  packet.window = facts.tcp_window;
  packet.sequence = facts.tcp_sequence;
  packet.acknowledgment = facts.tcp_acknowledgement;
  packet.payload = copy_of(facts.payload);
  if ((facts.tcp_flags & tcp_syn) != 0 && facts.has_tcp) {
    packet.window_scale = window_scale(facts.transport_header.substr(sizeof(packet::TcpHeader)));
  }
  return read_transport(facts, packet);
}

bool has_fast_open(std::string_view tcp_header) {
  constexpr std::uint8_t fast_open = 34, experiments[] = {253, 254};
  constexpr std::string_view experiment("\xf9\x89", 2);
  if (tcp_header.size() < sizeof(packet::TcpHeader)) {
    return false;
  }
  return any_option(tcp_header.substr(sizeof(packet::TcpHeader)), [&](std::uint8_t kind, std::size_t,
                                                                      std::string_view value) {
    return kind == fast_open || ((kind == experiments[0] || kind == experiments[1]) && value.starts_with(experiment));
  });
}

bool read_packet(const std::uint8_t* ip, std::uint32_t length, Packet& packet) {
  packet::HeaderFacts facts;
  packet::read_ip_headers({reinterpret_cast<const char*>(ip), length}, facts);
  return read_packet(facts, packet);
}

}  // namespace sluice::flow
