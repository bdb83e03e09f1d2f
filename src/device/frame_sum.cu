#include <algorithm>

#include "device/cuda_check.h"
#include "device/frame_read.cuh"
#include "device/frame_sum.h"
#include "device/launch.h"

namespace sluice::device {
namespace {

constexpr unsigned block_threads = 256, block_warps = block_threads / 32;
constexpr unsigned link_blocks = 64;     // fill the link
constexpr unsigned staged_blocks = 264;  // two for each SM

struct Frames {
  const std::uint64_t* address;
  const std::uint16_t* length;
  std::uint32_t count;
  StagedFrames staged;
};

// Each warp takes groups of `per_warp` frames, and fetches the next group's descriptors while it reads the frames of
// this one.
__global__ void __launch_bounds__(block_threads) sum_groups(Frames frames, std::uint32_t* sums, unsigned per_warp) {
  __shared__ unsigned block_sums[block_warps][32];
  unsigned* const sum = block_sums[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned stride = gridDim.x * block_warps * per_warp;
  unsigned first = (blockIdx.x * block_warps + threadIdx.x / 32) * per_warp;
  const auto mine = [&](unsigned from) { return lane < per_warp && from + lane < frames.count; };
  std::uint64_t address = mine(first) ? frame_place(frames.address, frames.staged, first + lane) : 0;
  unsigned length = mine(first) ? frames.length[first + lane] : 0;
  for (; first < frames.count; first += stride) {
    const FrameGroup group = FrameGroup::of(address, length);
    const unsigned next = first + stride;
    address = mine(next) ? frame_place(frames.address, frames.staged, next + lane) : 0;
    length = mine(next) ? frames.length[next + lane] : 0;
    sum[lane] = 0;
    __syncwarp();
    group.read<4>([&](const FrameUnit& unit, uint4 bytes) {
      const unsigned line = line_sum(byte_sum(bytes));
      if (lane % 8 == 0 && line != 0) atomicAdd(&sum[unit.frame], line);
    });
    __syncwarp();
    if (mine(first)) sums[first + lane] = sum[lane];
    __syncwarp();
  }
}

}  // namespace

Expected<void> sum_frames(const std::uint64_t* frame, const std::uint16_t* length, std::uint32_t* sum,
                          std::uint32_t count, void* stream, const StagedFrames& staged) {
  const unsigned max_blocks = staged.step == 0 ? link_blocks : staged_blocks;
  if (count == 0) return {};
  const unsigned per_warp = frames_per_warp(count, max_blocks * block_warps);
  const unsigned per_block = per_warp * block_warps;
  SLUICE_CUDA_TRY(launch(sum_groups, std::min(max_blocks, (count + per_block - 1) / per_block), block_threads, 0,
                         static_cast<cudaStream_t>(stream), Frames{frame, length, count, staged}, sum, per_warp));
  return {};
}

}  // namespace sluice::device
