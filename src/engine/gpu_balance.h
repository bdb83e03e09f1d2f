// Which lane moves to another GPU, because its own has too much to do and another one has less.
//
// Lanes are dealt by NUMA node (gpu_spread.h), and loads of lanes differ. In an interval a GPU is full when more than
// half of the lanes that gave it frames had to wait for it, or refused frames. Of the full ones the GPU with the most
// frames gives one lane to the one with the fewest that is up and not full: the lane by which the larger of the two
// loads falls the most, by a tenth at least. So equal loads stay where they are, whatever they are.
//
// A lane that was moved stays for `settled`. Between two moves lies an interval that says nothing.
//
// Thread-safety: none; the engine's control thread. Cost: a look is lanes times GPUs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::engine {

class GpuBalance {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds interval{1}, settled{30};

  // Counted since the lane began. `waits`: how often it had no batch to receive into, and frames that it refused.
  struct LaneLoad {
    std::uint32_t gpu;
    std::uint64_t frames;  // given to a GPU
    std::uint64_t waits;
  };
  struct Move {
    std::size_t lane;
    std::uint32_t gpu;
  };
  // `up`: of each GPU. At most one move in an interval; calls within one say nothing.
  std::optional<Move> look(std::span<const LaneLoad> lanes, const std::vector<bool>& up, Time now);

 private:
  struct Gpu {
    std::uint64_t frames = 0;
    unsigned lanes = 0, waiting = 0;
    bool is_full() const { return 2 * waiting > lanes; }
  };
  std::optional<Move> best_move(std::span<const LaneLoad> lanes, const std::vector<Gpu>& gpus,
                                const std::vector<bool>& up, Time now) const;

  std::vector<LaneLoad> before_;
  std::vector<Time> stays_until_;  // of each lane
  Time looked_{};
  bool is_settling_ = true;
};

}  // namespace sluice::engine
