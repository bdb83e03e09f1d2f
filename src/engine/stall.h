// Measures how long a thread was stalled: it was preempted, or the machine below did not run its virtual core. Lanes
// and workers look at the clock at least once per burst, which is a few microseconds of work. A gap of more than
// stall_gap_us between two looks counts as a stall.
//
// Stalls separate deadlines that the machine broke from those that the engine broke. In doubt a gap is the engine's.
// Work that may take long by itself ends with resume() instead of look(): computing a batch on the core, confirming
// rules, a driver's receive, transmit or launch call. A stall during such work is not counted. Nor is the wait for a
// core after the thread has slept by its own choice. So the sum is a lower bound of the time that the thread waited for
// a core. On the CPU device, whose lanes compute nearly all the time, it is a low one (docs/engine.md, Time).
//
// Thread-safety: one thread writes, any thread reads.
#pragma once

#include <rte_cycles.h>

#include <algorithm>
#include <cstdint>

#include "engine/counters.h"

namespace sluice::engine {

inline constexpr std::uint64_t stall_gap_us = 50;

class StallWatch {
 public:
  StallWatch() : gap_tsc_(rte_get_tsc_hz() * stall_gap_us / 1'000'000) {}

  void look(std::uint64_t now) {
    const std::uint64_t gap = now - last_;
    last_ = now;
    if (gap > gap_tsc_) [[unlikely]] {
      times_.add(1);
      ticks_.publish(ticks_.get() + gap);
      last_gap_.publish(gap);
      last_end_.publish(now);
      if (gap > longest_.get()) {
        longest_.set(gap);
      }
    }
  }
  // `working`: the thread has just done work that may take long by itself.
  void look(std::uint64_t now, bool working) { working ? resume(now) : look(now); }
  // After a sleep of the thread's own choice, or work that may take long by itself: no gap is counted.
  void resume(std::uint64_t now) { last_ = now; }

  std::uint64_t times() const { return times_.get(); }
  std::uint64_t ticks() const { return ticks_.get(); }  // sum of all stalls
  std::uint64_t longest() const { return longest_.get(); }
  // The sum of all stalls until `moment`. If that lies in the last gap, the part of the gap before it counts. If it
  // lies in an earlier gap, the whole gap counts. So two sums may be out of order, also when another thread reads while
  // a gap is counted: take their difference by since().
  std::uint64_t ticks_until(std::uint64_t moment) const {
    // Against the writer's order: each is as new as the one before it or newer, so that no gap is taken from a sum
    // without it.
    const std::uint64_t end = last_end_.acquire();
    const std::uint64_t gap = last_gap_.acquire();
    const std::uint64_t ticks = ticks_.get();
    return ticks - (moment < end ? std::min(end - moment, gap) : 0);
  }
  // The stalls between two moments, from the ticks_until() of each; 0 if the earlier sum is the larger one.
  static std::uint64_t since(std::uint64_t earlier, std::uint64_t later) { return later - std::min(earlier, later); }

 private:
  // The writer's own line, and one that others read.
  alignas(64) std::uint64_t gap_tsc_;
  std::uint64_t last_ = rte_rdtsc();
  alignas(64) Counter times_;
  Counter ticks_, longest_, last_end_, last_gap_;
};

}  // namespace sluice::engine
