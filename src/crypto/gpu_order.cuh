// A block of threads makes the order of a batch's jobs that device/warp_schedule.h would make on a core: bins of one
// algorithm, direction and length range, longest first, what is left over in front of them. The jobs' lengths are what
// it goes by; it learns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/gpu_work.cuh"
#include "crypto/job.h"
#include "crypto/key.h"
#include "device/launch.h"
#include "device/warp_schedule.h"

namespace sluice::crypto {

inline constexpr unsigned order_threads = 1024;

constexpr std::size_t order_shared_bytes(std::uint32_t jobs) {
  return (jobs * sizeof(std::uint16_t) + 127) / 128 * 128;
}

class JobOrder {
 public:
  static constexpr unsigned ranges = 6, kinds = 80, labels = kinds * ranges;

  // Longest first.
  static __device__ unsigned label(const GpuWork& work, std::uint32_t job) {
    const auto* const halves = reinterpret_cast<const uint4*>(work.jobs + job);
    const std::uint32_t slot = __ldcs(halves).z;
    const uint4 high = __ldcs(halves + 1);
    const std::uint32_t key = slot < work.slots ? __ldcg(reinterpret_cast<const std::uint32_t*>(work.keys + slot)) : 0;
    const unsigned kind = (key & 7) * 10 + (key >> 8 & 7) * 2 + (high.w >> 24 & job_opens);
    const unsigned range = ((high.z >> 16) + (high.w & 0xFFFF)) / 256;
    return (ranges - 1 - (range < ranges ? range : ranges - 1)) * kinds + (kind < kinds ? kind : kinds - 1);
  }
};

// `order`: as many places as there are jobs, rounded up to 32, in device memory.
__global__ void __launch_bounds__(order_threads) order_jobs(GpuWork work, std::uint16_t* order) {
  constexpr unsigned labels = JobOrder::labels, chunks = (labels + 31) / 32;
  SLUICE_DYNAMIC_SHARED(std::uint16_t, label);
  __shared__ std::uint32_t count[labels], full[labels], left[labels], taken[labels];
  for (unsigned l = threadIdx.x; l < labels; l += order_threads) count[l] = taken[l] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < work.count; i += order_threads) {
    label[i] = static_cast<std::uint16_t>(JobOrder::label(work, i));
    atomicAdd(&count[label[i]], 1U);
  }
  __syncthreads();
  // Where a label's leftovers begin, of one kind behind the other; and behind all of them its full bins.
  if (threadIdx.x < 32) {
    std::uint32_t place = 0;
    for (unsigned pass = 0; pass < 2; ++pass) {
      for (unsigned c = 0; c < chunks; ++c) {
        const unsigned at = 32 * c + threadIdx.x;
        const unsigned by_kind = at % JobOrder::ranges * JobOrder::kinds + at / JobOrder::ranges;
        const unsigned l = pass == 0 ? by_kind : at;
        const std::uint32_t own = at >= labels ? 0 : pass == 0 ? count[l] % 32 : count[l] / 32 * 32;
        std::uint32_t end = own;
        for (unsigned by = 1; by < 32; by *= 2) {
          const std::uint32_t below = __shfl_up_sync(every_lane, end, by);
          if (threadIdx.x >= by) end += below;
        }
        if (at < labels) (pass == 0 ? left : full)[l] = place + end - own;
        place += __shfl_sync(every_lane, end, 31);
      }
      for (; pass == 0 && place % 32 != 0; ++place)
        if (threadIdx.x == 0) order[place] = device::no_item;
    }
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < work.count; i += order_threads) {
    const unsigned l = label[i];
    const std::uint32_t rank = atomicAdd(&taken[l], 1U), in_bins = count[l] / 32 * 32;
    order[rank < in_bins ? full[l] + rank : left[l] + rank - in_bins] = static_cast<std::uint16_t>(i);
  }
}

}  // namespace sluice::crypto
