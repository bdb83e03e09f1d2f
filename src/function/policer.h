// A token bucket that lanes share, for an ACL rule or an SRTP stream: a rate in bits of frames per second, and a burst
// in bytes that may come at once.
//
// It keeps the time at which the bucket would be full again (the generic cell rate algorithm, ITU-T I.371) in one
// atomic word. So the rate holds for all lanes together: in any time t at most rate × t + burst passes. A frame's time
// is rounded down to 1/16 of a tick. For 64-byte frames that lets one in 2,000 more pass at 10 Gbit/s, one in 200 at
// 100 Gbit/s. The time-stamp counters of lanes agree within some ticks; a lane whose counter is behind lets less pass.
// A frame that is longer than the burst never passes.
//
// The rate may change while lanes call take(). A frame that is judged meanwhile may see the new rate with the old
// burst, or the old rate with the new burst. The bucket then lacks as many bytes as before, but never more than it
// holds.
//
// Thread-safety: any thread. Cost: one compare-and-swap for each frame that passes. Lanes that police by the same rule
// share its cache line.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::function {

class alignas(64) Policer {
 public:
  // `tsc_hz`: ticks of the time-stamp counter per second. The bucket begins full. A frame longer than `largest` never
  // passes; 0: any length may.
  Policer(std::uint64_t rate_bits, std::uint64_t burst_bytes, std::uint64_t tsc_hz, std::uint32_t largest = 0)
      : largest_(largest == 0 ? ~std::uint32_t{0} : largest), per_byte_(per_byte_of(rate_bits, tsc_hz)) {
    depth_.store(time_of(burst_bytes), std::memory_order_relaxed);
  }

  // Changes rate and burst at the moment `tsc`. One thread at a time.
  void change(std::uint64_t rate_bits, std::uint64_t burst_bytes, std::uint64_t tsc_hz, std::uint64_t tsc) {
    const Wide before = per_byte_.load(std::memory_order_relaxed), per_byte = per_byte_of(rate_bits, tsc_hz);
    per_byte_.store(static_cast<std::uint64_t>(per_byte), std::memory_order_relaxed);
    const std::uint64_t depth = time_of(burst_bytes), now = tsc * parts_of_tick;
    depth_.store(depth, std::memory_order_relaxed);
    // What it lacks is kept as time, which of another rate is another number of bytes.
    std::uint64_t full = full_.load(std::memory_order_relaxed);
    while (full > now) {
      const Wide lacks = std::min<Wide>(Wide{full - now} * per_byte / before, depth);
      if (full_.compare_exchange_weak(full, now + static_cast<std::uint64_t>(lacks), std::memory_order_relaxed)) break;
    }
  }
  std::uint32_t largest() const { return largest_; }

  // Takes a frame's bytes at the moment `tsc`. False: there are not enough.
  bool take(std::uint32_t bytes, std::uint64_t tsc) {
    if (bytes > largest_) return false;
    const std::uint64_t now = tsc * parts_of_tick;
    const std::uint64_t time = time_of(bytes), depth = depth_.load(std::memory_order_relaxed);
    std::uint64_t full = full_.load(std::memory_order_relaxed);
    std::uint64_t then;
    do {
      then = std::max(full, now) + time;
      if (then - now > depth) return false;
    } while (!full_.compare_exchange_weak(full, then, std::memory_order_relaxed));
    return true;
  }

 private:
  using Wide = unsigned __int128;
  static constexpr std::uint64_t parts_of_tick = 16;
  static constexpr unsigned fraction_bits = 16;
  static constexpr Wide most_depth = Wide{1} << 60;

  static std::uint64_t per_byte_of(std::uint64_t rate_bits, std::uint64_t tsc_hz) {
    return static_cast<std::uint64_t>((Wide{8 * parts_of_tick} * tsc_hz << fraction_bits) / rate_bits);
  }
  std::uint64_t time_of(std::uint64_t bytes) const {
    const Wide time = Wide{per_byte_.load(std::memory_order_relaxed)} * bytes >> fraction_bits;
    return static_cast<std::uint64_t>(std::min(time, most_depth));
  }

  std::uint32_t largest_;
  std::atomic<std::uint64_t> per_byte_;  // 1/16 ticks << fraction_bits; at a bit per second and 2^38 Hz 2^61
  std::atomic<std::uint64_t> depth_{0};  // of the bucket, in 1/16 ticks
  std::atomic<std::uint64_t> full_{0};
};

}  // namespace sluice::function
