// The same work on every core that this process may use, for comparison with a GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "bench/rig.h"

namespace sluice::cli::bench {

struct CoreShare {
  std::uint64_t frames = 0, bytes = 0;
};

// A thread for each core, bound to it, does `work` until `stop`; `core` counts them from 0. `seconds` begin when all
// threads are there. The Outcome has the sums.
Outcome on_every_core(double seconds,
                      const std::function<CoreShare(std::size_t core, const std::atomic<bool>& stop)>& work);

}  // namespace sluice::cli::bench
