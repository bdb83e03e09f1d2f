// Bytes, words and 16-byte units of packets as a warp has them in registers and in shared memory (gpu_jobs.cuh).
#pragma once

#include <cstdint>

#include "device/frame_read.cuh"
#include "device/launch.h"

namespace sluice::crypto {

// Four bytes of a row from any byte on.
__device__ __forceinline__ std::uint32_t row_word(const std::uint32_t* row, int at) {
  return __funnelshift_r(row[at / 4], row[at / 4 + 1], at % 4 * 8);
}

// 16 bytes of a row from any byte on, and back again: those around them in their words stay.
__device__ __forceinline__ uint4 row_block(const std::uint32_t* row, int at) {
  const std::uint32_t* const w = row + at / 4;
  const unsigned shift = at % 4 * 8;
  return make_uint4(__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
                    __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift));
}
__device__ __forceinline__ void put_row_block(std::uint32_t* row, int at, uint4 block) {
  std::uint32_t* const w = row + at / 4;
  const unsigned shift = at % 4 * 8;
  w[0] = (w[0] & ~(~0u << shift)) | block.x << shift;
  w[1] = __funnelshift_l(block.x, block.y, shift);
  w[2] = __funnelshift_l(block.y, block.z, shift);
  w[3] = __funnelshift_l(block.z, block.w, shift);
  w[4] = (w[4] & ~0u << shift) | __funnelshift_l(block.w, 0, shift);
}

// A message's big-endian word of which `there` bytes are in the row, followed by `tail`'s from its highest on.
__device__ __forceinline__ std::uint32_t with_tail(std::uint32_t word, int there, std::uint64_t tail) {
  if (there >= 4) return word;
  if (there > 0) return (word & ~0u << 8 * (4 - there)) | static_cast<std::uint32_t>(tail >> 32) >> 8 * there;
  return there > -8 ? static_cast<std::uint32_t>(tail << -8 * there >> 32) : 0;
}

// `length` bytes of shared memory, in as few stores as their place allows.
__device__ inline void store_bytes(std::uint64_t to, const std::uint8_t* from, int length) {
  while (length > 0) {
    const int width = to % 4 == 0 && length >= 4 ? 4 : to % 2 == 0 && length >= 2 ? 2 : 1;
    std::uint32_t bytes = 0;
    for (int i = 0; i < width; ++i) bytes |= std::uint32_t{from[i]} << 8 * i;
    if (width == 4) *reinterpret_cast<std::uint32_t*>(to) = bytes;
    if (width == 2) *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(bytes);
    if (width == 1) *reinterpret_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(bytes);
    to += static_cast<unsigned>(width);
    from += width;
    length -= width;
  }
}

// 16 bytes of `before` and then `now`, `skew` of them being before's last.
__device__ __forceinline__ uint4 join_blocks(uint4 before, uint4 now, unsigned skew) {
  const unsigned from = 16 - skew;
  std::uint32_t w[9] = {before.x, before.y, before.z, before.w, now.x, now.y, now.z, now.w, 0};
  SLUICE_UNROLL
  for (unsigned by = 4; by > 0; by /= 2) SLUICE_UNROLL
  for (unsigned i = 0; i + by < 9; ++i) w[i] = (from / 4 & by) != 0 ? w[i + by] : w[i];
  const unsigned shift = from % 4 * 8;
  return make_uint4(__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
                    __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift));
}

// The 16-bit words of `bytes`, and `sum`.
__device__ __forceinline__ std::uint32_t add_words(std::uint32_t bytes, std::uint32_t sum) {
  return __dp2a_lo(bytes, 0x0101u, sum);
}

// Of 16 bytes at `offset`, those in [begin, end).
__device__ __forceinline__ std::uint32_t add_words(uint4 bytes, int offset, int begin, int end, std::uint32_t sum) {
  if (offset < begin || offset + 16 > end) {
    bytes = device::bytes_and(bytes, device::byte_mask(begin - offset, end - offset));
  }
  return add_words(bytes.x, add_words(bytes.y, add_words(bytes.z, add_words(bytes.w, sum))));
}

// Folded; as it would be if the words began at `first`.
__device__ __forceinline__ std::uint32_t fold_words(std::uint32_t sum, int first) {
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return first % 2 == 0 ? sum : (sum & 0xFF) << 8 | sum >> 8;
}

}  // namespace sluice::crypto
