// HMAC (RFC 2104, 4868) over messages that stand in shared memory, a message a lane, from the key's two states: the
// state of the hash is in the lane's registers, and takes from its row what of the message is a whole block.
#pragma once

#include <cstdint>

#include "crypto/gpu_bytes.cuh"
#include "crypto/key.h"
#include "crypto/sha1.cuh"
#include "crypto/sha2.cuh"
#include "device/launch.h"

namespace sluice::crypto {

// Of any hash, as its words lie in memory.
struct MessageState {
  std::uint32_t word[16];
};

__device__ __forceinline__ bool is_wide(Hash hash) {
  return hash == Hash::hmac_sha384 || hash == Hash::hmac_sha512;
}

// What a message of `length` bytes takes with its padding, but for the block of the key.
__device__ __forceinline__ int hash_blocks(Hash hash, int length) {
  if (hash == Hash::none) return 0;
  return is_wide(hash) ? (length + 17 + 127) / 128 : (length + 9 + 63) / 64;
}

// A block's big-endian words, from any byte of a row on.
template <int words>
__device__ __forceinline__ void take_block(const std::uint32_t* row, int at, std::uint32_t (&w)[words]) {
  std::uint32_t left = row[at / 4];
  SLUICE_UNROLL
  for (int i = 0; i < words; ++i) {
    const std::uint32_t right = row[at / 4 + i + 1];
    w[i] = __byte_perm(__funnelshift_r(left, right, at % 4 * 8), 0, 0x0123);
    left = right;
  }
}

// Of a block of which `left` bytes are the message's, which `suffix` follows, of four bytes in the upper half or of
// none. `bits`: in the message's last block its length with the key's block, else 0.
template <int words>
__device__ __forceinline__ void end_message(std::uint32_t (&w)[words], int left, std::uint64_t suffix,
                                            int suffix_length, std::uint32_t bits) {
  const std::uint64_t tail = suffix | std::uint64_t{0x80} << (suffix_length == 0 ? 56 : 24);
  SLUICE_UNROLL
  for (int i = 0; i < words; ++i) w[i] = with_tail(w[i], left - 4 * i, tail);
  if (bits != 0) w[words - 1] = bits;
}

// --- one block of each hash ---

__device__ __forceinline__ void absorb_sha1(MessageState& state, std::uint32_t (&w)[16]) {
  Sha1State sha;
  SLUICE_UNROLL
  for (int i = 0; i < 5; ++i) sha.word[i] = state.word[i];
  sha1_block(sha, w);
  SLUICE_UNROLL
  for (int i = 0; i < 5; ++i) state.word[i] = sha.word[i];
}

__device__ __forceinline__ void absorb_sha256(MessageState& state, std::uint32_t (&w)[16]) {
  std::uint32_t sha[8];
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) sha[i] = state.word[i];
  sha2_block(sha, w);
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) state.word[i] = sha[i];
}

__device__ __forceinline__ void absorb_sha512(MessageState& state, const std::uint32_t (&halves)[32]) {
  std::uint64_t sha[8], w[16];
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) sha[i] = std::uint64_t{state.word[2 * i + 1]} << 32 | state.word[2 * i];
  SLUICE_UNROLL
  for (int i = 0; i < 16; ++i) w[i] = std::uint64_t{halves[2 * i]} << 32 | halves[2 * i + 1];
  sha2_block(sha, w);
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) {
    state.word[2 * i] = static_cast<std::uint32_t>(sha[i]);
    state.word[2 * i + 1] = static_cast<std::uint32_t>(sha[i] >> 32);
  }
}

// --- the second hash, over the digest of the first ---

// `state`: in, the first hash's; out, the tag as it lies in memory. `outer`: the key's other state.
__device__ inline void finish_hmac(Hash hash, MessageState& state, const std::uint32_t* outer) {
  if (is_wide(hash)) {
    const int words = hash == Hash::hmac_sha384 ? 12 : 16;
    std::uint32_t w[32] = {};
    SLUICE_UNROLL
    for (int i = 0; i < 16; ++i) w[i] = i < words ? state.word[i ^ 1] : i == words ? 0x80000000u : 0;
    if (words == 16) w[16] = 0x80000000u;
    SLUICE_UNROLL
    for (int i = 0; i < 16; ++i) state.word[i] = __ldcg(outer + i);
    w[31] = static_cast<std::uint32_t>(128 + 4 * words) * 8;
    absorb_sha512(state, w);
    SLUICE_UNROLL
    for (int i = 0; i < 16; i += 2) {
      const std::uint32_t low = state.word[i];
      state.word[i] = __byte_perm(state.word[i + 1], 0, 0x0123);
      state.word[i + 1] = __byte_perm(low, 0, 0x0123);
    }
    return;
  }
  const int words = hash == Hash::hmac_sha1 ? 5 : 8;
  std::uint32_t w[16] = {};
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) {
    w[i] = i < words ? state.word[i] : i == words ? 0x80000000u : 0;
    state.word[i] = __ldcg(outer + i);
  }
  if (words == 8) w[8] = 0x80000000u;
  w[15] = static_cast<std::uint32_t>(64 + 4 * words) * 8;
  if (hash == Hash::hmac_sha1) {
    absorb_sha1(state, w);
  } else {
    absorb_sha256(state, w);
  }
  SLUICE_UNROLL
  for (int i = 0; i < 8; ++i) state.word[i] = __byte_perm(state.word[i], 0, 0x0123);
}

}  // namespace sluice::crypto
