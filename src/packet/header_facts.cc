#include "packet/header_facts.h"

#include <immintrin.h>

#include "packet/headers.h"

namespace sluice::packet {
namespace {

struct [[gnu::packed, gnu::may_alias]] EchoFields {
  std::uint16_t id, sequence;
};

using Frame = std::string_view;

const std::uint8_t* bytes_of(Frame frame) {
  return reinterpret_cast<const std::uint8_t*>(frame.data());
}

Frame part(Frame frame, std::uint32_t begin, std::uint32_t end) {
  return frame.substr(begin, end - begin);
}

// One store of 16 bytes, which is how addresses are read on: of smaller ones a core cannot forward what they wrote.
void set_address(IpAddress& address, std::uint8_t family, const void* bytes) {
  static_assert(sizeof address.bytes == sizeof(__m128i));
  address.family = family;
  const __m128i all = family == 4 ? _mm_loadu_si32(bytes) : _mm_loadu_si128(static_cast<const __m128i*>(bytes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(address.bytes.data()), all);
}

void take_tcp(const std::uint8_t* header, HeaderFacts& facts) {
  const auto& tcp = header_at<TcpHeader>(header, 0);
  facts.has_tcp = true;
  facts.tcp_flags = tcp.flags;
  facts.tcp_sequence = be32(tcp.sequence);
  facts.tcp_acknowledgement = be32(tcp.acknowledgment);
  facts.tcp_window = be16(tcp.window);
}

bool has_icmp_id(const HeaderFacts& facts) {
  const std::uint8_t type = facts.icmp_type;
  return facts.protocol == protocol_icmpv6 ? type == 128 || type == 129
                                           : type == 0 || type == 8 || (type >= 13 && type <= 18);
}

// Type and code are enough.
void take_icmp(Frame frame, const Metadata& meta, HeaderFacts& facts) {
  constexpr std::uint32_t header = sizeof(IcmpHeader), least = 4;
  const Frame message = part(frame, meta.transport, meta.end);
  facts.payload = message;
  if (message.size() < least) return;
  facts.has_icmp = true;
  facts.icmp_type = static_cast<std::uint8_t>(message[0]);
  facts.icmp_code = static_cast<std::uint8_t>(message[1]);
  if (message.size() >= header && has_icmp_id(facts)) {
    const auto& echo = header_at<EchoFields>(bytes_of(message), least);
    facts.icmp_id = be16(echo.id);
    facts.icmp_sequence = be16(echo.sequence);
  }
  facts.transport_header = message.substr(0, header);
  facts.payload = message.substr(facts.transport_header.size());
}

void take_transport(Frame frame, const Metadata& meta, HeaderFacts& facts) {
  if (facts_have_ports(meta.protocol) && meta.has_header) {
    facts.has_ports = true;
    facts.source_port = meta.source_port;
    facts.destination_port = meta.destination_port;
    facts.transport_header = part(frame, meta.transport, meta.payload);
    facts.payload = part(frame, meta.payload, meta.payload_end);
    if (meta.protocol == protocol_tcp) take_tcp(bytes_of(frame) + meta.transport, facts);
    return;
  }
  if (!meta.later && (meta.protocol == protocol_icmp || meta.protocol == protocol_icmpv6)) {
    return take_icmp(frame, meta, facts);
  }
  facts.payload = part(frame, meta.transport, meta.end);
}

void take_ipv4(const std::uint8_t* header, HeaderFacts& facts) {
  const auto& ip = header_at<Ipv4Header>(header, 0);
  set_address(facts.source, 4, &ip.source);
  set_address(facts.destination, 4, &ip.destination);
  facts.ttl = ip.ttl;
  facts.tos = ip.tos;
  facts.ip_id = be16(ip.id);
  facts.fragment_bits = static_cast<std::uint8_t>(be16(ip.fragment) >> 13);
  facts.ip_options = facts.ip_header.substr(sizeof ip);
}

void take_ipv6(const std::uint8_t* header, const Metadata& meta, HeaderFacts& facts) {
  const auto& ip = header_at<Ipv6Header>(header, 0);
  set_address(facts.source, 6, ip.source);
  set_address(facts.destination, 6, ip.destination);
  facts.ttl = ip.hop_limit;
  facts.tos = static_cast<std::uint8_t>(header[0] << 4 | header[1] >> 4);
  if (meta.fragment_header == 0) return;
  facts.fragment_bits = meta.more_fragments ? 1 : 0;
  facts.behind_atomic = meta.behind_atomic;
  facts.fragment_header = meta.fragment_header - meta.network;
  facts.fragment_named_at = meta.fragment_named_at - meta.network;
  facts.ip_id = be32(header_at<Ipv6Fragment>(header, meta.fragment_header - meta.network).id);
  if (meta.fragment()) facts.fragment_protocol = meta.fragment_protocol;
}

[[gnu::always_inline]] inline void take(Frame frame, const Metadata& meta, HeaderFacts& facts) {
  facts.family = meta.family;
  // Of a fragment only the first of its datagram has all extension headers.
  facts.whole = meta.whole && (!meta.chain_cut || meta.fragment());
  facts.protocol = meta.protocol;
  facts.fragment_offset = meta.fragment_offset;
  facts.ip_length = meta.ip_length;
  facts.ip_header = part(frame, meta.network, meta.transport);
  const std::uint8_t* const header = bytes_of(frame) + meta.network;
  meta.family == 4 ? take_ipv4(header, facts) : take_ipv6(header, meta, facts);
  take_transport(frame, meta, facts);
}

}  // namespace

void take_facts(std::string_view frame, const Metadata& meta, HeaderFacts& facts) {
  if (meta.family != 0) take(frame, meta, facts);
}

void read_headers(std::string_view frame, HeaderFacts& facts) {
  Metadata plain;
  const auto length = static_cast<std::uint32_t>(frame.size());
  if (read_plain(bytes_of(frame), length, plain)) [[likely]]
    return take(frame, plain, facts);
  Metadata meta;
  read_frame_metadata(bytes_of(frame), 0, length, Depth::transport, meta);
  take_facts(frame, meta, facts);
}

void read_ip_headers(std::string_view packet, HeaderFacts& facts) {
  Metadata meta;
  read_ip_metadata(bytes_of(packet), 0, static_cast<std::uint32_t>(packet.size()), Depth::transport, meta);
  take_facts(packet, meta, facts);
}

}  // namespace sluice::packet
