// When a batch is late: from a tick on, but time in which the thread did not run does not count. That is what takes
// longer than `stall` ticks, and a tenth of them for each frame, since it last looked, besides confirming.
//
// Times are ticks of the time-stamp counter. Thread-safety: none. Cost: reading that counter.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace sluice::function {

class Lateness {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void never_late() { until_ = never; }
  // `now`: when it is taken to have looked. `frames` and `spent`: as is_late() has them. `stall` 0: the thread always
  // runs.
  void set(std::uint64_t until, std::uint64_t now, std::uint64_t stall, std::uint64_t frames, std::uint64_t spent) {
    until_ = until;
    stall_ = stall;
    looked(now, frames, spent);
  }
  // Frames and ticks of confirming until now.
  bool is_late(std::uint64_t frames, std::uint64_t spent) {
    return until_ != never && is_late_at(__rdtsc(), frames, spent);
  }
  bool is_late_at(std::uint64_t now, std::uint64_t frames, std::uint64_t spent) {
    const std::uint64_t since = now - looked_, confirmed = spent - spent_;
    const bool was_stalled = stall_ != 0 && since > stall_ + (frames - frames_) * (stall_ / 10) + confirmed;
    if (was_stalled && until_ != 0) until_ += since - confirmed;
    looked(now, frames, spent);
    return now >= until_;
  }

 private:
  void looked(std::uint64_t now, std::uint64_t frames, std::uint64_t spent) {
    looked_ = now;
    frames_ = frames;
    spent_ = spent;
  }

  std::uint64_t until_ = never, stall_ = 0;
  std::uint64_t looked_ = 0, frames_ = 0, spent_ = 0;  // when it looked last
};

}  // namespace sluice::function
