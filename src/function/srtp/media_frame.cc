#include "function/srtp/media_frame.h"

#include <cstring>

#include "function/acl/frame_key.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"

namespace sluice::function {
namespace {

using packet::be16;

constexpr std::uint32_t l3 = sizeof(packet::EthernetHeader);
constexpr std::uint32_t udp4 = l3 + sizeof(packet::Ipv4Header);
constexpr std::uint32_t udp6 = l3 + sizeof(packet::Ipv6Header);
constexpr std::uint8_t version4_plain = 0x45;

// `end`: of the IP packet in the frame.
void read_udp(const std::uint8_t* frame, std::uint32_t length, std::uint32_t at, std::uint32_t end, MediaFrame& media) {
  if (length < at + sizeof(packet::UdpHeader)) {
    media.kind = MediaFrameKind::other;  // it has no ports
    return;
  }
  const auto& udp = packet::header_at<packet::UdpHeader>(frame, at);
  media.udp_offset = static_cast<std::uint16_t>(at);
  media.key.source_port = udp.source_port;
  media.key.destination_port = udp.destination_port;
  const std::uint32_t udp_length = be16(udp.length);
  const bool agrees = end <= length && udp_length >= sizeof udp && at + udp_length == end;
  media.kind = agrees ? MediaFrameKind::plain : MediaFrameKind::bad;
}

void set_addresses(MediaKey& key, std::uint32_t family, const void* source, const void* destination) {
  const std::size_t size = family == 4 ? 4 : 16;
  key = {};
  key.family = family;
  std::memcpy(key.source, source, size);
  std::memcpy(key.destination, destination, size);
}

template <typename Key>
void take_odd(const Key& from, std::uint32_t family, MediaFrame& media) {
  if (from.protocol != packet::protocol_udp) return;
  set_addresses(media.key, family, from.source, from.destination);
  std::memcpy(&media.key.source_port, from.source_port, sizeof media.key.source_port);
  std::memcpy(&media.key.destination_port, from.destination_port, sizeof media.key.destination_port);
  media.kind = MediaFrameKind::odd;
}

[[gnu::cold, gnu::noinline]] void read_odd(const std::uint8_t* frame, std::uint32_t length, MediaFrame& media) {
  lookup::acl::Key4 key4;
  lookup::acl::Key6 key6;
  switch (make_key(frame, length, key4, key6)) {
    case KeyKind::ipv4:
      take_odd(key4, 4, media);
      break;
    case KeyKind::ipv6:
      take_odd(key6, 6, media);
      break;
    case KeyKind::not_ip:
    case KeyKind::malformed:
      break;
  }
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
  if (length < udp4) return;
  switch (be16(packet::header_at<packet::EthernetHeader>(frame, 0).ethertype)) {
    case packet::ethertype_ipv4: {
      const auto& ip = packet::header_at<packet::Ipv4Header>(frame, l3);
      if (ip.protocol != packet::protocol_udp) return;
      const std::uint16_t cut = ip.fragment & be16(packet::ipv4_more_fragments | packet::ipv4_fragment_offset);
      if (ip.version_ihl != version4_plain || cut != 0) [[unlikely]] {
        return read_odd(frame, length, media);
      }
      set_addresses(media.key, 4, &ip.source, &ip.destination);
      return read_udp(frame, length, udp4, l3 + be16(ip.total_length), media);
    }
    case packet::ethertype_ipv6: {
      if (length < udp6) return;
      const auto& ip = packet::header_at<packet::Ipv6Header>(frame, l3);
      if (ip.next_header != packet::protocol_udp) {
        return packet::is_ipv6_extension(ip.next_header) ? read_odd(frame, length, media) : void();
      }
      if (frame[l3] >> 4 != 6) return;
      set_addresses(media.key, 6, ip.source, ip.destination);
      return read_udp(frame, length, udp6, udp6 + be16(ip.payload_length), media);
    }
    case packet::ethertype_vlan:
    case packet::ethertype_qinq:
    case packet::ethertype_old_qinq:
      return read_odd(frame, length, media);
    default:
      return;
  }
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
