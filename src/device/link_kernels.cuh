// Kernels of the link probe: data that can be checked wherever it has been, and what only a running kernel can measure.
#pragma once

#include <cstdint>

#include "device/launch.h"

namespace sluice::device {

// The word that stands at index `i` of the probe's data. Another salt, other data: a copy that moved nothing is seen.
__host__ __device__ __forceinline__ std::uint32_t probe_word(std::uint64_t i, std::uint32_t salt) {
  std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9E3779B1u + salt;
  x ^= x >> 15;
  x *= 0x85EBCA77u;
  return x ^ x >> 13;
}

// Rows of words: row r of `to` holds the words that row r of a source with `pitch` words between rows has.
struct WordRows {
  std::uint64_t rows, width, pitch;
};

static __global__ void fill_rows(std::uint32_t* to, WordRows shape, std::uint32_t salt) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x, total = shape.rows * shape.width;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step)
    to[i] = probe_word(i / shape.width * shape.pitch + i % shape.width, salt);
}

static __global__ void check_rows(const std::uint32_t* data, WordRows shape, std::uint32_t salt,
                                  unsigned long long* wrong) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x, total = shape.rows * shape.width;
  unsigned long long mine = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step)
    mine += data[i] != probe_word(i / shape.width * shape.pitch + i % shape.width, salt);
  if (mine != 0) atomicAdd(wrong, mine);
}

// A warp a row: writes `width` words (a multiple of four) of each row, straight into host memory.
static __global__ void __launch_bounds__(512) write_rows(std::uint32_t* host, WordRows shape, std::uint32_t salt) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * blockDim.x / 32;
  for (std::uint64_t row = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32; row < shape.rows; row += warps)
    for (std::uint64_t w = threadIdx.x % 32 * 4; w < shape.width; w += 128) {
      const std::uint64_t i = row * shape.pitch + w;
      __stcs(reinterpret_cast<uint4*>(host + i), make_uint4(probe_word(i, salt), probe_word(i + 1, salt),
                                                            probe_word(i + 2, salt), probe_word(i + 3, salt)));
    }
}

static __global__ void do_nothing() {}

#ifndef SLUICE_SIMT
// Answers each new value of *ask with the same in *answer, until `rounds` or until `cycles` have passed.
static __global__ void answer_flag(volatile std::uint32_t* ask, volatile std::uint32_t* answer, std::uint32_t rounds,
                                   long long cycles) {
  const long long begin = clock64();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    while (*ask != round)
      if (clock64() - begin > cycles) return;
    *answer = round;
  }
}
#endif

}  // namespace sluice::device
