// Captures that others made, as frames with their times: classic pcap of either byte order, microseconds or
// nanoseconds, of Ethernet and of the link types whose packets are made Ethernet frames here (loopback, raw IP, PPP,
// Linux cooked).
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

struct CapturedFrame {
  std::uint64_t microseconds = 0;
  std::string bytes;  // from the Ethernet header on
};

namespace detail {

// Bytes of link header before the IP packet.
inline std::size_t link_header(std::uint32_t link) {
  switch (link) {
    case 0:  // loopback: the address family
    case 9:  // PPP with address and control
      return 4;
    case 12:
    case 101:
    case 228:
    case 229:
      return 0;
    case 113:
      return 16;
    default:
      throw std::runtime_error("a capture of link type " + std::to_string(link));
  }
}

inline std::string as_ethernet(std::uint32_t link, const std::string& bytes) {
  if (link == 1) return bytes;
  const std::size_t skipped = link_header(link);
  if (bytes.size() <= skipped) return {};
  const bool v6 = (static_cast<std::uint8_t>(bytes[skipped]) >> 4) == 6;
  return std::string(12, '\0') + (v6 ? "\x86\xdd" : std::string("\x08\0", 2)) + bytes.substr(skipped);
}

}  // namespace detail

// Throws std::runtime_error for a link type that is not known.
inline std::vector<CapturedFrame> read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<CapturedFrame> frames;
  if (bytes.size() < 24) return frames;
  const auto word = [&](std::size_t at, bool swapped) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return swapped ? __builtin_bswap32(value) : value;
  };
  const bool swapped = word(0, false) == 0xd4c3b2a1U || word(0, false) == 0x4d3cb2a1U;
  const std::uint64_t units = word(0, swapped) == 0xa1b23c4dU ? 1000 : 1;
  const std::uint32_t link = word(20, swapped);
  for (std::size_t at = 24; at + 16 <= bytes.size();) {
    const std::size_t size = word(at + 8, swapped);
    frames.push_back({word(at, swapped) * std::uint64_t{1'000'000} + word(at + 4, swapped) / units,
                      detail::as_ethernet(link, bytes.substr(at + 16, size))});
    at += 16 + size;
  }
  return frames;
}

}  // namespace sluice::test
