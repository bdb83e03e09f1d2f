// What a kernel counts its loops with (loop_count.h).
#pragma once

#include <cuda_runtime.h>

#include "bench/techniques/loop_count.h"
#include "device/frame_read.cuh"

namespace sluice::match {

class Tally {
 public:
  // An iteration of the calling threads' warp, wherever they are.
  __device__ void iteration() {
    const unsigned active = __activemask();
    if (threadIdx.x % 32 == static_cast<unsigned>(__ffs(static_cast<int>(active))) - 1) add(active);
  }
  // One that all threads of the warp come to; `active`: this one has something to do in it.
  __device__ void iteration(bool active) {
    const unsigned lanes = __ballot_sync(device::every_lane, active);
    if (threadIdx.x % 32 == 0 && lanes != 0) add(lanes);
  }
  __device__ void add_to(const LoopTally& tally) const {
    atomicAdd(tally.iterations, static_cast<unsigned long long>(iterations_));
    atomicAdd(tally.active, static_cast<unsigned long long>(active_));
  }

 private:
  __device__ void add(unsigned lanes) {
    ++iterations_;
    active_ += static_cast<unsigned>(__popc(lanes));
  }

  unsigned iterations_ = 0, active_ = 0;
};

// Hears of no key, but of the loops of a search (automaton/gram_scan.cuh).
struct LoopHearer {
  static constexpr bool hears = false, counts = true;
  Tally& of_bytes;
  Tally& of_keys;
  __device__ void bytes(bool active) const { of_bytes.iteration(active); }
  __device__ void keys(bool active) const { of_keys.iteration(active); }
};

}  // namespace sluice::match
