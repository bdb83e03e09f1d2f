#include "function/srtp/media_frame.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/metadata.h"

namespace sluice::function {
namespace {

using packet::be16;

constexpr std::uint32_t l3 = sizeof(packet::EthernetHeader);
constexpr std::uint32_t udp4 = l3 + sizeof(packet::Ipv4Header);
constexpr std::uint32_t udp6 = l3 + sizeof(packet::Ipv6Header);

void take_addresses(const std::uint8_t* frame, const packet::Metadata& meta, MediaKey& key) {
  const std::size_t size = meta.family == 4 ? 4 : 16;
  key = {};
  key.family = meta.family;
  std::memcpy(key.source, meta.source(frame), size);
  std::memcpy(key.destination, meta.destination(frame), size);
}

// UDP over plain IP.
void take_plain(const std::uint8_t* frame, std::uint32_t length, const packet::Metadata& meta, MediaFrame& media) {
  if (length < meta.transport + sizeof(packet::UdpHeader)) return;  // it has no ports
  const auto& udp = packet::header_at<packet::UdpHeader>(frame, meta.transport);
  take_addresses(frame, meta, media.key);
  media.udp_offset = static_cast<std::uint16_t>(meta.transport);
  media.key.source_port = udp.source_port;
  media.key.destination_port = udp.destination_port;
  const std::uint32_t udp_length = be16(udp.length);
  const bool agrees = meta.whole && udp_length >= sizeof udp && meta.transport + udp_length == meta.end;
  media.kind = agrees ? MediaFrameKind::plain : MediaFrameKind::bad;
}

[[gnu::cold, gnu::noinline]] void read_odd(const std::uint8_t* frame, std::uint32_t length, MediaFrame& media) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (meta.family == 0 || meta.protocol != packet::protocol_udp) return;
  const bool plain_ip = meta.transport == (meta.family == 4 ? udp4 : udp6) && !meta.fragment();
  if (plain_ip) return take_plain(frame, length, meta, media);
  if (!meta.is_whole_packet() || (!meta.later && !meta.has_ports)) return;
  take_addresses(frame, meta, media.key);
  media.key.source_port = be16(meta.source_port);
  media.key.destination_port = be16(meta.destination_port);
  media.kind = MediaFrameKind::odd;
}

}  // namespace

std::uint64_t hash_of(const MediaKey& key) {
  using packet::detail::load;
  const std::uint64_t source = packet::detail::ipv6_end(key.source, key.source_port);
  const std::uint64_t destination = packet::detail::ipv6_end(key.destination, key.destination_port);
  return packet::detail::multiply_fold(source ^ 0x9e3779b97f4a7c15U, destination ^ 0xd1b54a32d192ed03U ^ key.family);
}

void read_media_frame(const std::uint8_t* frame, std::uint32_t length, MediaFrame& media) {
  media.kind = MediaFrameKind::other;
  packet::Metadata meta;
  if (!packet::read_plain(frame, length, meta)) [[unlikely]]
    return read_odd(frame, length, media);
  if (meta.protocol == packet::protocol_udp) take_plain(frame, length, meta, media);
}

std::uint32_t udp_payload_length(const std::uint8_t* frame, const MediaFrame& media) {
  return be16(packet::header_at<packet::UdpHeader>(frame, media.udp_offset).length) -
         std::uint32_t{sizeof(packet::UdpHeader)};
}

