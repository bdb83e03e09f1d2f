// Admission at the deadline: a frame that cannot leave in time any more is refused before it costs anything, and is
// counted as `overdue`; so the frames behind it are on time. Without this a lane that has fallen behind (the device
// carries less than what comes in, or the machine kept a thread away) sends everything late from then on.
//
// A frame that has waited `age` when it is collected needs up to a cycle until its batch is sealed, and then the time
// that the lane takes for the frames that are ahead of it. By Little's law, what a batch took from seal to transmit,
// divided by the frames that were ahead of it then, its own included, is the lane's time for a frame at its present
// rate; it is averaged over the last few batches. A frame is refused when all that adds up to more than eight tenths of
// the deadline; the rest is for what the average does not show.
//
// A lane with more than six tenths of a deadline's work under way receives nothing (full()): what comes waits in the
// receive queue, which loses what it has no room for, and is judged when it is collected. With nothing ahead, fresh
// frames are let in whatever the last batches met. A port that does not say when frames arrived (port.h, waited())
// delivers them with an age of 0.
//
// Thread-safety: left() from the forwarder's thread, the others from the collector's. Cost: two multiplications per
// burst, a division per batch.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::engine {

class Admission {
 public:
  // In ticks. Lets everything in when it is made without a deadline.
  Admission() = default;
  Admission(std::uint64_t deadline, std::uint64_t cycle)
      : cycle_(cycle),
        budget_(static_cast<double>(deadline) * budget_share),
        most_(static_cast<double>(deadline) * share_under_way) {}

  // A batch has left `ticks` after it was sealed; of the lane's frames `ahead` were under way then, its own included.
  void left(std::uint64_t ticks, std::uint64_t ahead) {
    if (ahead != 0) {
      const double mine = static_cast<double>(ticks) / static_cast<double>(ahead);
      const double before = ticks_per_frame_.load(std::memory_order_relaxed);
      ticks_per_frame_.store(before + (mine - before) * (before > 0 ? share_of_last : 1), std::memory_order_relaxed);
    }
  }
  // Whether a lane with so many frames under way should not receive now.
  bool full(std::uint64_t ahead) const { return time_for(ahead) > most_; }
  // Whether a frame of this age can leave in time behind those `ahead`, collected ones included; `in_cycles`: its batch
  // will wait for a time point.
  bool in_time(std::uint64_t age, std::uint64_t ahead, bool in_cycles) const {
    return static_cast<double>(age + (in_cycles ? cycle_ : 0)) + time_for(ahead) <= budget_;
  }

 private:
  static constexpr double budget_share = 0.8;
  static constexpr double share_under_way = 0.6;
  static constexpr double share_of_last = 0.25;

  double time_for(std::uint64_t frames) const {
    return static_cast<double>(frames) * ticks_per_frame_.load(std::memory_order_relaxed);
  }

  std::uint64_t cycle_ = 0;
  double budget_ = 1e300, most_ = 1e300;
  std::atomic<double> ticks_per_frame_{0};
};

}  // namespace sluice::engine
