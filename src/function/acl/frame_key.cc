#include "function/acl/frame_key.h"

#include <cstddef>
#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::function {
namespace {

using lookup::acl::Key4;
using lookup::acl::Key6;
using packet::be16;
using packet::Metadata;

constexpr std::uint32_t tcp_flags_end = 14;  // bytes of a TCP header up to and with its flags

// Ports and flags; false: they are cut off.
template <typename Key>
bool take_transport(const std::uint8_t* frame, const Metadata& meta, Key& key) {
  if (meta.later) return !meta.hides_transport;
  const std::uint8_t* const header = frame + meta.transport;
  const std::uint32_t length = meta.end - meta.transport;
  switch (key.protocol) {
    case packet::protocol_icmp:
    case packet::protocol_icmpv6:
      if (length == 0) return false;
      key.flags = header[0];
      return true;
    case packet::protocol_tcp:
      if (length < tcp_flags_end) return false;
      key.flags = header[tcp_flags_end - 1];
      break;
    default:
      if (!packet::has_ports(key.protocol)) return true;
      if (!meta.has_ports) return false;
  }
  std::memcpy(key.source_port, header, sizeof key.source_port);
  std::memcpy(key.destination_port, header + sizeof key.source_port, sizeof key.destination_port);
  return true;
}

template <typename Key>
bool take_key(const std::uint8_t* frame, const Metadata& meta, Key& key) {
  std::memset(key.source_port, 0, sizeof(Key) - offsetof(Key, source_port));
  std::memcpy(key.source, meta.source(frame), sizeof key.source);
  std::memcpy(key.destination, meta.destination(frame), sizeof key.destination);
  key.protocol = meta.protocol;
  return take_transport(frame, meta, key);
}

}  // namespace

KeyKind make_key(const std::uint8_t* frame, std::uint32_t length, Key4& key4, Key6& key6) {
  Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (meta.family == 0) return meta.is_broken() ? KeyKind::malformed : KeyKind::not_ip;
  if (!meta.is_whole_packet()) return KeyKind::malformed;
  if (meta.family == 4) return take_key(frame, meta, key4) ? KeyKind::ipv4 : KeyKind::malformed;
  return take_key(frame, meta, key6) ? KeyKind::ipv6 : KeyKind::malformed;
}

void set_dscp(std::uint8_t* frame, std::uint32_t length, std::uint8_t dscp) {
  Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::link, meta);
  std::uint8_t* const packet = frame + meta.network;
  std::uint16_t before;
  std::memcpy(&before, packet, sizeof before);
  if (meta.type == packet::ethertype_ipv4) {
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
