#include "packet/metadata.h"

#include "packet/ipv6_length.h"

namespace sluice::packet {
namespace {

constexpr std::uint32_t sctp_header_bytes = 12, icmp_header_bytes = 8;
constexpr std::uint32_t tcp_flags_end = 14;  // bytes of a TCP header up to and with its flags

std::uint32_t tcp_header_bytes(const std::uint8_t* frame, const Metadata& meta) {
  if (meta.end - meta.transport < sizeof(TcpHeader)) return 0;
  const std::uint32_t size = (header_at<TcpHeader>(frame, meta.transport).data_offset >> 4) * 4U;
  return size < sizeof(TcpHeader) || size > meta.end - meta.transport ? 0 : size;
}

// Of the transport header; 0: it is cut, makes no sense, or is none that is known.
std::uint32_t transport_header_bytes(const std::uint8_t* frame, const Metadata& meta) {
  std::uint32_t size = 0;
  switch (meta.protocol) {
    case protocol_tcp:
      return tcp_header_bytes(frame, meta);
    case protocol_udp:
    case protocol_udp_lite:
      size = sizeof(UdpHeader);
      break;
    case protocol_sctp:
      size = sctp_header_bytes;
      break;
    case protocol_icmp:
    case protocol_icmpv6:
      size = icmp_header_bytes;
      break;
    default:
      return 0;
  }
  return size > meta.end - meta.transport ? 0 : size;
}

void read_transport(const std::uint8_t* frame, Metadata& meta) {
  meta.payload = meta.transport;
  meta.payload_end = meta.end;
  if (meta.later) return;
  if (has_ports(meta.protocol) && meta.end - meta.transport >= 4) {
    meta.has_ports = true;
    const auto& ports = header_at<UdpHeader>(frame, meta.transport);
    meta.source_port = be16(ports.source_port);
    meta.destination_port = be16(ports.destination_port);
  }
  const std::uint32_t size = transport_header_bytes(frame, meta);
  if (size == 0) return;
  meta.has_header = true;
  meta.payload += size;
  if (meta.protocol != protocol_udp) return;
  const std::uint32_t said = be16(header_at<UdpHeader>(frame, meta.transport).length);
  if (said == 0 && meta.family == 6) return;  // a jumbogram (RFC 2675 section 4): Linux takes all, however short
  meta.payload_end = std::min(meta.end, meta.transport + std::max(said, size));
}

void note_later(Metadata& meta, std::uint32_t offset) {
  meta.later = true;
  meta.hides_transport = meta.protocol == protocol_tcp && offset * 8 < tcp_flags_end;
}

void read_ipv4(const std::uint8_t* frame, std::uint32_t length, Metadata& meta) {
  const std::uint32_t there = length - meta.network;
  if (there < sizeof(Ipv4Header)) return;
  const auto& ip = header_at<Ipv4Header>(frame, meta.network);
  const std::uint32_t header = (ip.version_ihl & 0xfU) * 4U, total = be16(ip.total_length);
  if (ip.version_ihl >> 4 != 4 || header < sizeof(Ipv4Header) || header > std::min(total, there)) return;
  meta.family = 4;
  meta.ip_length = total;
  meta.whole = total <= there;
  meta.end = meta.network + std::min(total, there);
  meta.transport = meta.network + header;
  meta.protocol = meta.fragment_protocol = ip.protocol;
  const std::uint16_t fragment = be16(ip.fragment);
  meta.fragment_offset = fragment & ipv4_fragment_offset;
  meta.more_fragments = (fragment & ipv4_more_fragments) != 0;
  if (meta.fragment_offset != 0) note_later(meta, meta.fragment_offset);
}

void read_ipv6(const std::uint8_t* frame, std::uint32_t length, Metadata& meta) {
  const std::uint32_t there = length - meta.network;
  if (there < sizeof(Ipv6Header) || frame[meta.network] >> 4 != 6) return;
  const auto& ip = header_at<Ipv6Header>(frame, meta.network);
  meta.family = 6;
  meta.ip_length = ipv6_length(ip, there);
  meta.whole = meta.ip_length <= there;
  meta.end = meta.network + std::min(meta.ip_length, there);
  meta.transport = meta.network + static_cast<std::uint32_t>(sizeof ip);
  meta.protocol = ip.next_header;
  if (is_ipv6_extension(ip.next_header)) walk_extensions(frame, meta);
}

// What is behind the link, by `meta.type`.
void read_behind_link(const std::uint8_t* frame, std::uint32_t length, Depth depth, Metadata& meta) {
  if (depth == Depth::link) return;
  if (meta.type == ethertype_ipv4) read_ipv4(frame, length, meta);
  if (meta.type == ethertype_ipv6) read_ipv6(frame, length, meta);
  if (depth == Depth::transport && meta.family != 0) read_transport(frame, meta);
}

}  // namespace

void walk_extensions(const std::uint8_t* frame, Metadata& meta) {
  std::uint32_t named_at = meta.network + static_cast<std::uint32_t>(offsetof(Ipv6Header, next_header));
  while (is_ipv6_extension(meta.protocol)) {
    const std::uint32_t at = meta.transport, left = meta.end - at;
    if (left < sizeof(Ipv6Fragment)) {  // no extension header is shorter
      meta.chain_cut = true;
      return;
    }
    const std::uint8_t kind = meta.protocol;
    const auto& extension = header_at<Ipv6Extension>(frame, at);
    meta.protocol = extension.next_header;
    meta.routed = meta.routed || kind == protocol_routing;
    if (kind == protocol_fragment) {
      const std::uint16_t place = be16(header_at<Ipv6Fragment>(frame, at).offset_more);
      const std::uint16_t offset = place >> 3;
      meta.transport += sizeof(Ipv6Fragment);
      if (!meta.fragment()) {
        meta.behind_atomic = meta.fragment_header != 0 && (offset != 0 || (place & 1) != 0);
        meta.fragment_header = at;
        meta.fragment_named_at = named_at;
        meta.fragment_protocol = meta.protocol;
        meta.fragment_offset = offset;
        meta.more_fragments = (place & 1) != 0;
      }
      if (offset != 0) return note_later(meta, offset);
    } else {
      const std::uint32_t size = (extension.length + 1U) * 8U;
      if (size > left) {
        meta.chain_cut = true;
        meta.transport = meta.end;
        return;
      }
      meta.transport += size;
    }
    named_at = at;
  }
}

void read_frame_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t end, Depth depth, Metadata& meta) {
  meta.link = meta.network = at;
  if (end - at < sizeof(EthernetHeader)) return;
  meta.type = be16(header_at<EthernetHeader>(frame, at).ethertype);
  meta.network += sizeof(EthernetHeader);
  while (is_vlan_tag(meta.type) && end - meta.network >= sizeof(VlanHeader)) {
    meta.type = be16(header_at<VlanHeader>(frame, meta.network).ethertype);
    meta.network += sizeof(VlanHeader);
    ++meta.tags;
  }
  if (depth == Depth::transport && detail::read_plain_ip(frame, meta.type, meta.network, end, meta)) return;
  read_behind_link(frame, end, depth, meta);
}

void read_ip_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t end, Depth depth, Metadata& meta) {
  meta.link = meta.network = at;
  if (at >= end) return;
  meta.type = frame[at] >> 4 == 4 ? ethertype_ipv4 : ethertype_ipv6;
  read_behind_link(frame, end, depth, meta);
}

}  // namespace sluice::packet
