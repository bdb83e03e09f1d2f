// When what the routes do not name any more is named by the GPU's tables and by batches in flight no more either: the
// tables were up to date after it, and a grace has passed since (lookup/gpu_fib.h says what must).
//
// Thread-safety: cycle() on the worker's thread, settled() on any. Cost: two loads and a store a cycle.
#pragma once

#include <atomic>
#include <chrono>

namespace sluice::function {

class GpuRest {
 public:
  using Clock = std::chrono::steady_clock;
  // A GPU that has had no cycle for so long is lost: nothing is looked up in its tables.
  static constexpr std::chrono::seconds lost_after{10};

  // Once a cycle, after `now` was taken; `up_to_date` answers whether all changes made so far are on their way.
  template <typename UpToDate>
  void cycle(Clock::time_point now, Clock::duration grace, UpToDate up_to_date) {
    if (current_at_ == Clock::time_point{}) {
      current_at_ = up_to_date() ? now : Clock::time_point{};
    } else if (now - current_at_ >= grace) {
      settled_.store(current_at_, std::memory_order_relaxed);
      current_at_ = {};
    }
    last_cycle_.store(now, std::memory_order_relaxed);
  }

  // What was freed at this moment or before can be used again. Before the first cycle: nothing.
  Clock::time_point settled(Clock::time_point now, Clock::duration grace) const {
    const Clock::time_point last = last_cycle_.load(std::memory_order_relaxed);
    if (last != Clock::time_point{} && now - last > lost_after) {
      return now - grace;
    }
    return settled_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<Clock::time_point> last_cycle_{Clock::time_point{}};
  std::atomic<Clock::time_point> settled_{Clock::time_point::min()};
  Clock::time_point current_at_{};  // the tables were up to date; the grace runs
};

}  // namespace sluice::function
