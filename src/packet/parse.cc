#include "packet/parse.h"

#include "packet/ipv6_length.h"

namespace sluice::packet {
namespace detail {
namespace {

// What an address means to a router that sees it in a packet.
enum class Role { forward, host, refuse };

// RFC 1812 section 5.3.7, but for what Linux forwards: 0/8 without 0.0.0.0, and 240/4 without the broadcast address.
// Link-local: RFC 3927 section 2.7.
Role ipv4_source(std::uint32_t address, bool to_group) {
  if (address == 0) {
    return to_group ? Role::host : Role::refuse;  // a host that has no address yet asks for one (DHCP)
  }
  if (address >> 24 == 127 || address >> 28 == 0xe || address == 0xffffffffU) {
    return Role::refuse;
  }
  return address >> 16 == 0xa9fe ? Role::host : Role::forward;
}

Role ipv4_destination(std::uint32_t address) {
  if (address == 0xffffffffU || address >> 28 == 0xe) {
    return Role::host;
  }
  if (address == 0 || address >> 24 == 127) {
    return Role::refuse;
  }
  return address >> 16 == 0xa9fe ? Role::host : Role::forward;
}

// RFC 4291 sections 2.5.2 (unspecified), 2.5.3 (loopback), 2.5.6 (link-local), 2.7 (multicast). IPv4-mapped addresses
// have no business in a packet (RFC 6890 table 20), and Linux forwards them as any other.
struct Ipv6Class {
  bool unspecified;
  bool loopback;
  bool link_local;
  bool multicast;
};

Ipv6Class classify(const std::uint8_t* address) {
  static constexpr std::uint8_t zeros[16] = {};
  const bool zero15 = std::memcmp(address, zeros, 15) == 0;
  return {
      .unspecified = zero15 && address[15] == 0,
      .loopback = zero15 && address[15] == 1,
      .link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80,
      .multicast = address[0] == 0xff,
  };
}

Reason parse_ipv4(const std::uint8_t* data, std::uint32_t length, FrameView& view) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  if (length < l3 + sizeof(Ipv4Header)) {
    return frame_too_short;
  }
  const auto& ip = header_at<Ipv4Header>(data, l3);
  const std::uint32_t header_length = (ip.version_ihl & 0x0fU) * 4U;
  const std::uint32_t total = be16(ip.total_length);
  if (ip.version_ihl >> 4 != 4) {
    return bad_ip_version;
  }
  if (header_length < sizeof(Ipv4Header)) {
    return bad_header_length;
  }
  if (length < l3 + header_length) {
    return frame_too_short;
  }
  if (total < header_length || total > length - l3) {
    return bad_total_length;
  }
  if (internet_checksum(&ip, header_length) != 0) {
    return bad_checksum;
  }
  const Role destination = ipv4_destination(be32(ip.destination));
  const bool to_group = be32(ip.destination) >> 28 == 0xe || be32(ip.destination) == 0xffffffffU;
  const Role source = ipv4_source(be32(ip.source), to_group);
  if (source == Role::refuse) {
    return bad_source;
  }
  if (destination == Role::refuse) {
    return bad_destination;
  }
  const bool options = header_length != sizeof(Ipv4Header);
  const bool host = source == Role::host || destination == Role::host || options || (data[0] & 1) != 0;
  const bool fragment = (be16(ip.fragment) & (ipv4_more_fragments | ipv4_fragment_offset)) != 0;
  view = {host ? FrameKind::host : FrameKind::ipv4, ip.ttl,  ip.protocol, l3,
          static_cast<std::uint16_t>(total),        fragment};
  return no_reason;
}

Reason parse_ipv6(const std::uint8_t* data, std::uint32_t length, FrameView& view) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  if (length < l3 + sizeof(Ipv6Header)) {
    return frame_too_short;
  }
  const auto& ip = header_at<Ipv6Header>(data, l3);
  const std::uint32_t total = ipv6_length(ip, length - l3);
  if (data[l3] >> 4 != 6) {
    return bad_ip_version;
  }
  if (total > length - l3 || total > 0xffff) {
    return bad_total_length;
  }
  const Ipv6Class source = classify(ip.source);
  const Ipv6Class destination = classify(ip.destination);
  if (source.multicast || source.loopback) {
    return bad_source;
  }
  if (destination.unspecified || destination.loopback) {
    return bad_destination;
  }
  const bool host = source.unspecified || source.link_local || destination.link_local || destination.multicast ||
                    ip.next_header == protocol_hop_by_hop || (data[0] & 1) != 0;
  const bool fragment = ip.next_header == protocol_fragment;
  view = {host ? FrameKind::host : FrameKind::ipv6, ip.hop_limit, ip.next_header, l3,
          static_cast<std::uint16_t>(total),        fragment};
  return no_reason;
}

}  // namespace

Reason parse_slow(const std::uint8_t* data, std::uint32_t length, FrameView& view) {
  if (length < sizeof(EthernetHeader)) {
    return frame_too_short;
  }
  switch (be16(header_at<EthernetHeader>(data, 0).ethertype)) {
    case ethertype_ipv4:
      return parse_ipv4(data, length, view);
    case ethertype_ipv6:
      return parse_ipv6(data, length, view);
    default:
      view = {FrameKind::host, 0, 0, sizeof(EthernetHeader), 0, false};
      return no_reason;
  }
}

}  // namespace detail

bool has_source_route(const std::uint8_t* packet) {
  constexpr std::uint8_t end = 0, no_operation = 1, loose = 131, strict = 137;
  const std::uint32_t header = (packet[0] & 0xfU) * 4U;
  for (std::uint32_t at = sizeof(Ipv4Header); at < header && packet[at] != end;) {
    if (packet[at] == loose || packet[at] == strict) {
      return true;
    }
    if (packet[at] == no_operation) {
      ++at;
      continue;
    }
    if (at + 1 == header || packet[at + 1] < 2) {
      return false;
    }
    at += packet[at + 1];
  }
  return false;
}

}  // namespace sluice::packet
