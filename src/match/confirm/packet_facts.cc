#include "match/confirm/packet_facts.h"

#include <algorithm>

#include "packet/headers.h"

namespace sluice::match {
namespace {

using packet::be16;
using packet::be32;

struct [[gnu::packed, gnu::may_alias]] Ports {
  std::uint16_t source, destination;
};
struct [[gnu::packed, gnu::may_alias]] EchoFields {
  std::uint16_t id, sequence;
};

// The bytes as a header, or nothing where there are too few.
template <typename Header>
const Header* header_in(std::string_view bytes) {
  return bytes.size() < sizeof(Header) ? nullptr : reinterpret_cast<const Header*>(bytes.data());
}

void read_tcp(std::string_view segment, PacketFacts& facts) {
  const auto* const tcp = header_in<packet::TcpHeader>(segment);
  if (tcp == nullptr) return;
  const std::size_t length = tcp->data_offset / 16 * 4U;
  if (length < sizeof(packet::TcpHeader) || length > segment.size()) return;
  facts.has_tcp = facts.has_ports = true;
  facts.source_port = be16(tcp->source_port);
  facts.destination_port = be16(tcp->destination_port);
  facts.tcp_flags = tcp->flags;
  facts.tcp_sequence = be32(tcp->sequence);
  facts.tcp_acknowledgement = be32(tcp->acknowledgment);
  facts.tcp_window = be16(tcp->window);
  facts.transport_header = segment.substr(0, length);
  facts.payload = segment.substr(length);
}

void read_ports(std::string_view datagram, std::size_t header, PacketFacts& facts) {
  if (datagram.size() < header) return;
  facts.has_ports = true;
  const auto* const ports = header_in<Ports>(datagram);
  facts.source_port = be16(ports->source);
  facts.destination_port = be16(ports->destination);
  facts.transport_header = datagram.substr(0, header);
  facts.payload = datagram.substr(header);
}

bool has_icmp_id(const PacketFacts& facts) {
  const std::uint8_t type = facts.icmp_type;
  return facts.protocol == packet::protocol_icmpv6 ? type == 128 || type == 129
                                                   : type == 0 || type == 8 || (type >= 13 && type <= 18);
}

void read_icmp(std::string_view message, PacketFacts& facts) {
  constexpr std::size_t header = 8;
  if (message.size() < 4) return;
  facts.has_icmp = true;
  facts.icmp_type = static_cast<std::uint8_t>(message[0]);
  facts.icmp_code = static_cast<std::uint8_t>(message[1]);
  if (message.size() >= header && has_icmp_id(facts)) {
    const auto* const echo = header_in<EchoFields>(message.substr(4));
    facts.icmp_id = be16(echo->id);
    facts.icmp_sequence = be16(echo->sequence);
  }
  facts.transport_header = message.substr(0, std::min(header, message.size()));
  facts.payload = message.substr(facts.transport_header.size());
}

void read_transport(std::string_view bytes, PacketFacts& facts) {
  facts.payload = bytes;
  if (facts.fragment_offset != 0) return;
  switch (facts.protocol) {
    case packet::protocol_tcp:
      read_tcp(bytes, facts);
      break;
    case packet::protocol_udp:
      read_ports(bytes, sizeof(packet::UdpHeader), facts);
      break;
    case packet::protocol_sctp:
      read_ports(bytes, 12, facts);
      break;
    case packet::protocol_icmp:
    case packet::protocol_icmpv6:
      read_icmp(bytes, facts);
      break;
    default:
      break;
  }
}

void read_ipv4(std::string_view bytes, PacketFacts& facts) {
  const auto* const ip = header_in<packet::Ipv4Header>(bytes);
  if (ip == nullptr) return;
  const std::size_t header = (static_cast<std::uint8_t>(bytes[0]) & 0x0fU) * 4;
  const std::size_t total = std::min<std::size_t>(be16(ip->total_length), bytes.size());
  if (header < sizeof(packet::Ipv4Header) || header > total) return;
  const std::uint16_t fragment = be16(ip->fragment);
  facts.family = 4;
  facts.source = packet::IpAddress::from_bytes(4, &ip->source);
  facts.destination = packet::IpAddress::from_bytes(4, &ip->destination);
  facts.protocol = ip->protocol;
  facts.ttl = ip->ttl;
  facts.tos = ip->tos;
  facts.ip_id = be16(ip->id);
  facts.fragment_offset = fragment & packet::ipv4_fragment_offset;
  facts.fragment_bits = static_cast<std::uint8_t>(fragment >> 13);
  facts.ip_header = bytes.substr(0, header);
  facts.ip_options = bytes.substr(sizeof(packet::Ipv4Header), header - sizeof(packet::Ipv4Header));
  read_transport(bytes.substr(header, total - header), facts);
}

void read_ipv6(std::string_view bytes, PacketFacts& facts) {
  const auto* const ip = header_in<packet::Ipv6Header>(bytes);
  if (ip == nullptr) return;
  constexpr std::size_t fixed = sizeof(packet::Ipv6Header);
  facts.family = 6;
  facts.source = packet::IpAddress::from_bytes(6, ip->source);
  facts.destination = packet::IpAddress::from_bytes(6, ip->destination);
  facts.ttl = ip->hop_limit;
  facts.tos = static_cast<std::uint8_t>((static_cast<std::uint8_t>(bytes[0]) & 0x0f) << 4 |
                                        static_cast<std::uint8_t>(bytes[1]) >> 4);
  facts.ip_header = bytes.substr(0, fixed);
  std::uint8_t next = ip->next_header;
  std::string_view rest = bytes.substr(fixed, std::min<std::size_t>(be16(ip->payload_length), bytes.size() - fixed));
  while (next == packet::protocol_hop_by_hop || next == packet::protocol_routing || next == packet::protocol_fragment ||
         next == packet::protocol_destination_options) {
    if (rest.size() < 8) break;
    const auto length_field = static_cast<std::uint8_t>(rest[1]);
    const std::size_t length = next == packet::protocol_fragment ? 8 : (std::size_t{length_field} + 1) * 8;
    if (next == packet::protocol_fragment) {
      const auto* const fragment = header_in<packet::Ipv6Fragment>(rest);
      const std::uint16_t place = be16(fragment->offset_more);
      facts.fragment_offset = place >> 3;
      facts.fragment_bits = place & 1;
      facts.ip_id = be32(fragment->id);
    }
    next = static_cast<std::uint8_t>(rest[0]);
    rest.remove_prefix(std::min(length, rest.size()));
    if (facts.fragment_offset != 0) break;
  }
  facts.protocol = next;
  facts.ip_header = bytes.substr(0, static_cast<std::size_t>(rest.data() - bytes.data()));
  read_transport(rest, facts);
}

}  // namespace

PacketFacts facts_of(std::string_view frame) {
  PacketFacts facts;
  const auto* const ethernet = header_in<packet::EthernetHeader>(frame);
  if (ethernet == nullptr) return facts;
  std::uint16_t type = be16(ethernet->ethertype);
  std::string_view packet = frame.substr(sizeof(packet::EthernetHeader));
  while (type == packet::ethertype_vlan || type == packet::ethertype_qinq) {
    const auto* const tag = header_in<packet::VlanHeader>(packet);
    if (tag == nullptr) return facts;
    type = be16(tag->ethertype);
    packet.remove_prefix(sizeof(packet::VlanHeader));
  }
  if (type == packet::ethertype_ipv4) read_ipv4(packet, facts);
  if (type == packet::ethertype_ipv6) read_ipv6(packet, facts);
  return facts;
}

PacketFacts packet_of(std::uint8_t family, std::uint8_t protocol, const PacketEnd& source,
                      const PacketEnd& destination) {
  PacketFacts facts;
  facts.family = family;
  facts.source = packet::IpAddress::from_bytes(family, source.address);
  facts.destination = packet::IpAddress::from_bytes(family, destination.address);
  facts.protocol = protocol;
  facts.has_tcp = protocol == packet::protocol_tcp;
  facts.has_ports = facts.has_tcp || protocol == packet::protocol_udp || protocol == packet::protocol_sctp;
  facts.source_port = source.port;
  facts.destination_port = destination.port;
  return facts;
}

std::optional<std::uint32_t> PacketFacts::field(HeaderField which) const {
  const auto when = [](bool there, std::uint32_t value) {
    return there ? std::optional<std::uint32_t>(value) : std::nullopt;
  };
  switch (which) {
    case HeaderField::payload_size:
      return when(family != 0, static_cast<std::uint32_t>(payload.size()));
    case HeaderField::ttl:
      return when(family != 0, ttl);
    case HeaderField::ip_id:
      return ip_id;
    case HeaderField::ip_proto:
      return when(family != 0, protocol);
    case HeaderField::tos:
      return when(family != 0, tos);
    case HeaderField::fragment_offset:
      return when(family != 0, fragment_offset);
    case HeaderField::icmp_type:
      return when(has_icmp, icmp_type);
    case HeaderField::icmp_code:
      return when(has_icmp, icmp_code);
    case HeaderField::icmp_id:
      return icmp_id;
    case HeaderField::icmp_sequence:
      return icmp_sequence;
    case HeaderField::tcp_sequence:
      return when(has_tcp, tcp_sequence);
    case HeaderField::tcp_acknowledgement:
      return when(has_tcp, tcp_acknowledgement);
    case HeaderField::tcp_window:
      return when(has_tcp, tcp_window);
  }
  return std::nullopt;
}

}  // namespace sluice::match
