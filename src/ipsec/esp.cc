#include "ipsec/esp.h"

#include <algorithm>
#include <array>
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
using packet::Ipv6Header;
using packet::UdpHeader;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t trailer = 2;  // padding's length and next header
constexpr std::uint8_t ecn_mask = 3;

// RFC 4303 2.4: the padding's bytes.
constexpr auto padding = [] {
  std::array<std::uint8_t, 255> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  return bytes;
}();

std::uint32_t payload_of(const PacketFormat& format, const InnerPacket& inner) {
  const std::uint32_t payload = inner.length - (format.mode == Mode::tunnel ? 0U : inner.headers);
  return format.mode == Mode::tunnel ? std::max<std::uint32_t>(payload, format.pad_to) : payload;
}

std::uint32_t padding_of(const PacketFormat& format, std::uint32_t payload) {
  return -(payload + trailer) & format.last_of_align();
}

void write_iv(const PacketFormat& format, std::uint64_t sequence, std::uint8_t* iv) {
  if (format.iv == PacketFormat::Iv::none) return;
  const std::uint64_t unique = __builtin_bswap64(format.first_iv + sequence);
  std::memcpy(iv, &unique, sizeof unique);
  if (format.iv == PacketFormat::Iv::block) std::memset(iv + sizeof unique, 0, sizeof unique);
}

void fill_job(const PacketFormat& format, std::uint8_t* esp, std::uint32_t enciphered, std::uint32_t upper,
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

// `room`: bytes from there on that may be written. A copy of a constant length is a store or two.
void write_padding(std::uint8_t* bytes, std::uint32_t length, std::uint32_t room) {
  constexpr std::uint32_t usual = 16;
  if (length <= usual && room >= usual) {
    std::memcpy(bytes, padding.data(), usual);
  } else {
    std::memcpy(bytes, padding.data(), length);
  }
}

// What stands in front of ESP. Mostly that is a header of IPv4 alone.
void write_front(const PacketFormat& format, std::uint8_t* to) {
  if (format.outer_bytes == sizeof(packet::Ipv4Header)) {
    std::memcpy(to, format.outer, sizeof(packet::Ipv4Header));
  } else {
    std::memcpy(to, format.outer, format.outer_bytes);
  }
}

// Padding counts up from 1 (RFC 4303 2.4 has the receiver check it).
bool is_padding(const std::uint8_t* bytes, std::uint32_t length) {
  return std::memcmp(bytes, padding.data(), length) == 0;
}

}  // namespace

// --- Out ---

std::uint32_t esp_behind(const PacketFormat& format, const InnerPacket& inner) {
  const std::uint32_t payload = payload_of(format, inner);
  const std::uint32_t given = inner.length - (format.mode == Mode::tunnel ? 0U : inner.headers);
  return payload - given + padding_of(format, payload) + trailer + format.icv;
}

std::uint32_t esp_most_inner(const PacketFormat& format, std::uint32_t mtu, std::uint32_t headers) {
  const std::uint32_t kept = format.mode == Mode::tunnel ? 0 : headers;
  const std::uint32_t around = kept + format.outer_bytes + format.clear_bytes() + format.icv;
  if (mtu < around + trailer) return 0;
  const std::uint32_t enciphered = (mtu - around) & ~format.last_of_align();
  return enciphered < trailer ? 0 : kept + enciphered - trailer;
}

void esp_put_on(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
                crypto::Job& job) {
  const std::uint32_t front = esp_front(format);
  const bool tunnel = format.mode == Mode::tunnel;
  const std::uint32_t kept = ethernet + (tunnel ? 0U : inner.headers);
  if (tunnel) {
    std::memmove(frame, frame + front, ethernet);
  } else {
    std::memmove(frame, frame + front, kept);
  }
  std::uint8_t* const esp = frame + kept + format.outer_bytes;
  const std::uint32_t given = inner.length - (tunnel ? 0U : inner.headers);
  const std::uint32_t payload = payload_of(format, inner);
  const std::uint32_t pad = padding_of(format, payload);
  const std::uint32_t enciphered = payload + pad + trailer;
  const std::uint32_t length = kept - ethernet + front + enciphered + format.icv;  // of the IP packet
  write_front(format, frame + kept);
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
  if (payload != given) [[unlikely]]
    std::memset(behind, 0, payload - given);
  write_padding(behind + payload - given, pad, pad + trailer + format.icv);
  esp[format.clear_bytes() + payload + pad] = static_cast<std::uint8_t>(pad);
  esp[format.clear_bytes() + payload + pad + 1] = !tunnel             ? inner.protocol
                                                  : inner.family == 4 ? packet::protocol_ipv4
                                                                      : packet::protocol_ipv6;
  fill_job(format, esp, enciphered, static_cast<std::uint32_t>(sequence >> 32), job);
}

void esp_checksum(const PacketFormat& format, std::uint8_t* frame, std::uint32_t length) {
  auto& ip = header_at<Ipv6Header>(frame, ethernet);
  std::uint32_t at = ethernet + sizeof ip;
  for (std::uint8_t kind = ip.next_header; kind != packet::protocol_udp;) {
    const bool is_ah = kind == packet::protocol_ah;  // whose length is in other units (RFC 4302 2.2)
    kind = frame[at];
    at += is_ah ? (frame[at + 1] + 2U) * 4U : (frame[at + 1] + 1U) * 8U;
  }
  auto& udp = header_at<UdpHeader>(frame, at);
  udp.checksum = 0;
  udp.checksum = packet::transport_checksum(ip, packet::protocol_udp, &udp, length - at);
}

// --- In ---

bool esp_look(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t upper,
              crypto::Job& job) {
  const std::uint32_t around = format.clear_bytes() + format.icv;
  if (view.in_udp != format.has_udp || view.length < around + format.align) return false;
  const std::uint32_t enciphered = view.length - around;
  if ((enciphered & format.last_of_align()) != 0) return false;
  fill_job(format, frame + view.at, enciphered, upper, job);
  job.flags |= crypto::job_opens;
  return true;
}

Taken esp_take_off(const PacketFormat& format, std::uint8_t* frame, const OuterView& view) {
  const std::uint32_t enciphered = view.length - format.clear_bytes() - format.icv;
  const std::uint8_t* const text = frame + view.at + format.clear_bytes();
  const std::uint32_t pad = text[enciphered - 2];
  const std::uint8_t next_header = text[enciphered - 1];
  if (next_header == packet::protocol_no_next) return {Content::dummy, 0, 0};
  if (pad + trailer > enciphered || !is_padding(text + enciphered - trailer - pad, pad)) return {};
  const std::uint32_t payload = enciphered - trailer - pad;
  return take_out(format, frame, view, view.at + format.clear_bytes(), payload, next_header);
}

}  // namespace sluice::ipsec
