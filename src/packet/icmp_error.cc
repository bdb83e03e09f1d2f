#include "packet/icmp_error.h"

#include <algorithm>
#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::packet {
namespace {

constexpr std::uint32_t most_ipv4 = 576, most_ipv6 = 1280;
constexpr std::uint8_t hop_limit = 64;
constexpr std::uint8_t precedence_6 = 0xc0;
constexpr std::uint8_t protocol_authentication = 51;
constexpr std::uint8_t icmpv6_informational = 128;  // the first type that is no error
constexpr std::uint8_t icmpv6_redirect = 137;

// RFC 1122 section 3.2.2.
bool is_icmp_error(std::uint8_t type) {
  constexpr std::uint8_t unreachable = 3, source_quench = 4, redirect = 5, time_exceeded = 11, parameter_problem = 12;
  return type == unreachable || type == source_quench || type == redirect || type == time_exceeded ||
         type == parameter_problem;
}

bool is_host(std::uint32_t ipv4) {
  return ipv4 != 0 && ipv4 >> 24 != 127 && ipv4 >> 28 != 0xe && ipv4 != 0xffffffffU;
}

bool is_host(const std::uint8_t* ipv6) {
  static constexpr std::uint8_t zeros[15] = {};
  const bool unspecified_or_loopback = std::memcmp(ipv6, zeros, sizeof zeros) == 0 && ipv6[15] <= 1;
  return ipv6[0] != 0xff && !unspecified_or_loopback;
}

// AH is no header that metadata goes over; what it holds in clear may be an ICMPv6 error, too.
void go_behind_authentication(const std::uint8_t* frame, Metadata& meta) {
  while (meta.protocol == protocol_authentication && !meta.later && !meta.chain_cut) {
    const std::uint32_t left = meta.end - meta.transport;
    if (left < sizeof(Ipv6Extension)) {
      meta.chain_cut = true;
      return;
    }
    const auto& header = header_at<Ipv6Extension>(frame, meta.transport);
    const std::uint32_t size = (header.length + 2U) * 4U;  // RFC 4302 section 2.2
    meta.chain_cut = size > left;
    if (meta.chain_cut) return;
    meta.transport += size;
    meta.protocol = header.next_header;
    walk_extensions(frame, meta);
  }
}

bool may_answer_ipv4(const std::uint8_t* frame, const Metadata& meta) {
  const auto& ip = header_at<Ipv4Header>(frame, meta.network);
  if (!is_host(be32(ip.source)) || !is_host(be32(ip.destination)) || meta.later) return false;
  return meta.protocol != protocol_icmp || (meta.end > meta.transport && !is_icmp_error(frame[meta.transport]));
}

bool may_answer_ipv6(const std::uint8_t* frame, Metadata& meta) {
  const auto& ip = header_at<Ipv6Header>(frame, meta.network);
  if (!is_host(ip.source) || !is_host(ip.destination)) return false;
  go_behind_authentication(frame, meta);
  if (meta.chain_cut || meta.later) return false;  // of a later fragment, or it may be an error
  if (meta.protocol != protocol_icmpv6) return true;
  const std::uint8_t* const type = frame + meta.transport;
  return meta.end > meta.transport && *type >= icmpv6_informational && *type != icmpv6_redirect;
}

// Type and code; `rest` is the MTU in the lower bytes (IPv4: RFC 1191 section 4), or unused.
template <typename Header>
void write_icmp(Header& icmp, bool v6, const IcmpError& error) {
  struct TypeAndCode {
    std::uint8_t type, code;
  };
  // By IcmpErrorKind.
  static constexpr TypeAndCode ipv4[] = {{11, 0}, {3, 4}, {3, 13}}, ipv6[] = {{3, 0}, {2, 0}, {1, 1}};
  const TypeAndCode is = (v6 ? ipv6 : ipv4)[static_cast<unsigned>(error.kind)];
  icmp.type = is.type;
  icmp.code = is.code;
  const bool too_big = error.kind == IcmpErrorKind::too_big;
  icmp.rest = be32(!too_big ? 0 : v6 ? error.mtu : std::min<std::uint32_t>(error.mtu, 0xffff));
  icmp.checksum = 0;
}

void write_ipv4(std::uint8_t* packet, std::uint32_t quote, const IcmpError& error) {
  auto& ip = header_at<Ipv4Header>(packet, 0);
  auto& icmp = header_at<IcmpHeader>(packet, sizeof ip);
  const std::uint32_t sender = header_at<Ipv4Header>(packet, sizeof ip + sizeof icmp).source;
  const auto total = static_cast<std::uint16_t>(sizeof ip + sizeof icmp + quote);
  ip = {0x45, precedence_6, be16(total), 0, be16(ipv4_dont_fragment), hop_limit, protocol_icmp, 0, 0, sender};
  ip.source = be32(error.source.v4_host_order());
  ip.checksum = ipv4_header_checksum(ip);
  write_icmp(icmp, false, error);
  icmp.checksum = internet_checksum(&icmp, sizeof icmp + quote);
}

void write_ipv6(std::uint8_t* packet, std::uint32_t quote, const IcmpError& error) {
  auto& ip = header_at<Ipv6Header>(packet, 0);
  auto& icmp = header_at<Icmpv6Header>(packet, sizeof ip);
  const auto& quoted = header_at<Ipv6Header>(packet, sizeof ip + sizeof icmp);
  ip.version_class_flow = be32(0x60000000);
  ip.payload_length = be16(static_cast<std::uint16_t>(sizeof icmp + quote));
  ip.next_header = protocol_icmpv6;
  ip.hop_limit = hop_limit;
  std::memcpy(ip.source, error.source.bytes.data(), sizeof ip.source);
  std::memcpy(ip.destination, quoted.source, sizeof ip.destination);
  write_icmp(icmp, true, error);
  icmp.checksum = transport_checksum(ip, protocol_icmpv6, &icmp, sizeof icmp + quote);
}

}  // namespace

