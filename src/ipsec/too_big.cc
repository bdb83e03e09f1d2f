#include "ipsec/too_big.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::ipsec {
namespace {

using packet::be16;
using packet::be32;
using packet::header_at;
using packet::Ipv4Header;
using packet::Ipv6Header;
using packet::UdpHeader;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t icmp_header = 8;
constexpr std::uint8_t unreachable = 3, fragmentation_needed = 4, packet_too_big = 2;

std::uint16_t half_at(const std::uint8_t* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return be16(value);
}

std::uint32_t word_at(const std::uint8_t* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return be32(value);
}

// The quoted packet's IP headers; returns their bytes, or 0: it is none that is asked about.
std::uint32_t read_quoted_ip(const std::uint8_t* quoted, std::uint32_t length, TooBig& error, std::uint8_t& protocol) {
  if (error.family == 4) {
    if (length < sizeof(Ipv4Header) || quoted[0] >> 4 != 4) return 0;
    const auto& ip = header_at<Ipv4Header>(quoted, 0);
    const std::uint32_t bytes = (quoted[0] & 0xfU) * 4U;
    constexpr std::uint16_t offset = 0x1fff;
    if (bytes < sizeof ip || (be16(ip.fragment) & offset) != 0) return 0;
    std::memcpy(error.source.data(), &ip.source, sizeof ip.source);
    std::memcpy(error.destination.data(), &ip.destination, sizeof ip.destination);
    error.length = be16(ip.total_length);
    protocol = ip.protocol;
    return bytes;
  }
  if (length < sizeof(Ipv6Header) || quoted[0] >> 4 != 6) return 0;
  const auto& ip = header_at<Ipv6Header>(quoted, 0);
  std::memcpy(error.source.data(), ip.source, sizeof ip.source);
  std::memcpy(error.destination.data(), ip.destination, sizeof ip.destination);
  error.length = sizeof ip + be16(ip.payload_length);
  protocol = ip.next_header;
  std::uint32_t at = sizeof ip;
  // In transport mode such headers may stand in front. A fragment is none of Sluice's.
  while (packet::is_ipv6_extension(protocol) && protocol != packet::protocol_fragment) {
    if (at + 2 > length) return 0;
    protocol = quoted[at];
    at += (quoted[at + 1] + 1U) * 8U;
  }
  return at;
}

}  // namespace

bool is_too_big(const std::uint8_t* frame, std::uint32_t length) {
  if (length < ethernet + sizeof(Ipv4Header) + icmp_header) return false;
  if (frame[12] == 0x08) {
    return frame[ethernet + 9] == packet::protocol_icmp && frame[13] == 0 && frame[ethernet] == 0x45 &&
           frame[ethernet + 20] == unreachable && frame[ethernet + 21] == fragmentation_needed;
  }
  return frame[12] == 0x86 && frame[ethernet + 6] == packet::protocol_icmpv6 && frame[13] == 0xdd &&
         length >= ethernet + sizeof(Ipv6Header) + icmp_header && frame[ethernet + 40] == packet_too_big;
}

std::optional<TooBig> read_too_big(const std::uint8_t* frame, std::uint32_t length) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (!meta.is_whole_packet() || meta.fragment() || meta.network != ethernet || !meta.has_header) return {};
  TooBig error{.family = meta.family};
  const std::uint8_t* const icmp = frame + meta.transport;
  const std::uint32_t bytes = meta.end - meta.transport;
  if (bytes < icmp_header) return {};
  if (meta.family == 4) {
    if (meta.protocol != packet::protocol_icmp || packet::internet_checksum(icmp, bytes) != 0) return {};
    error.mtu = half_at(icmp + 6);
  } else {
    if (meta.protocol != packet::protocol_icmpv6) return {};
    const auto& ip = header_at<Ipv6Header>(frame, ethernet);
    if (packet::transport_checksum(ip, packet::protocol_icmpv6, icmp, bytes) != 0) return {};
    error.mtu = word_at(icmp + 4);
  }
  const std::uint8_t* const quoted = icmp + icmp_header;
  const std::uint32_t left = bytes - icmp_header;
  std::uint8_t protocol = 0;
  std::uint32_t at = read_quoted_ip(quoted, left, error, protocol);
  if (at == 0) return {};
  if (std::memcmp(error.source.data(), meta.destination(frame), meta.family == 4 ? 4 : 16) != 0) return {};
  if (protocol == packet::protocol_udp) {
    error.in_udp = true;
    at += sizeof(UdpHeader);
  } else if (protocol == packet::protocol_ah) {
    error.protocol = Protocol::ah;
    at += offsetof(packet::AhHeader, spi);
  } else if (protocol != packet::protocol_esp) {
    return {};
  }
  if (at + sizeof(packet::EspHeader) > left) return {};
  error.spi = word_at(quoted + at);
  error.sequence = word_at(quoted + at + 4);
  return error;
}

}  // namespace sluice::ipsec
