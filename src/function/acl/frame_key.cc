#include "function/acl/frame_key.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using lookup::acl::Key4;
using lookup::acl::Key6;
using packet::be16;

constexpr std::uint32_t tcp_flags_end = 14;  // bytes of a TCP header up to and with its flags
constexpr std::uint32_t ports_end = 4;
constexpr std::uint32_t fragment_unit = 8;

// What lies behind the Ethernet header and its tags.
struct Payload {
  std::uint16_t ethertype;
  std::uint32_t at;
  bool cut;  // in a tag, or there are more of them
};

Payload payload_of(const std::uint8_t* frame, std::uint32_t length) {
  Payload payload{be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype), sizeof(packet::EthernetHeader),
                  false};
  for (unsigned tags = 0; packet::is_vlan_tag(payload.ethertype);) {
    if (++tags > packet::most_vlan_tags || length - payload.at < sizeof(packet::VlanHeader)) {
      payload.cut = true;
      break;
    }
    payload.ethertype = be16(packet::header_at<packet::VlanHeader>(frame, payload.at).ethertype);
    payload.at += sizeof(packet::VlanHeader);
  }
  return payload;
}

// Ports and flags, of the transport header in these bytes; false: it is cut short.
template <typename Key>
bool read_transport(const std::uint8_t* data, std::uint32_t length, Key& key) {
  std::uint32_t needed = 0;
  switch (key.protocol) {
    case packet::protocol_tcp:
      needed = tcp_flags_end;
      break;
    case packet::protocol_icmp:
    case packet::protocol_icmpv6:
      key.flags = length != 0 ? data[0] : 0;
      return length != 0;
    default:
      if (!packet::has_ports(key.protocol)) return true;
      needed = ports_end;
  }
  if (length < needed) return false;
  std::memcpy(key.source_port, data, sizeof key.source_port);
  std::memcpy(key.destination_port, data + sizeof key.source_port, sizeof key.destination_port);
  if (needed == tcp_flags_end) key.flags = data[tcp_flags_end - 1];
  return true;
}

template <typename Key>
void clear_transport(Key& key) {
  std::memset(key.source_port, 0, sizeof(Key) - offsetof(Key, source_port));
}

// Of a fragment that is not the first: whether it covers a TCP header's flags.
bool hides_flags(std::uint32_t offset, std::uint8_t protocol) {
  return protocol == packet::protocol_tcp && offset * fragment_unit < tcp_flags_end;
}

KeyKind make_key4(const std::uint8_t* packet, std::uint32_t length, Key4& key) {
  if (length < sizeof(packet::Ipv4Header)) return KeyKind::malformed;
  const auto& ip = packet::header_at<packet::Ipv4Header>(packet, 0);
  const std::uint32_t header = (ip.version_ihl & 0xfU) * 4U;
  const std::uint32_t total = be16(ip.total_length);
  if (ip.version_ihl >> 4 != 4 || header < sizeof(packet::Ipv4Header) || total < header || total > length) {
    return KeyKind::malformed;
  }
  clear_transport(key);
  std::memcpy(key.source, &ip.source, sizeof key.source);
  std::memcpy(key.destination, &ip.destination, sizeof key.destination);
  key.protocol = ip.protocol;
  if (const std::uint32_t offset = be16(ip.fragment) & packet::ipv4_fragment_offset; offset != 0) {
    return hides_flags(offset, key.protocol) ? KeyKind::malformed : KeyKind::ipv4;
  }
  return read_transport(packet + header, total - header, key) ? KeyKind::ipv4 : KeyKind::malformed;
}

KeyKind make_key6(const std::uint8_t* packet, std::uint32_t length, Key6& key) {
  if (length < sizeof(packet::Ipv6Header)) return KeyKind::malformed;
  const auto& ip = packet::header_at<packet::Ipv6Header>(packet, 0);
  const std::uint32_t end = sizeof(packet::Ipv6Header) + be16(ip.payload_length);
  if (packet[0] >> 4 != 6 || end > length) return KeyKind::malformed;
  clear_transport(key);
  std::memcpy(key.source, ip.source, sizeof key.source);
  std::memcpy(key.destination, ip.destination, sizeof key.destination);
  key.protocol = ip.next_header;
  std::uint32_t at = sizeof(packet::Ipv6Header);
  for (unsigned extensions = 0;; ++extensions) {
    const bool is_fragment = key.protocol == packet::protocol_fragment;
    if (!packet::is_ipv6_extension(key.protocol)) {
      return read_transport(packet + at, end - at, key) ? KeyKind::ipv6 : KeyKind::malformed;
    }
    if (extensions == packet::most_ipv6_extensions || end - at < sizeof(packet::Ipv6Fragment))
      return KeyKind::malformed;
    const auto& extension = packet::header_at<packet::Ipv6Extension>(packet, at);
    key.protocol = extension.next_header;
    if (is_fragment) {
      const std::uint32_t offset = be16(packet::header_at<packet::Ipv6Fragment>(packet, at).offset_more) >> 3;
      if (offset != 0) return hides_flags(offset, key.protocol) ? KeyKind::malformed : KeyKind::ipv6;
      at += sizeof(packet::Ipv6Fragment);
    } else {
      at += 8U * (extension.length + 1U);
    }
    if (at > end) return KeyKind::malformed;
  }
}

}  // namespace

KeyKind make_key(const std::uint8_t* frame, std::uint32_t length, Key4& key4, Key6& key6) {
  if (length < sizeof(packet::EthernetHeader)) return KeyKind::not_ip;
  const Payload payload = payload_of(frame, length);
  if (payload.cut) return KeyKind::malformed;
  switch (payload.ethertype) {
    case packet::ethertype_ipv4:
      return make_key4(frame + payload.at, length - payload.at, key4);
    case packet::ethertype_ipv6:
      return make_key6(frame + payload.at, length - payload.at, key6);
    default:
      return KeyKind::not_ip;
  }
}

void set_dscp(std::uint8_t* frame, std::uint32_t length, std::uint8_t dscp) {
  const Payload payload = payload_of(frame, length);
  std::uint8_t* const packet = frame + payload.at;
  std::uint16_t before;
  std::memcpy(&before, packet, sizeof before);
  if (payload.ethertype == packet::ethertype_ipv4) {
    packet[1] = static_cast<std::uint8_t>(dscp << 2 | (packet[1] & 3));
    std::uint16_t after;
    std::memcpy(&after, packet, sizeof after);
    auto& ip = packet::header_at<packet::Ipv4Header>(packet, 0);
    ip.checksum = packet::update_checksum(ip.checksum, before, after);
  } else {
    // Version 4 bits, DSCP 6 bits, ECN 2 bits, the flow label's first 4 bits.
    const auto after = static_cast<std::uint16_t>((be16(before) & 0xf03fU) | static_cast<std::uint32_t>(dscp) << 6);
    const std::uint16_t bytes = be16(after);
    std::memcpy(packet, &bytes, sizeof bytes);
  }
}

}  // namespace sluice::function
