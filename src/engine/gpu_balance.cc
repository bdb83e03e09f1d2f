#include "engine/gpu_balance.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::uint64_t worth_percent = 90;  // of the larger load before

}  // namespace

std::optional<GpuBalance::Move> GpuBalance::look(std::span<const LaneLoad> lanes, const std::vector<bool>& up,
                                                 Time now) {
  if (now - looked_ < interval) return {};
  looked_ = now;
  stays_until_.resize(lanes.size());
  std::vector<LaneLoad> since(lanes.begin(), lanes.end());
  std::vector<Gpu> gpus(up.size());
  for (std::size_t lane = 0; lane < std::min(lanes.size(), before_.size()); ++lane) {
    since[lane].frames -= before_[lane].frames;
    since[lane].waits -= before_[lane].waits;
    if (since[lane].frames == 0) continue;
    Gpu& gpu = gpus[since[lane].gpu];
    gpu.frames += since[lane].frames;
    ++gpu.lanes;
    gpu.waiting += since[lane].waits != 0 ? 1 : 0;
  }
  before_.assign(lanes.begin(), lanes.end());
  if (std::exchange(is_settling_, false)) return {};
  const auto move = best_move(since, gpus, up, now);
  if (move) {
    stays_until_[move->lane] = now + settled;
    is_settling_ = true;
  }
  return move;
}

std::optional<GpuBalance::Move> GpuBalance::best_move(std::span<const LaneLoad> lanes, const std::vector<Gpu>& gpus,
                                                      const std::vector<bool>& up, Time now) const {
  std::optional<std::uint32_t> from, to;
  for (std::uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (!up[gpu]) continue;
    if (gpus[gpu].is_full() && (!from || gpus[gpu].frames > gpus[*from].frames)) from = gpu;
    if (!gpus[gpu].is_full() && (!to || gpus[gpu].frames < gpus[*to].frames)) to = gpu;
  }
  if (!from || !to) return {};
  std::uint64_t least = gpus[*from].frames * worth_percent / 100;
  std::optional<Move> best;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].gpu != *from || now < stays_until_[lane]) continue;
    const std::uint64_t larger =
        std::max(gpus[*from].frames - lanes[lane].frames, gpus[*to].frames + lanes[lane].frames);
    if (lanes[lane].frames == 0 || larger >= least) continue;
    least = larger;
    best = Move{lane, *to};
  }
  return best;
}

}  // namespace sluice::engine
