// An IPv4 packet cut into fragments (RFC 791 section 3.2), itself a fragment or not. A header with options is not cut:
// count() is 1.
//
// Thread-safety: no state but the caller's. Cost: write() copies the fragment's bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {

class Ipv4Fragments {
 public:
  static constexpr std::uint32_t most = 64;

  // `packet`: a whole one of `length` bytes, which stays as it is until the first fragment is written. `mtu`: bytes of
  // each fragment at most, 68 at least.
  Ipv4Fragments(const std::uint8_t* packet, std::uint32_t length, std::uint32_t mtu)
      : packet_(packet), data_(length - header), each_((mtu - header) / 8 * 8) {
    if (packet[0] != 0x45 || (data_ + each_ - 1) / each_ > most) each_ = data_ + 8;
  }

  std::uint32_t count() const { return std::max(1U, (data_ + each_ - 1) / each_); }
  std::uint32_t length(std::uint32_t n) const { return header + std::min(each_, data_ - n * each_); }
  // The n-th, at `to`; the first one last, if `to` is the packet itself.
  void write(std::uint32_t n, std::uint8_t* to) const {
    const std::uint32_t at = n * each_, bytes = length(n);
    std::memmove(to, packet_, header);
    std::memmove(to + header, packet_ + header + at, bytes - header);
    auto& ip = header_at<Ipv4Header>(to, 0);
    const std::uint16_t before = be16(ip.fragment);
    const bool is_last = n + 1 == count();
    const auto more = static_cast<std::uint16_t>(is_last ? before & ipv4_more_fragments : ipv4_more_fragments);
    ip.fragment = be16(
        static_cast<std::uint16_t>((before & ipv4_dont_fragment) | more | ((before & ipv4_fragment_offset) + at / 8)));
    ip.total_length = be16(static_cast<std::uint16_t>(bytes));
    ip.checksum = ipv4_header_checksum(ip);
  }

 private:
  static constexpr std::uint32_t header = sizeof(Ipv4Header);
  const std::uint8_t* packet_;
  const std::uint32_t data_;
  std::uint32_t each_;
};

}  // namespace sluice::packet
