// Launches the kernels of gpu_kernels.cuh: how many warps to a block and blocks, and with how much shared memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "crypto/gpu_kernels.cuh"
#include "crypto/gpu_order.cuh"
#include "device/cuda_check.h"
#include "device/frame_read.cuh"
#include "device/launch.h"
#include "device/warp_schedule.h"

namespace sluice::crypto {

template <typename For>
constexpr std::size_t shared_bytes(unsigned block_warps, unsigned tables) {
  return tables * aes_table_bytes + block_warps * sizeof(WarpMemory<For>);
}

// Warps to a block. For media four where its shared memory has 109 KB, of which an H200's multiprocessor has capacity
// for two blocks; two from 71 KB on; one on a GPU with 64 KB. For all algorithms up to eight, or seven with the inverse
// table, that take all of a multiprocessor's; but no more than give each multiprocessor a block. Of 8,192 packets there
// are two, of 32 packets each, and another batch's block finds capacity beside it: packets that CBC seals are not done
// sooner by more warps, for a lane does one.
class JobLauncher {
 public:
  // Of GPU `index`, which is the current one.
  Expected<void> create(int index, std::uint32_t max_packets) {
    int capacity = 0, multiprocessors = 0;
    SLUICE_CUDA_TRY(cudaDeviceGetAttribute(&capacity, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
    SLUICE_CUDA_TRY(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, index));
    multiprocessors_ = static_cast<unsigned>(multiprocessors);
    const auto shared = static_cast<std::size_t>(capacity);
    media_warps_ = most_media_warps;
    while (media_warps_ > 1 && shared_bytes<ForMedia>(media_warps_, 1) > shared) media_warps_ /= 2;
    for (const unsigned tables : {1U, 2U}) {
      unsigned& warps = all_warps_[tables - 1];
      for (warps = most_all_warps; warps > 0 && shared_bytes<ForAll>(warps, tables) > shared;) --warps;
    }
    for (const auto kernel : {do_media_jobs<false>, do_media_jobs<true>}) {
      SLUICE_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes<ForMedia>(media_warps_, 1))));
    }
    const std::size_t most = std::max(shared_bytes<ForAll>(all_warps_[0], 1),
                                      all_warps_[1] != 0 ? shared_bytes<ForAll>(all_warps_[1], 2) : 0);
    for (const auto kernel : {do_all_jobs<false>, do_all_jobs<true>}) {
      SLUICE_CUDA_TRY(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
    }
    SLUICE_CUDA_TRY(cudaFuncSetAttribute(order_jobs, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(order_shared_bytes(std::min(max_packets, most_in_order)))));
    return {};
  }

  // In `order`, and `work` goes by it then. Of more jobs than an order can name, none.
  static Expected<void> make_order(GpuWork& work, std::uint16_t* order, cudaStream_t stream) {
    if (work.count > most_in_order) return {};
    SLUICE_CUDA_TRY(device::launch(order_jobs, 1, order_threads, order_shared_bytes(work.count), stream, work, order));
    constexpr std::uint32_t warp = device::WarpSchedule::warp;
    work.count = (work.count + warp - 1) / warp * warp;
    work.order = order;
    return {};
  }

  Expected<void> launch_media(const GpuWork& work, cudaStream_t stream) const {
    const unsigned per_warp = device::frames_per_warp(work.count, worth_media_warps);
    const unsigned per_block = per_warp * media_warps_;
    const unsigned blocks = std::min(most_media_blocks, (work.count + per_block - 1) / per_block);
    SLUICE_CUDA_TRY(device::launch(work.sums == nullptr ? do_media_jobs<false> : do_media_jobs<true>, blocks,
                                   32 * media_warps_, shared_bytes<ForMedia>(media_warps_, 1), stream, work, per_warp));
    return {};
  }

  Expected<void> launch_all(const GpuWork& work, cudaStream_t stream) const {
    const unsigned tables = work.has_inverse ? 2 : 1, most = all_warps_[tables - 1];
    if (most == 0) return make_error("this GPU's shared memory has no capacity for the tables of AES-CBC");
    const unsigned per_warp = device::frames_per_warp(work.count, multiprocessors_ * 3 / 2);
    const unsigned warps = (work.count + per_warp - 1) / per_warp;
    const unsigned block_warps = std::clamp((warps + multiprocessors_ - 1) / multiprocessors_, 1U, most);
    const unsigned blocks = std::min((warps + block_warps - 1) / block_warps, multiprocessors_);
    SLUICE_CUDA_TRY(device::launch(work.sums == nullptr ? do_all_jobs<false> : do_all_jobs<true>, blocks,
                                   32 * block_warps, shared_bytes<ForAll>(block_warps, tables), stream, work,
                                   per_warp));
    return {};
  }

 private:
  static constexpr std::uint32_t most_in_order = device::no_item;
  static constexpr unsigned most_media_blocks = 264;
  static constexpr unsigned worth_media_warps = 512;  // below so many groups of 32 a warp takes fewer packets at a time

  unsigned multiprocessors_ = 1, media_warps_ = 1;
  std::array<unsigned, 2> all_warps_ = {};  // at most, with one table and with two; 0: not even one
};

}  // namespace sluice::crypto
