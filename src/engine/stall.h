// Notices when a thread was kept from its work: preempted, or its virtual core not run by the machine below. Lanes and
// workers look at the clock at least once per burst, which is a few microseconds of work; a longer gap between two
// looks is time in which the thread did nothing.
//
// This is what distinguishes a deadline that the machine broke from one that the engine broke, so in doubt a gap is the
// engine's. What may take long by itself (computing a batch on the core, confirming rules, a driver's receive, transmit
// or launch call) ends with resume() instead of look(). A stall in the midst of it is not excused. Nor is the wait
// for a core after a sleep of the thread's own choice. So the sum is a lower bound of the time that the thread waited
// for a core, and on the CPU device, whose lanes compute nearly all of the time, a low one (docs/engine.md, Time). One
// writer, any readers.
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
  // `working`: after work whose length is the engine's.
  void look(std::uint64_t now, bool working) { working ? resume(now) : look(now); }
  // After a sleep of the thread's own choice, or work whose length is the engine's: no gap.
  void resume(std::uint64_t now) { last_ = now; }

  std::uint64_t times() const { return times_.get(); }
  std::uint64_t ticks() const { return ticks_.get(); }  // together
  std::uint64_t longest() const { return longest_.get(); }
  // Together, until that moment, which may lie in or before the last gap; an earlier gap that it lies in counts whole.
  // So may, from another thread, one that is just being counted: two moments' difference is for since().
  std::uint64_t ticks_until(std::uint64_t moment) const {
    // Against the writer's order: each is as new as the one before it or newer, so that no gap is taken from a sum
    // without it.
    const std::uint64_t end = last_end_.acquire();
    const std::uint64_t gap = last_gap_.acquire();
    const std::uint64_t ticks = ticks_.get();
    return ticks - (moment < end ? std::min(end - moment, gap) : 0);
  }
  // Between two moments, from ticks_until() of each; 0 where what was read of the earlier one is already more.
  static std::uint64_t since(std::uint64_t earlier, std::uint64_t later) { return later - std::min(earlier, later); }

 private:
  // The writer's own line, and one that others read.
  alignas(64) std::uint64_t gap_tsc_;
  std::uint64_t last_ = rte_rdtsc();
  alignas(64) Counter times_;
  Counter ticks_, longest_, last_end_, last_gap_;
};

}  // namespace sluice::engine
