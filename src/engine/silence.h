// How long something has not been heard of, and for how long it may not be before it counts as gone.
//
// Time is counted by the looks of the thread that waits: between two of them only so much counts. So time in
// which the machine did not run that thread, or stopped the process, is no silence.
//
// Thread-safety: one thread's. Cost: a few additions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sluice::engine {

class SilenceWatch {
 public:
  // Between two looks `longest_step` counts at most.
  void heard(std::uint64_t now, std::uint64_t longest_step) {
    silent_ = 0;
    last_ = now;
    longest_step_ = longest_step;
  }
  // How long it has been silent, `now` included.
  std::uint64_t look(std::uint64_t now) {
    silent_ += now > last_ ? std::min(now - last_, longest_step_) : 0;
    last_ = std::max(now, last_);
    return silent_;
  }

 private:
  std::uint64_t longest_step_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t silent_ = 0;
};

// Of a GPU (docs/device-failure.md): uploads of tables go by the streams of batches, and a driver may load code at the
// first launch of a kernel. A call of its driver may take so many times as long.
inline constexpr std::chrono::milliseconds least_silence(100);
inline constexpr std::chrono::seconds most_silence(2);
inline constexpr unsigned call_factor = 10;
// Looks of a waiting thread, for a silence to count in full.
inline constexpr std::uint64_t steps_of_silence = 16;

// The limit, in ticks. Fixed, or learned from how long things take: eight times the longest lately, but `least` at
// least and `most` at most. Before anything was heard: `most`.
class SilenceLimit {
 public:
  static SilenceLimit fixed(std::uint64_t limit) { return {limit, limit}; }
  static SilenceLimit learned(std::uint64_t least, std::uint64_t most) { return {std::min(least, most), most}; }

  std::uint64_t get() const { return limit_; }
  // As at first.
  void forget() {
    longest_ = 0;
    limit_ = most_;
  }
  // What was waited for took so long.
  void took(std::uint64_t ticks) {
    longest_ = std::max(ticks, longest_ - longest_ / forgets);
    limit_ = longest_ >= most_ / factor ? most_ : std::max(least_, longest_ * factor);
  }

 private:
  SilenceLimit(std::uint64_t least, std::uint64_t most) : least_(least), most_(most), limit_(most) {}
  static constexpr std::uint64_t factor = 8, forgets = 1024;

  std::uint64_t least_, most_;
  std::uint64_t longest_ = 0;
  std::uint64_t limit_;
};

}  // namespace sluice::engine
