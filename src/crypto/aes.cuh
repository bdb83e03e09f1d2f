// AES enciphers one block a thread (FIPS-197), by the table of 256 words that joins SubBytes and MixColumns, a copy of
// it in each of the 32 banks of shared memory. Whatever the bytes, a warp's lookups meet in no bank. It deciphers by a
// table of the same size that joins the inverses, with the round keys of the equivalent inverse cipher (5.3.5).
//
// Words are as they lie in memory: the first byte is the lowest. Shared memory: aes_table_bytes for each table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/launch.h"

namespace sluice::crypto {

inline constexpr std::size_t aes_table_bytes = 256 * 32 * sizeof(std::uint32_t);

constexpr std::uint8_t aes_double(std::uint8_t x) {
  return static_cast<std::uint8_t>(x << 1 ^ (x >> 7) * 0x1b);
}

struct AesTable {
  std::uint32_t word[256];
};

// Of each byte what SubBytes gives. Walks the field by the generator 3 and its inverse, so that p * q is 1 all the way.
struct AesBytes {
  std::uint8_t byte[256];
};
constexpr AesBytes make_aes_bytes() {
  AesBytes bytes = {};
  std::uint8_t p = 1, q = 1;
  do {
    p = static_cast<std::uint8_t>(p ^ aes_double(p));
    q = static_cast<std::uint8_t>(q ^ q << 1);
    q = static_cast<std::uint8_t>(q ^ q << 2);
    q = static_cast<std::uint8_t>(q ^ q << 4);
    q = static_cast<std::uint8_t>(q ^ (q >> 7) * 0x09);
    const auto turned = [&](int by) { return q << by | q >> (8 - by); };
    bytes.byte[p] = static_cast<std::uint8_t>(q ^ turned(1) ^ turned(2) ^ turned(3) ^ turned(4) ^ 0x63);
  } while (p != 1);
  bytes.byte[0] = 0x63;
  return bytes;
}

// The bytes' products with MixColumns' 2, 1, 1, 3.
constexpr AesTable make_aes_table() {
  const AesBytes bytes = make_aes_bytes();
  AesTable table = {};
  for (unsigned x = 0; x < 256; ++x) {
    const std::uint8_t s = bytes.byte[x];
    const std::uint32_t twice = aes_double(s);
    table.word[x] = twice | std::uint32_t{s} << 8 | std::uint32_t{s} << 16 | (twice ^ s) << 24;
  }
  return table;
}

// The inverse's with InvMixColumns' 14, 9, 13, 11.
constexpr AesTable make_aes_inverse_table() {
  const AesBytes bytes = make_aes_bytes();
  AesTable table = {};
  for (unsigned x = 0; x < 256; ++x) {
    const std::uint32_t two = aes_double(static_cast<std::uint8_t>(x)),
                        four = aes_double(static_cast<std::uint8_t>(two)),
                        eight = aes_double(static_cast<std::uint8_t>(four));
    table.word[bytes.byte[x]] =
        (eight ^ four ^ two) | (eight ^ x) << 8 | (eight ^ four ^ x) << 16 | (eight ^ two ^ x) << 24;
  }
  return table;
}

__constant__ const AesTable aes_words = make_aes_table();
__constant__ const AesTable aes_inverse_words = make_aes_inverse_table();

// By all threads of the block; __syncthreads() before the first lookup.
__device__ __forceinline__ void spread_aes_table(const AesTable& words, std::uint32_t* table) {
  for (unsigned i = threadIdx.x / 32; i < 256; i += blockDim.x / 32) table[i * 32 + threadIdx.x % 32] = words.word[i];
}
__device__ __forceinline__ void spread_aes_table(std::uint32_t* table) {
  spread_aes_table(aes_words, table);
}

// The lane's copy of a table.
class AesLookup {
 public:
  __device__ __forceinline__ explicit AesLookup(const std::uint32_t* table) : mine_(table + threadIdx.x % 32) {}
  // Of byte number `byte` of a word.
  __device__ __forceinline__ std::uint32_t operator()(std::uint32_t word, unsigned byte) const {
    return mine_[(word >> 8 * byte & 0xFF) * 32];
  }
  // A column behind a round that is not the last: its bytes are one of each of these words.
  __device__ __forceinline__ std::uint32_t column(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                                  std::uint32_t key) const {
    const AesLookup& look = *this;
    return look(a, 0) ^ __byte_perm(look(b, 1), 0, 0x2103) ^ __byte_perm(look(c, 2), 0, 0x1032) ^
           __byte_perm(look(d, 3), 0, 0x0321) ^ key;
  }

