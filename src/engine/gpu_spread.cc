#include "engine/gpu_spread.h"

#include <algorithm>

namespace sluice::engine {

std::vector<std::uint32_t> deal_lanes(const std::vector<int>& lanes, const std::vector<int>& gpus) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> of(lanes.size(), none), has(gpus.size(), 0);
  const std::size_t least = lanes.size() / gpus.size(), more = lanes.size() % gpus.size();
  std::size_t larger = 0;  // GPUs that have one more than `least`
  const auto deal = [&](bool near) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (of[lane] != none) continue;
      std::uint32_t best = none;
      for (std::uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
        const bool is_near = lanes[lane] >= 0 && gpus[gpu] == lanes[lane];
        const bool is_full = has[gpu] > least || (has[gpu] == least && larger == more);
        if (is_full || (near && !is_near)) continue;
        if (best == none || has[gpu] < has[best]) best = gpu;
      }
      if (best == none) continue;
      of[lane] = best;
      larger += has[best]++ == least ? 1 : 0;
    }
  };
  deal(true);
  deal(false);
  return of;
}

}  // namespace sluice::engine
