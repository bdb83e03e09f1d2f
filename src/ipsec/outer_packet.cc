#include "ipsec/outer_packet.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/ecn.h"
#include "packet/metadata.h"

namespace sluice::ipsec {
namespace {

using packet::be16;
using packet::be32;
using packet::EspHeader;
using packet::header_at;
using packet::Ipv4Header;
using packet::Ipv6Header;
using packet::UdpHeader;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint8_t ecn_mask = 3;

// Of an IP packet without options and extension headers in front: bytes of it; 0: it is none.
std::uint32_t length_of_inner(const std::uint8_t* packet, std::uint32_t most, std::uint8_t next_header) {
  if (next_header == packet::protocol_ipv4) {
    if (most < sizeof(Ipv4Header) || packet[0] >> 4 != 4) return 0;
    const std::uint32_t length = be16(header_at<Ipv4Header>(packet, 0).total_length);
    return length < sizeof(Ipv4Header) ? 0 : length;
  }
  if (most < sizeof(Ipv6Header) || packet[0] >> 4 != 6) return 0;
  return sizeof(Ipv6Header) + be16(header_at<Ipv6Header>(packet, 0).payload_length);
}

Taken take_out_of_tunnel(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t at,
                         std::uint32_t payload, std::uint8_t next_header) {
  if (next_header != packet::protocol_ipv4 && next_header != packet::protocol_ipv6) return {};
  const std::uint32_t length = length_of_inner(frame + at, payload, next_header);
  if (length == 0 || length > payload) return {};
  const std::uint32_t front = at - ethernet;
  std::memmove(frame + front, frame, ethernet);
  header_at<packet::EthernetHeader>(frame, front).ethertype =
      be16(next_header == packet::protocol_ipv4 ? packet::ethertype_ipv4 : packet::ethertype_ipv6);
  if (format.ecn && (view.tos & ecn_mask) != 0) {
    const std::uint8_t* const inner = frame + at;
    const bool v4 = next_header == packet::protocol_ipv4;
    const auto before = static_cast<packet::Ecn>((v4 ? inner[1] : packet::ipv6_traffic_class(inner)) & ecn_mask);
    const auto after = packet::ecn_unwrapped(before, static_cast<packet::Ecn>(view.tos & ecn_mask));
    if (!after) return {Content::congested, 0, 0};
    if (*after != before) {
      packet::set_ecn(frame + front, {.offset = ethernet, .family = static_cast<std::uint8_t>(v4 ? 4 : 6)}, *after);
    }
  }
  return {Content::packet, front, ethernet + length};
}

// RFC 3948 section 3.1.2: NAT has changed addresses that the checksum of TCP or UDP counts, so it is made anew. What it
// covers is authentic.
void mend_checksum(std::uint8_t* frame, std::uint32_t length) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (!meta.is_whole_packet() || meta.fragment() || !meta.has_header) return;
  std::uint8_t* const segment = frame + meta.transport;
  std::uint32_t bytes = meta.end - meta.transport;
  std::uint32_t at = offsetof(packet::TcpHeader, checksum);
  if (meta.protocol == packet::protocol_udp) {
    const auto& udp = header_at<UdpHeader>(segment, 0);
    const std::uint32_t datagram = be16(udp.length);
    if (udp.checksum == 0 || datagram < sizeof udp || datagram > bytes) return;
    bytes = datagram;
    at = offsetof(UdpHeader, checksum);
  } else if (meta.protocol != packet::protocol_tcp) {
    return;
  }
  std::memset(segment + at, 0, sizeof(std::uint16_t));
  const std::uint16_t checksum =
      meta.family == 4
          ? packet::transport_checksum(header_at<Ipv4Header>(frame, ethernet), segment, bytes)
          : packet::transport_checksum(header_at<Ipv6Header>(frame, ethernet), meta.protocol, segment, bytes);
  std::memcpy(segment + at, &checksum, sizeof checksum);
}

Taken take_out_of_transport(std::uint8_t* frame, const OuterView& view, std::uint32_t at, std::uint32_t payload,
                            std::uint8_t next_header) {
  const std::uint32_t udp = view.in_udp ? sizeof(UdpHeader) : 0;
  const std::uint32_t headers = view.at - udp - ethernet;
  const std::uint32_t front = at - ethernet - headers;
  std::memmove(frame + front, frame, ethernet + headers);
  std::uint8_t* const ip = frame + front + ethernet;
  change_headers(ip, view.family, headers + payload, view.named_at - ethernet, next_header);
  if (view.in_udp) mend_checksum(frame + front, ethernet + headers + payload);
  return {Content::packet, front, ethernet + headers + payload};
}

}  // namespace