 private:
  const std::uint32_t* mine_;
};

// The columns of a state by `column`. ShiftRows takes their bytes from the columns behind them, its inverse from those
// before.
template <bool inverse, typename Column>
__device__ __forceinline__ uint4 aes_columns(uint4 s, uint4 k, const Column& column) {
  if constexpr (inverse) {
    return make_uint4(column(s.x, s.w, s.z, s.y, k.x), column(s.y, s.x, s.w, s.z, k.y), column(s.z, s.y, s.x, s.w, k.z),
                      column(s.w, s.z, s.y, s.x, k.w));
  } else {
    return make_uint4(column(s.x, s.y, s.z, s.w, k.x), column(s.y, s.z, s.w, s.x, k.y), column(s.z, s.w, s.x, s.y, k.z),
                      column(s.w, s.x, s.y, s.z, k.w));
  }
}

// All rounds; `last`: a column of the last one.
template <bool inverse, typename Last>
__device__ __forceinline__ uint4 aes_rounds(const AesLookup& look, const std::uint32_t* keys, unsigned rounds,
                                            uint4 block, const Last& last) {
  const auto key = [&](unsigned round) { return *reinterpret_cast<const uint4*>(keys + 4 * round); };
  const auto column = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t k) {
    return look.column(a, b, c, d, k);
  };
  const uint4 first = key(0);
  uint4 s = make_uint4(block.x ^ first.x, block.y ^ first.y, block.z ^ first.z, block.w ^ first.w);
  SLUICE_ROLLED
  for (unsigned round = 1; round < rounds; ++round) s = aes_columns<inverse>(s, key(round), column);
  return aes_columns<inverse>(s, key(rounds), last);
}

// `keys`: rounds + 1 round keys of four words, in shared memory, 16-byte aligned.
__device__ __forceinline__ uint4 aes_encipher(const std::uint32_t* table, const std::uint32_t* keys, unsigned rounds,
                                              uint4 block) {
  const AesLookup look(table);
  // The second byte of a word of the table is what SubBytes gives.
  const auto last = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t k) {
    return __byte_perm(__byte_perm(look(a, 0), look(b, 1), 0x0051), __byte_perm(look(c, 2), look(d, 3), 0x0051),
                       0x5410) ^
           k;
  };
  return aes_rounds<false>(look, keys, rounds, block, last);
}

// `table`: of aes_inverse_words. `keys`: of the equivalent inverse cipher, the first used first.
__device__ __forceinline__ uint4 aes_decipher(const std::uint32_t* table, const std::uint32_t* keys, unsigned rounds,
                                              uint4 block) {
  const AesLookup look(table);
  // 14, 9, 13 and 11 together are 1: the sum of a word's bytes is what InvSubBytes gives.
  const auto byte = [&](std::uint32_t word, unsigned at) {
    const std::uint32_t halves = look(word, at) ^ look(word, at) >> 16;
    return (halves ^ halves >> 8) & 0xFF;
  };
  const auto last = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t k) {
    return (byte(a, 0) | byte(b, 1) << 8 | byte(c, 2) << 16 | byte(d, 3) << 24) ^ k;
  };
  return aes_rounds<true>(look, keys, rounds, block, last);
}

}  // namespace sluice::crypto
