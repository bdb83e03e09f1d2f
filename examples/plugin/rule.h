// What the element looks for, and whether a frame has it: the same code on a CPU and on a GPU.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

namespace udp_prefix {

struct Rule {
  std::uint16_t port = 123;    // UDP destination
  std::uint8_t length = 0;     // of the bytes; 0: no frame matches
  std::uint8_t bytes[8] = {};  // that the payload begins with
};

// `frame`: from its Ethernet header on. Never reads behind `length` bytes.
ON_BOTH inline bool matches(const Rule& rule, const std::uint8_t* frame, unsigned length) {
  const auto word = [frame](unsigned at) { return static_cast<unsigned>(frame[at] << 8 | frame[at + 1]); };
  unsigned type = 12;  // where the EtherType is
  while (type + 2 <= length && type < 20 && (word(type) == 0x8100 || word(type) == 0x88a8)) type += 4;
  const unsigned ip = type + 2;
  if (rule.length == 0 || ip + 20 > length) return false;
  unsigned udp = 0;
  if (word(type) == 0x0800) {
    const bool is_first = (word(ip + 6) & 0x1fff) == 0;  // of the packet's fragments
    if (frame[ip + 9] == 17 && is_first) udp = ip + (frame[ip] & 0xf) * 4;
  } else if (word(type) == 0x86dd && ip + 40 <= length && frame[ip + 6] == 17) {
    udp = ip + 40;
  }
  if (udp == 0 || udp + 8 + rule.length > length || word(udp + 2) != rule.port) return false;
  for (unsigned b = 0; b < rule.length; ++b) {
    if (frame[udp + 8 + b] != rule.bytes[b]) return false;
  }
  return true;
}

}  // namespace udp_prefix
