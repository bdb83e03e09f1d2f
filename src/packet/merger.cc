#include "packet/merger.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

constexpr std::size_t checksum_offset = 16;  // of TCP
constexpr std::size_t longest_packet = 65535;

std::uint64_t pseudo_header(const std::uint8_t* frame, const Metadata& places, std::size_t bytes) {
  if (places.family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame, places.network);
    return std::uint64_t{ip.source} + ip.destination + be16(protocol_tcp) + be16(static_cast<std::uint16_t>(bytes));
  }
  const auto& ip = header_at<Ipv6Header>(frame, places.network);
  return partial_sum(ip.source, sizeof ip.source + sizeof ip.destination,
                     be16(protocol_tcp) + std::uint64_t{be32(static_cast<std::uint32_t>(bytes))});
}

bool checksum_ok(const std::uint8_t* frame, const Metadata& places) {
  const std::size_t bytes = places.end - places.transport;
  return fold_sum(partial_sum(frame + places.transport, bytes, pseudo_header(frame, places, bytes))) == 0xffff;
}

std::uint32_t sequence_of(const std::uint8_t* tcp) {
  return be32(header_at<TcpHeader>(tcp, 0).sequence);
}

std::uint8_t flags_of(const std::uint8_t* tcp) {
  return header_at<TcpHeader>(tcp, 0).flags;
}

// Plain: Ethernet, IP without more, TCP with a payload, nothing behind; a checksum that is right.
bool is_plain(const std::uint8_t* frame, std::size_t length, Merger::Checksum checksum, Metadata& places,
              std::size_t& headers) {
  const auto found = find_headers(frame, length);
  if (!found || found->protocol != protocol_tcp || found->network != sizeof(EthernetHeader) || found->end != length) {
    return false;
  }
  const std::size_t ip_bytes = found->transport - found->network;
  if (ip_bytes != (found->family == 4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header)) ||
      found->transport + sizeof(TcpHeader) > length) {
    return false;
  }
  const std::size_t tcp_bytes = (header_at<TcpHeader>(frame, found->transport).data_offset >> 4) * std::size_t{4};
  if (tcp_bytes < sizeof(TcpHeader) || found->transport + tcp_bytes >= length) {
    return false;
  }
  if (found->family == 4 && !ipv4_checksum_ok(frame + found->network)) {
    return false;
  }
  places = *found;
  headers = found->transport + tcp_bytes;
  return checksum == Merger::Checksum::known_right || checksum_ok(frame, places);
}

}  // namespace

bool Merger::begin(const std::uint8_t* frame, std::size_t length, Checksum checksum) {
  Metadata places;
  std::size_t headers = 0;
  if (!is_plain(frame, length, checksum, places, headers) || flags_of(frame + places.transport) != tcp_ack) {
    return false;
  }
  first_ = frame;
  places_ = places;
  header_bytes_ = headers;
  payload_bytes_ = total_ = length - headers;
  count_ = 1;
  ended_ = false;
  last_flags_ = tcp_ack;
  return true;
}

// All but what counts up or is of one frame alone: lengths, checksums, PSH.
bool Merger::follows(const std::uint8_t* frame) const {
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::memcmp(first_ + from, frame + from, to - from) == 0;
  };
  const std::size_t network = places_.network;
  const std::size_t transport = places_.transport;
  if (!same(0, network)) {
    return false;
  }
  if (places_.family == 4) {
    const auto& before = header_at<Ipv4Header>(first_, network);
    const auto& ip = header_at<Ipv4Header>(frame, network);
    const bool counts_up = be16(ip.id) == static_cast<std::uint16_t>(be16(before.id) + count_);
    if (!counts_up || !same(network, network + 2) || !same(network + 6, network + 10) ||
        !same(network + 12, transport)) {
      return false;
    }
  } else if (!same(network, network + 4) || !same(network + 6, transport)) {
    return false;
  }
  return same(transport, transport + 4) && same(transport + 8, transport + 13) &&
         same(transport + 14, transport + checksum_offset) && same(transport + 18, header_bytes_) &&
         sequence_of(frame + transport) == static_cast<std::uint32_t>(sequence_of(first_ + transport) + total_);
}

bool Merger::add(const std::uint8_t* frame, std::size_t length, Checksum checksum) {
  Metadata places;
  std::size_t headers = 0;
  if (ended_ || length < header_bytes_ || length - header_bytes_ > payload_bytes_ ||
      length - places_.network + total_ > longest_packet || !is_plain(frame, length, checksum, places, headers) ||
      headers != header_bytes_ || places.family != places_.family || !follows(frame)) {
    return false;
  }
  const std::uint8_t flags = flags_of(frame + places.transport);
  if ((flags & ~tcp_psh) != tcp_ack) {
    return false;
  }
  last_flags_ = flags;
  total_ += length - headers;
  ++count_;
  ended_ = length - headers < payload_bytes_ || flags != tcp_ack;
  return true;
}

void Merger::write_headers(std::uint8_t* to) const {
  std::memcpy(to, first_, header_bytes_);
  const std::size_t packet = header_bytes_ - places_.network + total_;
  if (places_.family == 4) {
    auto& ip = header_at<Ipv4Header>(to, places_.network);
    ip.total_length = be16(static_cast<std::uint16_t>(packet));
    ip.checksum = ipv4_header_checksum(ip);
  } else {
    header_at<Ipv6Header>(to, places_.network).payload_length =
        be16(static_cast<std::uint16_t>(packet - sizeof(Ipv6Header)));
  }
  auto& tcp = header_at<TcpHeader>(to, places_.transport);
  tcp.flags = last_flags_;
  tcp.checksum = fold_sum(pseudo_header(to, places_, header_bytes_ - places_.transport + total_));
}

}  // namespace sluice::packet