bool may_answer_with_icmp_error(const std::uint8_t* frame, std::uint32_t length) {
  if (length < sizeof(EthernetHeader) || (frame[0] & 1) != 0 || (frame[6] & 1) != 0) {
    return false;
  }
  Metadata meta;
  read_metadata(frame, length, Depth::network, meta);
  if (!meta.is_whole_packet()) return false;
  return meta.family == 4 ? may_answer_ipv4(frame, meta) : may_answer_ipv6(frame, meta);
}

std::uint32_t make_icmp_error(std::uint8_t* frame, std::uint32_t length, std::uint32_t capacity,
                              const IcmpError& error) {
  Metadata meta;
  read_metadata(frame, length, Depth::network, meta);
  const bool v6 = meta.family == 6;
  const std::uint32_t headers =
      v6 ? sizeof(Ipv6Header) + sizeof(Icmpv6Header) : sizeof(Ipv4Header) + sizeof(IcmpHeader);
  const auto tag_bytes = meta.tags * static_cast<std::uint32_t>(sizeof(VlanHeader));
  if (capacity < least_icmp_error_capacity + tag_bytes) {
    return 0;
  }
  std::uint8_t* const packet = frame + meta.network;
  const std::uint32_t fits = std::min(v6 ? most_ipv6 : most_ipv4, capacity - meta.network);
  const std::uint32_t quote = std::min({meta.end - meta.network, fits - headers, error.most_quoted});
  std::memmove(packet + headers, packet, quote);
  std::memcpy(frame, frame + 6, 6);
  std::memcpy(frame + 6, error.own_mac, 6);
  v6 ? write_ipv6(packet, quote, error) : write_ipv4(packet, quote, error);
  return meta.network + headers + quote;
}

}  // namespace sluice::packet
