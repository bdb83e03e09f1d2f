// The kernels that do jobs: one for SRTP's algorithms alone, with the memory and registers of these, and one for all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/aes.cuh"
#include "crypto/gpu_jobs.cuh"
#include "crypto/gpu_work.cuh"
#include "device/launch.h"

namespace sluice::crypto {

inline constexpr unsigned most_media_warps = 4, most_all_warps = 8;  // to a block

template <bool sums>
__global__ void __launch_bounds__(32 * most_media_warps, 2) do_media_jobs(GpuWork work, unsigned per_warp) {
  SLUICE_DYNAMIC_SHARED(std::uint32_t, aes);
  auto* const memory = reinterpret_cast<WarpMemory<ForMedia>*>(aes + aes_table_bytes / 4) + threadIdx.x / 32;
  spread_aes_table(aes);
  __syncthreads();
  JobWarp<ForMedia, sums> warp(work, aes, *memory);
  const unsigned block_warps = blockDim.x / 32, stride = gridDim.x * block_warps * per_warp;
  for (unsigned first = (blockIdx.x * block_warps + threadIdx.x / 32) * per_warp; first < work.count; first += stride)
    warp.run(first, work.count - first < per_warp ? work.count - first : per_warp);
  __syncwarp();
  warp.wipe();
}

// An order's first places take longest: so those that follow one another go to different multiprocessors.
template <bool sums>
__global__ void __launch_bounds__(32 * most_all_warps, 1) do_all_jobs(GpuWork work, unsigned per_warp) {
  SLUICE_DYNAMIC_SHARED(std::uint32_t, aes);
  std::uint32_t* const inverse = aes + aes_table_bytes / 4;
  auto* const memories = reinterpret_cast<WarpMemory<ForAll>*>(inverse + (work.has_inverse ? aes_table_bytes / 4 : 0));
  spread_aes_table(aes_words, aes);
  if (work.has_inverse) spread_aes_table(aes_inverse_words, inverse);
  __syncthreads();
  JobWarp<ForAll, sums> warp(work, aes, memories[threadIdx.x / 32]);
  const unsigned stride = gridDim.x * (blockDim.x / 32) * per_warp;
  for (unsigned first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * per_warp; first < work.count; first += stride) {
    const long long begin = clock64();
    warp.run(first, work.count - first < per_warp ? work.count - first : per_warp);
    if (work.times != nullptr && threadIdx.x % 32 == 0 && first % 32 == 0)
      work.times[first / 32] = static_cast<std::uint32_t>(clock64() - begin);
  }
  __syncwarp();
  warp.wipe();
}

// A warp for each record.
__global__ void apply_records(Key* keys, const KeyRecord* records, unsigned count) {
  constexpr unsigned words = sizeof(Key) / 16;
  static_assert(words <= 32 && offsetof(KeyRecord, slot) == sizeof(Key));
  const unsigned lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
  for (unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += warps) {
    const auto* const from = reinterpret_cast<const uint4*>(records + i);
    if (lane < words) reinterpret_cast<uint4*>(keys + records[i].slot)[lane] = __ldcs(from + lane);
  }
}

}  // namespace sluice::crypto
