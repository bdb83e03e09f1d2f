#include "packet/header_facts.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "packet/headers.h"
#include "packet/ipv6_length.h"

namespace sluice::packet {
namespace {

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

void read_tcp(std::string_view segment, HeaderFacts& facts) {
  const auto* const tcp = header_in<TcpHeader>(segment);
  if (tcp == nullptr) return;
  const std::size_t length = tcp->data_offset / 16 * 4U;
  if (length < sizeof(TcpHeader) || length > segment.size()) return;
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

void read_ports(std::string_view datagram, std::size_t header, HeaderFacts& facts) {
  if (datagram.size() < header) return;
  facts.has_ports = true;
  const auto* const ports = header_in<Ports>(datagram);
  facts.source_port = be16(ports->source);
  facts.destination_port = be16(ports->destination);
  facts.transport_header = datagram.substr(0, header);
  facts.payload = datagram.substr(header);
}

void read_udp(std::string_view datagram, HeaderFacts& facts) {
  read_ports(datagram, sizeof(UdpHeader), facts);
  if (!facts.has_ports) return;
  const std::size_t said = be16(header_in<UdpHeader>(datagram)->length);
  if (said == 0 && facts.family == 6) return;  // a jumbogram (RFC 2675 section 4): Linux takes all, however short
  facts.payload = facts.payload.substr(0, std::max(said, sizeof(UdpHeader)) - sizeof(UdpHeader));
}

// One store of 16 bytes, which is how addresses are read on: of smaller ones a core cannot forward what they wrote.
void set_address(IpAddress& address, std::uint8_t family, const void* bytes) {
  static_assert(sizeof address.bytes == sizeof(__m128i));
  address.family = family;
  const __m128i all = family == 4 ? _mm_loadu_si32(bytes) : _mm_loadu_si128(static_cast<const __m128i*>(bytes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(address.bytes.data()), all);
}

bool has_icmp_id(const HeaderFacts& facts) {
  const std::uint8_t type = facts.icmp_type;
  return facts.protocol == protocol_icmpv6 ? type == 128 || type == 129
                                           : type == 0 || type == 8 || (type >= 13 && type <= 18);
}

void read_icmp(std::string_view message, HeaderFacts& facts) {
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

void read_transport(std::string_view bytes, HeaderFacts& facts) {
  facts.payload = bytes;
  if (facts.fragment_offset != 0) return;
  switch (facts.protocol) {
    case protocol_tcp:
      read_tcp(bytes, facts);
      break;
    case protocol_udp:
      read_udp(bytes, facts);
      break;
    case protocol_sctp:
      read_ports(bytes, 12, facts);
      break;
    case protocol_icmp:
    case protocol_icmpv6:
      read_icmp(bytes, facts);
      break;
    default:
      break;
  }
}

void read_ipv4(std::string_view bytes, HeaderFacts& facts) {
  const auto* const ip = header_in<Ipv4Header>(bytes);
  if (ip == nullptr || ip->version_ihl >> 4 != 4) return;
  const std::size_t header = (ip->version_ihl & 0x0fU) * 4U;
  const std::size_t total = std::min<std::size_t>(be16(ip->total_length), bytes.size());
  if (header < sizeof(Ipv4Header) || header > total) return;
  const std::uint16_t fragment = be16(ip->fragment);
  facts.family = 4;
  facts.ip_length = be16(ip->total_length);
  facts.whole = facts.ip_length <= bytes.size();
  set_address(facts.source, 4, &ip->source);
  set_address(facts.destination, 4, &ip->destination);
  facts.protocol = ip->protocol;
  facts.ttl = ip->ttl;
  facts.tos = ip->tos;
  facts.ip_id = be16(ip->id);
  facts.fragment_offset = fragment & ipv4_fragment_offset;
  facts.fragment_bits = static_cast<std::uint8_t>(fragment >> 13);
  facts.ip_header = bytes.substr(0, header);
  facts.ip_options = bytes.substr(sizeof(Ipv4Header), header - sizeof(Ipv4Header));
  read_transport(bytes.substr(header, total - header), facts);
}

// Behind the extension headers, whose last one's next header it takes; `whole` is cleared where one is cut.
std::string_view walk_extensions(std::string_view rest, std::uint8_t next, HeaderFacts& facts) {
  bool fragmented = false;  // what follows is only there in the first fragment, and may go on in others
  while (is_ipv6_extension(next)) {
    const bool fragment = next == protocol_fragment;
    if (rest.size() < 8 || (fragment && fragmented)) {
      facts.whole = facts.whole && fragmented;
      break;
    }
    const std::size_t length = fragment ? 8 : (std::size_t{static_cast<std::uint8_t>(rest[1])} + 1) * 8;
    next = static_cast<std::uint8_t>(rest[0]);
    if (fragment) {
      const auto* const header = header_in<Ipv6Fragment>(rest);
      const std::uint16_t place = be16(header->offset_more);
      facts.fragment_offset = place >> 3;
      facts.fragment_bits = place & 1;
      facts.ip_id = be32(header->id);
      fragmented = facts.fragment();
      if (fragmented) facts.fragment_protocol = next;
    }
    facts.whole = facts.whole && (length <= rest.size() || fragmented);
    rest.remove_prefix(std::min(length, rest.size()));
    if (facts.fragment_offset != 0) break;
  }
  facts.protocol = next;
  return rest;
}

void read_ipv6(std::string_view bytes, HeaderFacts& facts) {
  const auto* const ip = header_in<Ipv6Header>(bytes);
  if (ip == nullptr || static_cast<std::uint8_t>(bytes[0]) >> 4 != 6) return;
  constexpr std::size_t fixed = sizeof(Ipv6Header);
  facts.family = 6;
  facts.ip_length = ipv6_length(*ip, bytes.size());
  facts.whole = facts.ip_length <= bytes.size();
  set_address(facts.source, 6, ip->source);
  set_address(facts.destination, 6, ip->destination);
  facts.ttl = ip->hop_limit;
  facts.tos = static_cast<std::uint8_t>((static_cast<std::uint8_t>(bytes[0]) & 0x0f) << 4 |
                                        static_cast<std::uint8_t>(bytes[1]) >> 4);
  const std::string_view rest = walk_extensions(bytes.substr(fixed, facts.ip_length - fixed), ip->next_header, facts);
  facts.ip_header = bytes.substr(0, static_cast<std::size_t>(rest.data() - bytes.data()));
  read_transport(rest, facts);
}

}  // namespace

void read_headers(std::string_view frame, HeaderFacts& facts) {
  const auto* const ethernet = header_in<EthernetHeader>(frame);
  if (ethernet == nullptr) return;
  std::uint16_t type = be16(ethernet->ethertype);
  std::string_view packet = frame.substr(sizeof(EthernetHeader));
  while (is_vlan_tag(type)) {
    const auto* const tag = header_in<VlanHeader>(packet);
    if (tag == nullptr) return;
    type = be16(tag->ethertype);
    packet.remove_prefix(sizeof(VlanHeader));
  }
  if (type == ethertype_ipv4) read_ipv4(packet, facts);
  if (type == ethertype_ipv6) read_ipv6(packet, facts);
}

void read_ip_headers(std::string_view packet, HeaderFacts& facts) {
  if (packet.empty()) return;
  static_cast<std::uint8_t>(packet[0]) >> 4 == 4 ? read_ipv4(packet, facts) : read_ipv6(packet, facts);
}

}  // namespace sluice::packet
