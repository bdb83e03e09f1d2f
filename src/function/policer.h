// A token bucket that lanes share, of an ACL rule or of an SRTP stream: bits of frames per second, and how many bytes
// may come at once.
//
// It keeps the time at which the bucket would be full again (the generic cell rate algorithm, ITU-T I.371), in one
// atomic word, so that a rate holds for all lanes together. What passes in any time t is at most rate × t + burst. A
// frame's time is rounded down to 1/16 of a tick: of 64-byte frames at 10 Gbit/s 1 in 2,000 more may pass, at 100
// Gbit/s 1 in 200. Lanes' time-stamp counters agree within some ticks; a lane whose clock is behind lets less pass. Of
// a frame longer than the burst none passes, ever.
//
// Thread-safety: any thread. Cost: one compare-and-swap for each frame that passes; lanes that police by the same rule
// share its cache line.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::function {

class alignas(64) Policer {
 public:
  // `tsc_hz`: ticks of the time-stamp counter per second. The bucket begins full. Of frames longer than `largest` none
  // passes; 0: any length.
  Policer(std::uint64_t rate_bits, std::uint64_t burst_bytes, std::uint64_t tsc_hz, std::uint32_t largest = 0)
      : per_byte_((Wide{8 * parts_of_tick} * tsc_hz << fraction_bits) / rate_bits),
        depth_(static_cast<std::uint64_t>(std::min(time_of(burst_bytes), most_depth))),
        largest_(largest == 0 ? ~std::uint32_t{0} : largest) {}

  // Takes a frame's bytes at the moment `tsc`, if they are there.
  bool take(std::uint32_t bytes, std::uint64_t tsc) {
    if (bytes > largest_) return false;
    const std::uint64_t now = tsc * parts_of_tick;
    const auto time = static_cast<std::uint64_t>(std::min(time_of(bytes), most_depth));
    std::uint64_t full = full_.load(std::memory_order_relaxed);
    std::uint64_t then;
    do {
      then = std::max(full, now) + time;
      if (then - now > depth_) return false;
    } while (!full_.compare_exchange_weak(full, then, std::memory_order_relaxed));
    return true;
  }

 private:
  using Wide = unsigned __int128;
  static constexpr std::uint64_t parts_of_tick = 16;
  static constexpr unsigned fraction_bits = 16;
  static constexpr Wide most_depth = Wide{1} << 60;

  Wide time_of(std::uint64_t bytes) const { return per_byte_ * bytes >> fraction_bits; }

  Wide per_byte_;        // 1/16 ticks << fraction_bits
  std::uint64_t depth_;  // of the bucket, in 1/16 ticks
  std::uint32_t largest_;
  std::atomic<std::uint64_t> full_{0};
};

}  // namespace sluice::function
