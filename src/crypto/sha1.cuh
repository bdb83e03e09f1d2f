// SHA-1's compression (FIPS 180-4, 6.1.2), one block of one message a thread, all in registers.
#pragma once

#include <cstdint>

#include "device/launch.h"

namespace sluice::crypto {

struct Sha1State {
  std::uint32_t word[5];
};

// `w`: the block's words, big-endian; used up.
__device__ __forceinline__ void sha1_block(Sha1State& state, std::uint32_t (&w)[16]) {
  std::uint32_t a = state.word[0], b = state.word[1], c = state.word[2], d = state.word[3], e = state.word[4];
  SLUICE_UNROLL
  for (int t = 0; t < 80; ++t) {
    if (t >= 16) {
      const std::uint32_t mixed = w[(t + 13) % 16] ^ w[(t + 8) % 16] ^ w[(t + 2) % 16] ^ w[t % 16];
      w[t % 16] = __funnelshift_l(mixed, mixed, 1);
    }
    const std::uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    const std::uint32_t k = t < 20 ? 0x5A827999u : t < 40 ? 0x6ED9EBA1u : t < 60 ? 0x8F1BBCDCu : 0xCA62C1D6u;
    const std::uint32_t next = __funnelshift_l(a, a, 5) + f + e + k + w[t % 16];
    e = d;
    d = c;
    c = __funnelshift_l(b, b, 30);
    b = a;
    a = next;
  }
  state.word[0] += a;
  state.word[1] += b;
  state.word[2] += c;
  state.word[3] += d;
  state.word[4] += e;
}

}  // namespace sluice::crypto
