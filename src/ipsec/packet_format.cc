#include "ipsec/packet_format.h"

#include <algorithm>
#include <cstring>

#include "base/random_seed.h"
#include "packet/checksum.h"
#include "packet/metadata.h"

namespace sluice::ipsec {
namespace {

using packet::be16;
using packet::be32;
using packet::header_at;
using packet::Ipv4Header;
using packet::Ipv6Header;
using packet::UdpHeader;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint8_t first_ttl = 65;  // the route out takes one: 64 leave
constexpr std::uint8_t ecn_mask = 3;

}  // namespace

Expected<PacketFormat> packet_format(const SaSettings& sa) {
  PacketFormat format;
  format.spi = be32(sa.id.spi);
  format.protocol = sa.id.protocol;
  format.icv = sa.transform.icv_length;
  if (sa.id.protocol == Protocol::ah && sa.transform.cipher != crypto::Cipher::null)
    return make_error("AH has no cipher");
  switch (sa.transform.cipher) {
    case crypto::Cipher::null:
      break;
    case crypto::Cipher::aes_cbc:
      format.iv = PacketFormat::Iv::block;
      format.align = crypto::aes_block;
      break;
    case crypto::Cipher::aes_ctr_esp:
    case crypto::Cipher::aes_gcm_esp:
    case crypto::Cipher::chacha20_poly1305_esp:
      format.iv = PacketFormat::Iv::counter;
      break;
    default:
      return make_error("ESP has no such cipher");
  }
  format.mode = sa.mode;
  format.esn = sa.esn;
  format.copies_dscp = sa.copy_dscp;
  format.ecn = sa.ecn;
  format.dont_fragment = sa.dont_fragment;
  format.has_udp = sa.udp.has_value();
  format.family = sa.id.destination.family;
  format.pad_to = sa.pad_to;
  format.first_iv = random_seed();
  std::uint32_t at = 0;
  const auto protocol = format.has_udp ? packet::protocol_udp : static_cast<std::uint8_t>(sa.id.protocol);
  if (sa.mode == Mode::tunnel && format.family == 4) {
    auto& ip = header_at<Ipv4Header>(format.outer, 0);
    ip.version_ihl = 0x45;
    ip.ttl = first_ttl;
    ip.protocol = protocol;
    std::memcpy(&ip.source, sa.source.bytes.data(), sizeof ip.source);
    std::memcpy(&ip.destination, sa.id.destination.bytes.data(), sizeof ip.destination);
    at = sizeof ip;
  } else if (sa.mode == Mode::tunnel) {
    auto& ip = header_at<Ipv6Header>(format.outer, 0);
    ip.next_header = protocol;
    ip.hop_limit = first_ttl;
    std::copy_n(sa.source.bytes.data(), sizeof ip.source, ip.source);
    std::copy_n(sa.id.destination.bytes.data(), sizeof ip.destination, ip.destination);
    at = sizeof ip;
  }
  if (sa.udp) {
    auto& udp = header_at<UdpHeader>(format.outer, at);
    udp.source_port = be16(sa.udp->source);
    udp.destination_port = be16(sa.udp->destination);
    at += sizeof udp;
  }
  format.outer_bytes = static_cast<std::uint8_t>(at);
  return format;
}

bool look_at_inner(const std::uint8_t* frame, std::uint32_t length, Mode mode, InnerPacket& inner) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::network, meta);
  if (!meta.is_whole_packet() || meta.tags != 0 || meta.network != ethernet) return false;
  if (mode == Mode::transport && meta.fragment()) return false;
  const std::uint8_t* const ip = frame + ethernet;
  inner.family = meta.family;
  inner.length = static_cast<std::uint16_t>(meta.ip_length);
  if (meta.family == 4) {
    const auto& header = header_at<Ipv4Header>(ip, 0);
    inner.tos = header.tos;
    inner.dont_fragment = (be16(header.fragment) & packet::ipv4_dont_fragment) != 0;
    inner.headers = static_cast<std::uint16_t>((ip[0] & 0xfU) * 4U);
    inner.protocol = header.protocol;
    inner.named_at = offsetof(Ipv4Header, protocol);
  } else {
    // A jumbogram's length is elsewhere, and who takes it out would not find it.
    if (meta.ip_length != sizeof(Ipv6Header) + be16(header_at<Ipv6Header>(ip, 0).payload_length)) return false;
    inner.tos = packet::ipv6_traffic_class(ip);
    inner.dont_fragment = true;
    // ESP stands behind all extension headers that routers look at (RFC 4303 3.1.1): hop-by-hop, routing and fragment
    // headers, and destination options in front of a routing header.
    std::uint32_t at = sizeof(Ipv6Header), named_at = offsetof(Ipv6Header, next_header);
    inner.headers = static_cast<std::uint16_t>(at);
    inner.named_at = static_cast<std::uint16_t>(named_at);
    // As far as the packet's own headers go: behind a fragment header of a later fragment is data.
    while (ethernet + at < meta.transport && packet::is_ipv6_extension(ip[named_at])) {
      const std::uint8_t kind = ip[named_at];
      named_at = at;
      at += kind == packet::protocol_fragment ? 8U : (ip[at + 1] + 1U) * 8U;
      if (kind == packet::protocol_destination_options) continue;
      inner.headers = static_cast<std::uint16_t>(at);
      inner.named_at = static_cast<std::uint16_t>(named_at);
    }
    inner.protocol = ip[inner.named_at];
  }
  return true;
}

void write_outer(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* ip,
                 std::uint32_t length) {
  const std::uint8_t tos = static_cast<std::uint8_t>((format.copies_dscp ? inner.tos & ~ecn_mask : 0) |
                                                     (format.ecn ? inner.tos & ecn_mask : 0));
  if (format.family == 4) {
    auto& header = header_at<Ipv4Header>(ip, 0);
    const bool whole = format.dont_fragment == DontFragment::set ||
                       (format.dont_fragment == DontFragment::copy && inner.dont_fragment);
    header.tos = tos;
    header.total_length = be16(static_cast<std::uint16_t>(length));
    header.id = whole ? std::uint16_t{0} : be16(static_cast<std::uint16_t>(sequence));  // RFC 6864 section 4.1
    header.fragment = whole ? be16(packet::ipv4_dont_fragment) : std::uint16_t{0};
    header.checksum = packet::ipv4_header_checksum(header);
  } else {
    auto& header = header_at<Ipv6Header>(ip, 0);
    header.version_class_flow = be32(6U << 28 | std::uint32_t{tos} << 20);
    header.payload_length = be16(static_cast<std::uint16_t>(length - sizeof header));
  }
}

void change_headers(std::uint8_t* ip, std::uint8_t family, std::uint32_t length, std::uint32_t named_at,
                    std::uint8_t protocol) {
  ip[named_at] = protocol;
  if (family == 4) {
    auto& header = header_at<Ipv4Header>(ip, 0);
    header.total_length = be16(static_cast<std::uint16_t>(length));
    header.checksum = packet::ipv4_header_checksum(header);
  } else {
    header_at<Ipv6Header>(ip, 0).payload_length = be16(static_cast<std::uint16_t>(length - sizeof(Ipv6Header)));
  }
}

}  // namespace sluice::ipsec
