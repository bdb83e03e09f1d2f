#include "ipsec/ah.h"

#include <algorithm>
#include <cstring>

#include "packet/checksum.h"

namespace sluice::ipsec {
namespace {

using packet::AhHeader;
using packet::be16;
using packet::be32;
using packet::header_at;
using packet::Ipv4Header;
using packet::Ipv6Header;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t least_ipv4_version = 0x45;  // without options

// Zeros for what changes on the way.
AhKept keep(std::uint8_t* ip, std::uint8_t family) {
  AhKept kept;
  kept.family = family;
  if (family == 4) {
    auto& header = header_at<Ipv4Header>(ip, 0);
    kept.first_word = header.tos;
    kept.fragment = header.fragment;
    kept.checksum = header.checksum;
    kept.ttl = header.ttl;
    header.tos = header.ttl = 0;
    header.fragment = header.checksum = 0;
  } else {
    auto& header = header_at<Ipv6Header>(ip, 0);
    kept.first_word = header.version_class_flow;
    kept.ttl = header.hop_limit;
    header.version_class_flow = be32(6U << 28);
    header.hop_limit = 0;
  }
  return kept;
}

void put_back(std::uint8_t* ip, const AhKept& kept) {
  if (kept.family == 4) {
    auto& header = header_at<Ipv4Header>(ip, 0);
    header.tos = static_cast<std::uint8_t>(kept.first_word);
    header.fragment = kept.fragment;
    header.checksum = kept.checksum;
    header.ttl = kept.ttl;
  } else {
    auto& header = header_at<Ipv6Header>(ip, 0);
    header.version_class_flow = kept.first_word;
    header.hop_limit = kept.ttl;
  }
}

// Whether all headers in front of offset `end` are authenticated as they are, but for the IP header's own fields.
bool is_authenticated_whole(const std::uint8_t* ip, std::uint8_t family, std::uint32_t end) {
  if (family == 4) return ip[0] == least_ipv4_version && end == sizeof(Ipv4Header);
  constexpr std::uint8_t changes_on_the_way = 0x20, pad1 = 0;
  std::uint8_t kind = header_at<Ipv6Header>(ip, 0).next_header;
  for (std::uint32_t at = sizeof(Ipv6Header); at < end;) {
    const std::uint32_t length = (ip[at + 1] + 1U) * 8U;
    if (kind != packet::protocol_hop_by_hop && kind != packet::protocol_destination_options) return false;
    if (at + length > end) return false;
    for (std::uint32_t option = at + 2; option < at + length;) {
      if (ip[option] == pad1) {
        ++option;
        continue;
      }
      if ((ip[option] & changes_on_the_way) != 0 || option + 1 >= at + length) return false;
      option += 2U + ip[option + 1];
    }
    kind = ip[at];
    at += length;
  }
  return true;
}

void fill_job(const PacketFormat& format, std::uint8_t* ip, std::uint32_t length, std::uint32_t upper,
              crypto::Job& job) {
  job = {};
  job.data = reinterpret_cast<std::uint64_t>(ip);
  job.cipher_offset = static_cast<std::uint16_t>(length);
  if (!format.esn) return;
  const std::uint32_t suffix = be32(upper);
  std::memcpy(job.suffix, &suffix, sizeof suffix);
  job.flags = crypto::job_has_suffix;
}

}  // namespace

std::uint32_t ah_bytes(const PacketFormat& format) {
  const std::uint32_t bytes = sizeof(AhHeader) + format.icv;
  const std::uint32_t unit = format.family == 4 ? 4 : 8;  // RFC 4302 2.6, 3.3.3.2.1
  return (bytes + unit - 1) / unit * unit;
}

std::uint32_t ah_most_inner(const PacketFormat& format, std::uint32_t mtu) {
  return mtu < ah_front(format) ? 0 : mtu - ah_front(format);
}

bool ah_put_on(const PacketFormat& format, const InnerPacket& inner, std::uint64_t sequence, std::uint8_t* frame,
               crypto::Job& job, AhKept& kept) {
  const bool tunnel = format.mode == Mode::tunnel;
  const std::uint32_t front = ah_front(format);
  const std::uint32_t before = tunnel ? 0 : inner.headers;  // IP headers that stay in front
  if (!tunnel && !is_authenticated_whole(frame + front + ethernet, inner.family, inner.headers)) return false;
  std::memmove(frame, frame + front, ethernet + before);
  std::uint8_t* const ip = frame + ethernet;
  std::memcpy(ip + before, format.outer, format.outer_bytes);
  const std::uint32_t length = front + inner.length;
  if (tunnel) {
    write_outer(format, inner, sequence, ip, length);
    header_at<packet::EthernetHeader>(frame, 0).ethertype =
        be16(format.family == 4 ? packet::ethertype_ipv4 : packet::ethertype_ipv6);
  } else {
    change_headers(ip, inner.family, length, inner.named_at, packet::protocol_ah);
  }
  std::uint8_t* const at = ip + before + format.outer_bytes;
  const std::uint32_t bytes = ah_bytes(format);
  std::memset(at, 0, bytes);
  auto& header = header_at<AhHeader>(at, 0);
  header.next_header = !tunnel ? inner.protocol : inner.family == 4 ? packet::protocol_ipv4 : packet::protocol_ipv6;
  header.length = static_cast<std::uint8_t>(bytes / 4 - 2);
  header.spi = format.spi;
  header.sequence = be32(static_cast<std::uint32_t>(sequence));
  kept = keep(ip, format.family);
  fill_job(format, ip, length, static_cast<std::uint32_t>(sequence >> 32), job);
  return true;
}

void ah_job(const PacketFormat& format, std::uint8_t* frame, std::uint32_t length, std::uint64_t sequence,
            crypto::Job& job) {
  fill_job(format, frame + ethernet, length - ethernet, static_cast<std::uint32_t>(sequence >> 32), job);
}

void ah_finish(const PacketFormat& format, std::uint8_t* frame, const crypto::Job& job, const AhKept& kept) {
  std::uint8_t* const ip = frame + ethernet;
  std::uint32_t at = kept.family == 4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  std::uint8_t kind = kept.family == 4 ? packet::protocol_ah : header_at<Ipv6Header>(ip, 0).next_header;
  for (; kind != packet::protocol_ah; at += (ip[at + 1] + 1U) * 8U) kind = ip[at];
  std::memcpy(ip + at + sizeof(AhHeader), ip + job.cipher_offset, format.icv);
  put_back(ip, kept);
}

bool ah_look(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, std::uint32_t upper,
             crypto::Job& job, AhKept& kept) {
  std::uint8_t* const ip = frame + ethernet;
  const std::uint32_t bytes = ah_bytes(format);
  if (view.length < bytes || header_at<AhHeader>(frame, view.at).length != bytes / 4 - 2) return false;
  if (!is_authenticated_whole(ip, view.family, view.at - ethernet)) return false;
  const std::uint32_t length = view.at - ethernet + view.length;
  std::uint8_t* const icv = frame + view.at + sizeof(AhHeader);
  std::memcpy(ip + length, icv, format.icv);
  std::memset(icv, 0, format.icv);
  kept = keep(ip, view.family);
  fill_job(format, ip, length, upper, job);
  job.flags |= crypto::job_opens;
  return true;
}

Taken ah_take_off(const PacketFormat& format, std::uint8_t* frame, const OuterView& view, const AhKept& kept) {
  put_back(frame + ethernet, kept);
  const std::uint32_t bytes = ah_bytes(format);
  const std::uint8_t next_header = header_at<AhHeader>(frame, view.at).next_header;
  return take_out(format, frame, view, view.at + bytes, view.length - bytes, next_header);
}

}  // namespace sluice::ipsec
