#include "ipsec/esp.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/random_seed.h"
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
constexpr std::uint32_t trailer = 2;    // padding's length and next header
constexpr std::uint8_t first_ttl = 65;  // the route out takes one: 64 leave
constexpr std::uint8_t ecn_mask = 3;

// RFC 4303 2.4: the padding's bytes.
constexpr auto padding = [] {
  std::array<std::uint8_t, 255> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  return bytes;
}();

std::uint32_t payload_of(const EspFormat& format, const InnerPacket& inner) {
  const std::uint32_t payload = inner.length - (format.mode == Mode::tunnel ? 0U : inner.headers);
  return format.mode == Mode::tunnel ? std::max<std::uint32_t>(payload, format.pad_to) : payload;
}

std::uint32_t padding_of(const EspFormat& format, std::uint32_t payload) {
  const std::uint32_t all = payload + trailer;
  return (format.align - all % format.align) % format.align;
}

void write_outer(const EspFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* ip,
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

// The packet whose headers are at `ip` has another length, and another protocol at `named_at`.
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

void write_iv(const EspFormat& format, std::uint64_t sequence, std::uint8_t* iv) {
  if (format.iv == EspFormat::Iv::none) return;
  const std::uint64_t unique = __builtin_bswap64(format.first_iv + sequence);
  std::memcpy(iv, &unique, sizeof unique);
  if (format.iv == EspFormat::Iv::block) std::memset(iv + sizeof unique, 0, sizeof unique);
}

void fill_job(const EspFormat& format, std::uint8_t* esp, std::uint32_t enciphered, std::uint32_t upper,
              crypto::Job& job) {
  job = {};
  job.data = reinterpret_cast<std::uint64_t>(esp);
  job.cipher_offset = static_cast<std::uint16_t>(format.clear_bytes());
  job.cipher_length = static_cast<std::uint16_t>(enciphered);
  if (!format.esn) return;
  const std::uint32_t suffix = be32(upper);
  std::memcpy(job.suffix, &suffix, sizeof suffix);
  job.flags = crypto::job_has_suffix;
}

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

// Padding counts up from 1 (RFC 4303 2.4 has the receiver check it).
bool is_padding(const std::uint8_t* bytes, std::uint32_t length) {
  return std::memcmp(bytes, padding.data(), length) == 0;
}

EspTaken take_off_tunnel(const EspFormat& format, std::uint8_t* frame, const EspView& view, std::uint32_t payload,
                         std::uint8_t next_header) {
  if (next_header != packet::protocol_ipv4 && next_header != packet::protocol_ipv6) return {};
  const std::uint32_t at = view.esp + format.clear_bytes();
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
    if (!after) return {EspContent::congested, 0, 0};
    if (*after != before) {
      packet::set_ecn(frame + front, {.offset = ethernet, .family = static_cast<std::uint8_t>(v4 ? 4 : 6)}, *after);
    }
  }
  return {EspContent::packet, front, ethernet + length};
}

EspTaken take_off_transport(const EspFormat& format, std::uint8_t* frame, const EspView& view, std::uint32_t payload,
                            std::uint8_t next_header) {
  const std::uint32_t udp = view.in_udp ? sizeof(UdpHeader) : 0;
  const std::uint32_t headers = view.esp - udp - ethernet;
  const std::uint32_t front = udp + format.clear_bytes();
  std::memmove(frame + front, frame, ethernet + headers);
  std::uint8_t* const ip = frame + front + ethernet;
  change_headers(ip, view.family, headers + payload, view.named_at - ethernet, next_header);
  return {EspContent::packet, front, ethernet + headers + payload};
}

}  // namespace

