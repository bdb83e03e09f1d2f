// SHA-256's and SHA-512's compression (FIPS 180-4, 6.2.2 and 6.4.2), one block of one message a thread, all in
// registers. SHA-384 is SHA-512 from other states.
//
// 16 rounds are unrolled, not all: of SHA-512 all of them would be 50 KB of instructions.
#pragma once

#include <cstdint>

#include "device/launch.h"

namespace sluice::crypto {

// SHA-512's constants (4.2.3). SHA-256's are the upper halves of the first 64 (4.2.2).
__constant__ const std::uint64_t sha2_constants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc, 0x3956c25bf348b538,
    0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118, 0xd807aa98a3030242, 0x12835b0145706fbe,
    0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2, 0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235,
    0xc19bf174cf692694, 0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5, 0x983e5152ee66dfab,
    0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4, 0xc6e00bf33da88fc2, 0xd5a79147930aa725,
    0x06ca6351e003826f, 0x142929670a0e6e70, 0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed,
    0x53380d139d95b3df, 0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30, 0xd192e819d6ef5218,
    0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8, 0x19a4c116b8d2d0c8, 0x1e376c085141ab53,
    0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8, 0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373,
    0x682e6ff3d6b2b8a3, 0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b, 0xca273eceea26619c,
    0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178, 0x06f067aa72176fba, 0x0a637dc5a2c898a6,
    0x113f9804bef90dae, 0x1b710b35131c471b, 0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc,
    0x431d67c49c100d4c, 0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

__device__ __forceinline__ std::uint32_t sha2_turned(std::uint32_t x, unsigned by) {
  return __funnelshift_r(x, x, by);
}
__device__ __forceinline__ std::uint64_t sha2_turned(std::uint64_t x, unsigned by) {
  return x >> by | x << (64 - by);
}

// The six functions and the constants of each width (4.1.2, 4.1.3).
__device__ __forceinline__ std::uint32_t sha2_sum_0(std::uint32_t x) {
  return sha2_turned(x, 2) ^ sha2_turned(x, 13) ^ sha2_turned(x, 22);
}
__device__ __forceinline__ std::uint32_t sha2_sum_1(std::uint32_t x) {
  return sha2_turned(x, 6) ^ sha2_turned(x, 11) ^ sha2_turned(x, 25);
}
__device__ __forceinline__ std::uint32_t sha2_sigma_0(std::uint32_t x) {
  return sha2_turned(x, 7) ^ sha2_turned(x, 18) ^ x >> 3;
}
__device__ __forceinline__ std::uint32_t sha2_sigma_1(std::uint32_t x) {
  return sha2_turned(x, 17) ^ sha2_turned(x, 19) ^ x >> 10;
}
__device__ __forceinline__ std::uint64_t sha2_sum_0(std::uint64_t x) {
  return sha2_turned(x, 28) ^ sha2_turned(x, 34) ^ sha2_turned(x, 39);
}
__device__ __forceinline__ std::uint64_t sha2_sum_1(std::uint64_t x) {
  return sha2_turned(x, 14) ^ sha2_turned(x, 18) ^ sha2_turned(x, 41);
}
__device__ __forceinline__ std::uint64_t sha2_sigma_0(std::uint64_t x) {
  return sha2_turned(x, 1) ^ sha2_turned(x, 8) ^ x >> 7;
}
__device__ __forceinline__ std::uint64_t sha2_sigma_1(std::uint64_t x) {
  return sha2_turned(x, 19) ^ sha2_turned(x, 61) ^ x >> 6;
}
template <typename Word>
__device__ __forceinline__ Word sha2_constant(int t) {
  return static_cast<Word>(sha2_constants[t] >> (64 - 8 * sizeof(Word)));
}

// `Word`: of 32 bits for SHA-256, of 64 for SHA-512. `w`: the block's words, big-endian; used up.
template <typename Word>
__device__ __forceinline__ void sha2_block(Word (&state)[8], Word (&w)[16]) {
  constexpr int rounds = sizeof(Word) == 4 ? 64 : 80;
  Word s[8];
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) s[i] = state[i];
  SLUICE_ROLLED
  for (int t = 0; t < rounds; t += 16) {
    SLUICE_UNROLL
    for (int i = 0; i < 16; ++i) {
      if (t != 0) w[i] += sha2_sigma_1(w[(i + 14) % 16]) + w[(i + 9) % 16] + sha2_sigma_0(w[(i + 1) % 16]);
      // a to h move on by a place in each round: they stand still here, and their names turn.
      const auto at = [&](int letter) -> Word& { return s[(letter + 16 - i) % 8]; };
      Word &a = at(0), &b = at(1), &c = at(2), &d = at(3), &e = at(4), &f = at(5), &g = at(6), &h = at(7);
      const Word one = h + sha2_sum_1(e) + ((e & f) ^ (~e & g)) + sha2_constant<Word>(t + i) + w[i];
      d += one;
      h = one + sha2_sum_0(a) + ((a & b) ^ (a & c) ^ (b & c));
    }
  }
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

}  // namespace sluice::crypto
