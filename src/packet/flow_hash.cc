#include "packet/flow_hash.h"

namespace sluice::packet::detail {

std::uint32_t hash_behind_extensions(const std::uint8_t* ip, std::uint32_t length) {
  constexpr std::uint32_t unit = 8;
  std::uint8_t next = header_at<Ipv6Header>(ip, 0).next_header;
  std::uint32_t at = sizeof(Ipv6Header);
  while (is_ipv6_extension(next) && at + unit <= length) {
    const std::uint8_t* const header = ip + at;
    if (next == protocol_fragment) {
      constexpr std::uint16_t offset_and_more = 0xfff9;
      const bool atomic = (be16(header_at<Ipv6Fragment>(header, 0).offset_more) & offset_and_more) == 0;
      // What is in front of it, and behind it, may be another for each fragment of a datagram.
      if (!atomic) {
        return hash_ipv6(ip, 0, 0, protocol_fragment);
      }
      at += unit;
    } else {
      at += (header_at<Ipv6Extension>(header, 0).length + 1U) * unit;
    }
    next = header[0];
  }
  const bool ports = has_ports(next) && at + 4 <= length;
  return hash_ipv6(ip, ports ? load<std::uint16_t>(ip + at) : 0, ports ? load<std::uint16_t>(ip + at + 2) : 0, next);
}

std::uint32_t hash_behind_tags(const std::uint8_t* data, std::uint32_t length) {
  std::uint32_t tags = 0;  // bytes
  const auto is_tagged = [&] {
    if (tags + sizeof(EthernetHeader) + sizeof(VlanHeader) > length) {
      return false;
    }
    return is_vlan_tag(be16(header_at<EthernetHeader>(data, tags).ethertype));
  };
  while (is_tagged()) {
    tags += sizeof(VlanHeader);
  }
  // The last ethertype and what is behind it lie as in a frame without tags; the link addresses do not count.
  FrameView view;
  if (tags == 0 || parse_frame(data + tags, length - tags, view) != no_reason || view.l3_length == 0) {
    return 0;
  }
  return flow_hash(data + tags, length - tags, view);
}

}  // namespace sluice::packet::detail
