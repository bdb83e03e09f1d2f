// The frames of a batch, group by group, as the kernels of this folder that read MatchBatch take them.
#pragma once

#include <cuda_runtime.h>

#include "match/automaton/gram_scan.cuh"
#include "match/automaton/match_spread.cuh"

namespace sluice::match {

__device__ __forceinline__ MatchFrame frame_of(const MatchBatch& batch, unsigned per_warp, unsigned i) {
  return threadIdx.x % 32 < per_warp && i < batch.count ? MatchFrame{batch.frame[i], batch.span[i], batch.klass[i]}
                                                        : MatchFrame{};
}

// A warp takes `per_warp` frames at a time and fetches the next ones' descriptors meanwhile.
template <typename Groups>
__device__ __forceinline__ void for_each_group(const MatchBatch& batch, unsigned per_warp, Groups&& group) {
  const unsigned lane = threadIdx.x % 32, stride = gridDim.x * match_block_warps * per_warp;
  unsigned first = (blockIdx.x * match_block_warps + threadIdx.x / 32) * per_warp;
  MatchFrame next = frame_of(batch, per_warp, first + lane);
  for (; first < batch.count; first += stride) {
    const MatchFrame frame = next;
    group(first, frame, [&] { next = frame_of(batch, per_warp, first + stride + lane); });
    __syncwarp();
  }
}

}  // namespace sluice::match