OuterKind find_outer(const std::uint8_t* frame, std::uint32_t length, OuterView& view) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (!meta.is_whole_packet() || meta.tags != 0 || meta.network != ethernet) return OuterKind::other;
  const std::uint8_t protocol = meta.fragment() ? meta.fragment_protocol : meta.protocol;
  const bool is_ah = protocol == packet::protocol_ah;
  if (!is_ah && protocol != packet::protocol_esp && protocol != packet::protocol_udp) return OuterKind::other;
  if (protocol == packet::protocol_udp && !meta.fragment() && meta.destination_port != nat_traversal_port) {
    return OuterKind::other;
  }
  view.family = meta.family;
  view.source = meta.source(frame);
  view.destination = meta.destination(frame);
  view.in_udp = protocol == packet::protocol_udp;
  if (meta.fragment()) {
    std::uint32_t spi = 0;
    const std::uint32_t at = meta.transport + sizeof(UdpHeader);
    const bool shows = meta.has_ports && meta.destination_port == nat_traversal_port && at + sizeof spi <= meta.end;
    if (shows) std::memcpy(&spi, frame + at, sizeof spi);
    view.is_own_fragment = !view.in_udp || spi != 0;
    return OuterKind::fragment;
  }
  view.tos = meta.family == 4 ? frame[ethernet + 1] : packet::ipv6_traffic_class(frame + ethernet);
  view.at = meta.transport;
  view.length = meta.end - meta.transport;
  view.named_at = ethernet + (meta.family == 4 ? offsetof(Ipv4Header, protocol) : offsetof(Ipv6Header, next_header));
  if (meta.family == 6) {
    std::uint32_t at = ethernet + sizeof(Ipv6Header);
    while (at < meta.transport) {
      const std::uint8_t kind = frame[view.named_at];
      view.named_at = static_cast<std::uint16_t>(at);
      at += kind == packet::protocol_fragment ? 8U : (frame[at + 1] + 1U) * 8U;
    }
  }
  if (view.in_udp) {
    if (view.length < sizeof(UdpHeader)) return OuterKind::other;
    const auto& udp = header_at<UdpHeader>(frame, view.at);
    const std::uint32_t datagram = be16(udp.length);
    if (datagram < sizeof udp || datagram > view.length) return OuterKind::other;
    view.udp_source = be16(udp.source_port);
    view.at += sizeof udp;
    view.length = datagram - sizeof udp;
    if (view.length == 1 && frame[view.at] == 0xff) return OuterKind::keepalive;
    std::uint32_t marker = 0;
    if (view.length >= sizeof marker) std::memcpy(&marker, frame + view.at, sizeof marker);
    if (marker == 0) return OuterKind::other;  // IKE, or too short for either
  }
  view.protocol = is_ah ? Protocol::ah : Protocol::esp;
  const std::uint32_t ids = is_ah ? offsetof(packet::AhHeader, spi) : 0U;  // AH's stand in the same order
  if (view.length < ids + sizeof(EspHeader)) return OuterKind::cut;
  const auto& header = header_at<EspHeader>(frame, view.at + ids);
  view.spi = be32(header.spi);
  view.sequence = be32(header.sequence);
  return OuterKind::ipsec;
}

Taken take_out(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t at,
               std::uint32_t payload, std::uint8_t next_header) {
  return format.mode == Mode::tunnel ? take_out_of_tunnel(format, frame, view, at, payload, next_header)
                                     : take_out_of_transport(frame, view, at, payload, next_header);
}

}  // namespace sluice::ipsec