Expected<EspFormat> esp_format(const SaSettings& sa) {
  EspFormat format;
  format.spi = be32(sa.id.spi);
  format.icv = sa.transform.icv_length;
  switch (sa.transform.cipher) {
    case crypto::Cipher::null:
      break;
    case crypto::Cipher::aes_cbc:
      format.iv = EspFormat::Iv::block;
      format.align = crypto::aes_block;
      break;
    case crypto::Cipher::aes_ctr_esp:
    case crypto::Cipher::aes_gcm_esp:
    case crypto::Cipher::chacha20_poly1305_esp:
      format.iv = EspFormat::Iv::counter;
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
  const std::uint8_t protocol = format.has_udp ? packet::protocol_udp : packet::protocol_esp;
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

// --- Out ---

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
    inner.tos = packet::ipv6_traffic_class(ip);
    inner.dont_fragment = true;
    // ESP stands behind all extension headers that routers look at (RFC 4303 3.1.1): hop-by-hop, routing and fragment
    // headers, and destination options in front of a routing header.
    std::uint32_t at = sizeof(Ipv6Header), named_at = offsetof(Ipv6Header, next_header);
    inner.headers = static_cast<std::uint16_t>(at);
    inner.named_at = static_cast<std::uint16_t>(named_at);
    while (packet::is_ipv6_extension(ip[named_at])) {
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

std::uint32_t esp_behind(const EspFormat& format, const InnerPacket& inner) {
  const std::uint32_t payload = payload_of(format, inner);
  const std::uint32_t given = inner.length - (format.mode == Mode::tunnel ? 0U : inner.headers);
  return payload - given + padding_of(format, payload) + trailer + format.icv;
}

std::uint32_t esp_most_inner(const EspFormat& format, std::uint32_t mtu, std::uint32_t headers) {
  const std::uint32_t kept = format.mode == Mode::tunnel ? 0 : headers;
  const std::uint32_t around = kept + format.outer_bytes + format.clear_bytes() + format.icv;
  if (mtu < around + trailer) return 0;
  const std::uint32_t enciphered = (mtu - around) / format.align * format.align;
  return enciphered < trailer ? 0 : kept + enciphered - trailer;
}

void esp_put_on(const EspFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
                crypto::Job& job) {
  const std::uint32_t front = esp_front(format);
  const bool tunnel = format.mode == Mode::tunnel;
  const std::uint32_t kept = ethernet + (tunnel ? 0U : inner.headers);
  std::memmove(frame, frame + front, kept);
  std::uint8_t* const esp = frame + kept + format.outer_bytes;
  const std::uint32_t given = inner.length - (tunnel ? 0U : inner.headers);
  const std::uint32_t payload = payload_of(format, inner);
  const std::uint32_t pad = padding_of(format, payload);
  const std::uint32_t enciphered = payload + pad + trailer;
  const std::uint32_t length = kept - ethernet + front + enciphered + format.icv;  // of the IP packet
  std::memcpy(frame + kept, format.outer, format.outer_bytes);
  if (format.has_udp) {
    auto& udp = header_at<UdpHeader>(esp - sizeof(UdpHeader), 0);
    udp.length = be16(static_cast<std::uint16_t>(sizeof udp + format.clear_bytes() + enciphered + format.icv));
  }
  if (tunnel) {
    write_outer(format, inner, sequence, frame + ethernet, length);
    header_at<packet::EthernetHeader>(frame, 0).ethertype =
        be16(format.family == 4 ? packet::ethertype_ipv4 : packet::ethertype_ipv6);
  } else {
    change_headers(frame + ethernet, inner.family, length, inner.named_at,
                   format.has_udp ? packet::protocol_udp : packet::protocol_esp);
  }
  auto& header = header_at<EspHeader>(esp, 0);
  header.spi = format.spi;
  header.sequence = be32(static_cast<std::uint32_t>(sequence));
  write_iv(format, sequence, esp + sizeof header);
  std::uint8_t* const behind = esp + format.clear_bytes() + given;
  std::memset(behind, 0, payload - given);
  std::memcpy(behind + payload - given, padding.data(), pad);
  esp[format.clear_bytes() + payload + pad] = static_cast<std::uint8_t>(pad);
  esp[format.clear_bytes() + payload + pad + 1] = !tunnel             ? inner.protocol
                                                  : inner.family == 4 ? packet::protocol_ipv4
                                                                      : packet::protocol_ipv6;
  fill_job(format, esp, enciphered, static_cast<std::uint32_t>(sequence >> 32), job);
}

// --- In ---

EspKind find_esp(const std::uint8_t* frame, std::uint32_t length, EspView& view) {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  if (!meta.is_whole_packet() || meta.tags != 0 || meta.network != ethernet) return EspKind::other;
  const std::uint8_t protocol = meta.fragment() ? meta.fragment_protocol : meta.protocol;
  if (protocol != packet::protocol_esp && protocol != packet::protocol_udp) return EspKind::other;
  if (protocol == packet::protocol_udp && !meta.fragment() && meta.destination_port != nat_traversal_port) {
    return EspKind::other;
  }
  view.family = meta.family;
  view.source = meta.source(frame);
  view.destination = meta.destination(frame);
  if (meta.fragment()) return EspKind::fragment;
  view.tos = meta.family == 4 ? frame[ethernet + 1] : packet::ipv6_traffic_class(frame + ethernet);
  view.esp = meta.transport;
  view.length = meta.end - meta.transport;
  view.in_udp = protocol == packet::protocol_udp;
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
    if (view.length < sizeof(UdpHeader)) return EspKind::other;
    const auto& udp = header_at<UdpHeader>(frame, view.esp);
    const std::uint32_t datagram = be16(udp.length);
    if (datagram < sizeof udp || datagram > view.length) return EspKind::other;
    view.udp_source = be16(udp.source_port);
    view.esp += sizeof udp;
    view.length = datagram - sizeof udp;
    if (view.length == 1 && frame[view.esp] == 0xff) return EspKind::keepalive;
    std::uint32_t marker = 0;
    if (view.length >= sizeof marker) std::memcpy(&marker, frame + view.esp, sizeof marker);
    if (marker == 0) return EspKind::other;  // IKE, or too short for either
  }
  if (view.length < sizeof(EspHeader)) return EspKind::cut;
  const auto& header = header_at<EspHeader>(frame, view.esp);
  view.spi = be32(header.spi);
  view.sequence = be32(header.sequence);
  return EspKind::esp;
}

bool esp_look(const EspFormat& format, std::uint8_t* frame, const EspView& view, std::uint32_t upper,
              crypto::Job& job) {
  const std::uint32_t around = format.clear_bytes() + format.icv;
  if (view.in_udp != format.has_udp || view.length < around + format.align) return false;
  const std::uint32_t enciphered = view.length - around;
  if (enciphered % format.align != 0) return false;
  fill_job(format, frame + view.esp, enciphered, upper, job);
  job.flags |= crypto::job_opens;
  return true;
}

EspTaken esp_take_off(const EspFormat& format, std::uint8_t* frame, const EspView& view) {
  const std::uint32_t enciphered = view.length - format.clear_bytes() - format.icv;
  const std::uint8_t* const text = frame + view.esp + format.clear_bytes();
  const std::uint32_t pad = text[enciphered - 2];
  const std::uint8_t next_header = text[enciphered - 1];
  if (next_header == packet::protocol_no_next) return {EspContent::dummy, 0, 0};
  if (pad + trailer > enciphered || !is_padding(text + enciphered - trailer - pad, pad)) return {};
  const std::uint32_t payload = enciphered - trailer - pad;
  return format.mode == Mode::tunnel ? take_off_tunnel(format, frame, view, payload, next_header)
                                     : take_off_transport(format, frame, view, payload, next_header);
}

}  // namespace sluice::ipsec