namespace {

std::uint16_t udp_checksum(std::uint8_t* frame, std::uint32_t udp_offset) {
  auto& udp = packet::header_at<packet::UdpHeader>(frame, udp_offset);
  udp.checksum = 0;
  const std::uint32_t length = be16(udp.length);
  return udp_offset == udp4 ? packet::transport_checksum(packet::header_at<packet::Ipv4Header>(frame, l3), &udp, length)
                            : packet::transport_checksum(packet::header_at<packet::Ipv6Header>(frame, l3),
                                                         packet::protocol_udp, &udp, length);
}

std::uint16_t udp_checksum(const std::uint8_t* frame, std::uint32_t udp_offset, std::uint16_t payload_sum) {
  const auto& udp = packet::header_at<packet::UdpHeader>(frame, udp_offset);
  std::uint64_t sum = payload_sum + std::uint64_t{udp.source_port} + udp.destination_port;
  sum += 2U * udp.length + be16(packet::protocol_udp);  // the length is in the pseudo-header, too
  if (udp_offset == udp4) {
    const auto& ip = packet::header_at<packet::Ipv4Header>(frame, l3);
    sum += std::uint64_t{ip.source} + ip.destination;
  } else {
    const auto& ip = packet::header_at<packet::Ipv6Header>(frame, l3);
    sum = packet::partial_sum(ip.source, sizeof ip.source + sizeof ip.destination, sum);
  }
  const std::uint16_t checksum = packet::finish_sum(sum);
  return checksum != 0 ? checksum : 0xffff;
}

// All but UDP's checksum. Whether there is to be one.
bool set_lengths(std::uint8_t* frame, std::uint32_t udp_offset, std::uint32_t length) {
  auto& udp = packet::header_at<packet::UdpHeader>(frame, udp_offset);
  const std::uint16_t udp_length = static_cast<std::uint16_t>(sizeof udp + length);
  udp.length = be16(udp_length);
  if (udp_offset == udp4) {
    auto& ip = packet::header_at<packet::Ipv4Header>(frame, l3);
    const std::uint16_t total = be16(static_cast<std::uint16_t>(sizeof ip + udp_length));
    ip.checksum = packet::update_checksum(ip.checksum, ip.total_length, total);
    ip.total_length = total;
  } else {
    packet::header_at<packet::Ipv6Header>(frame, l3).payload_length = be16(udp_length);
  }
  return udp.checksum != 0 || udp_offset != udp4;
}

std::uint32_t frame_length(std::uint32_t udp_offset, std::uint32_t length) {
  return udp_offset + std::uint32_t{sizeof(packet::UdpHeader)} + length;
}

}  // namespace

bool has_udp_checksum(const std::uint8_t* frame, const MediaFrame& media) {
  return packet::header_at<packet::UdpHeader>(frame, media.udp_offset).checksum != 0;
}

bool udp_checksum_ok(std::uint8_t* frame, const MediaFrame& media) {
  auto& udp = packet::header_at<packet::UdpHeader>(frame, media.udp_offset);
  const std::uint16_t given = udp.checksum;
  if (given == 0) return media.key.family == 4;
  const std::uint16_t right = udp_checksum(frame, media.udp_offset);
  udp.checksum = given;
  return given == right;
}

bool udp_checksum_ok(const std::uint8_t* frame, std::uint32_t udp_offset, std::uint16_t payload_sum) {
  const std::uint16_t given = packet::header_at<packet::UdpHeader>(frame, udp_offset).checksum;
  return given == 0 ? udp_offset == udp4 : given == udp_checksum(frame, udp_offset, payload_sum);
}

std::uint32_t set_udp_payload_length(std::uint8_t* frame, std::uint32_t udp_offset, std::uint32_t length) {
  if (set_lengths(frame, udp_offset, length)) {
    packet::header_at<packet::UdpHeader>(frame, udp_offset).checksum = udp_checksum(frame, udp_offset);
  }
  return frame_length(udp_offset, length);
}

std::uint32_t set_udp_payload_length(std::uint8_t* frame, std::uint32_t udp_offset, std::uint32_t length,
                                     std::uint16_t payload_sum) {
  if (set_lengths(frame, udp_offset, length)) {
    packet::header_at<packet::UdpHeader>(frame, udp_offset).checksum = udp_checksum(frame, udp_offset, payload_sum);
  }
  return frame_length(udp_offset, length);
}

}  // namespace sluice::function
