// For tests: fragments of a frame, as a router or a sender cuts them (RFC 791 section 3.2; RFC 8200 section 4.5).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::flow::test {

using packet::be16;
using packet::Bytes;

inline bool is_v4(const Bytes& whole) {
  return whole[12] == 0x08;
}
inline std::size_t data_of(const Bytes& whole) {
  return sizeof(packet::EthernetHeader) + (is_v4(whole) ? (whole[14] & 0x0fU) * 4U : sizeof(packet::Ipv6Header));
}

// Of a frame without tags and extension headers, what its IP packet holds from `begin` to `end`; zeros behind its end.
inline Bytes fragment_of(const Bytes& whole, std::uint32_t id, std::size_t begin, std::size_t end, bool more) {
  constexpr std::size_t l3 = sizeof(packet::EthernetHeader);
  const std::size_t data = data_of(whole);
  Bytes fragment(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(data));
  const auto place = static_cast<std::uint16_t>(begin / 8);
  const std::size_t size = end - begin;
  if (is_v4(whole)) {
    auto& ip = packet::header_at<packet::Ipv4Header>(fragment.data(), l3);
    ip.total_length = be16(static_cast<std::uint16_t>(data - l3 + size));
    ip.id = be16(static_cast<std::uint16_t>(id));
    ip.fragment = be16(static_cast<std::uint16_t>(place | (more ? packet::ipv4_more_fragments : 0)));
    ip.checksum = packet::ipv4_header_checksum(ip);
  } else {
    auto& ip = packet::header_at<packet::Ipv6Header>(fragment.data(), l3);
    ip.payload_length = be16(static_cast<std::uint16_t>(sizeof(packet::Ipv6Fragment) + size));
    const packet::Ipv6Fragment header{ip.next_header, 0, be16(static_cast<std::uint16_t>(place << 3 | (more ? 1 : 0))),
                                      packet::be32(id)};
    ip.next_header = packet::protocol_fragment;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&header);
    fragment.insert(fragment.end(), bytes, bytes + sizeof header);
  }
  for (std::size_t i = begin; i < end; ++i) fragment.push_back(data + i < whole.size() ? whole[data + i] : 0);
  return fragment;
}

// All of them, of `size` bytes, a multiple of eight, but the last.
inline std::vector<Bytes> fragments_of(const Bytes& whole, std::uint32_t id, std::size_t size) {
  std::vector<Bytes> all;
  const std::size_t length = whole.size() - data_of(whole);
  for (std::size_t at = 0; at < length; at += size) {
    all.push_back(fragment_of(whole, id, at, std::min(at + size, length), at + size < length));
  }
  return all;
}

}  // namespace sluice::flow::test
