// Products in GCM's field (SP 800-38D 6.3), one a thread, in constant time: carry-less products of 32 bits are integer
// products of operands in which three of four bits are left out, so that carries end in the holes.
//
// A FieldElement is the block's 16 bytes as a big-endian number: word[3] begins with the first byte.
#pragma once

#include <cstdint>

#include "device/launch.h"

namespace sluice::crypto {

struct FieldElement {
  std::uint32_t word[4];
};

// `block` as it lies in memory.
__device__ __forceinline__ FieldElement field_element(uint4 block) {
  return {{__byte_perm(block.w, 0, 0x0123), __byte_perm(block.z, 0, 0x0123), __byte_perm(block.y, 0, 0x0123),
           __byte_perm(block.x, 0, 0x0123)}};
}
__device__ __forceinline__ uint4 field_bytes(const FieldElement& x) {
  return make_uint4(__byte_perm(x.word[3], 0, 0x0123), __byte_perm(x.word[2], 0, 0x0123),
                    __byte_perm(x.word[1], 0, 0x0123), __byte_perm(x.word[0], 0, 0x0123));
}

__device__ __forceinline__ std::uint64_t carryless_product(std::uint32_t x, std::uint32_t y) {
  std::uint32_t xs[4], ys[4];
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) {
    xs[i] = x & 0x11111111u << i;
    ys[i] = y & 0x11111111u << i;
  }
  std::uint64_t product = 0;
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) {
    std::uint64_t sum = 0;
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) sum ^= std::uint64_t{xs[j]} * ys[(i - j) & 3];
    product |= sum & 0x1111111111111111ull << i;
  }
  return product;
}

// 64 bits by 64, by Karatsuba's three products.
__device__ __forceinline__ void carryless_product(const std::uint32_t* x, const std::uint32_t* y, std::uint32_t* out) {
  const std::uint64_t low = carryless_product(x[0], y[0]), high = carryless_product(x[1], y[1]);
  const std::uint64_t middle = carryless_product(x[0] ^ x[1], y[0] ^ y[1]) ^ low ^ high;
  out[0] = static_cast<std::uint32_t>(low);
  out[1] = static_cast<std::uint32_t>(low >> 32) ^ static_cast<std::uint32_t>(middle);
  out[2] = static_cast<std::uint32_t>(high) ^ static_cast<std::uint32_t>(middle >> 32);
  out[3] = static_cast<std::uint32_t>(high >> 32);
}

__device__ inline FieldElement field_product(const FieldElement& x, const FieldElement& y) {
  std::uint32_t z[8], middle[4];
  carryless_product(x.word, y.word, z);
  carryless_product(x.word + 2, y.word + 2, z + 4);
  const std::uint32_t xs[2] = {x.word[0] ^ x.word[2], x.word[1] ^ x.word[3]};
  const std::uint32_t ys[2] = {y.word[0] ^ y.word[2], y.word[1] ^ y.word[3]};
  carryless_product(xs, ys, middle);
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) middle[i] ^= z[i] ^ z[i + 4];
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) z[i + 2] ^= middle[i];
  // The order of bits is turned round, which leaves the product one bit short of its place.
  SLUICE_UNROLL
  for (int i = 7; i > 0; --i) z[i] = z[i] << 1 | z[i - 1] >> 31;
  z[0] <<= 1;
  // By x^128 = x^7 + x^2 + x + 1.
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) {
    z[i + 4] ^= z[i] ^ z[i] >> 1 ^ z[i] >> 2 ^ z[i] >> 7;
    z[i + 3] ^= z[i] << 31 ^ z[i] << 30 ^ z[i] << 25;
  }
  return {{z[4], z[5], z[6], z[7]}};
}

}  // namespace sluice::crypto
