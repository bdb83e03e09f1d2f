// v of a stream that is measured: the highest rate of any whole window so far. A window begins with a frame, and the
// next one with the first frame after its end. A stream that sends in bursts longer than a window is so given the rate
// of its bursts.
//
// In a time t that begins anywhere come at most rate() * t and two windows of that: a token bucket that holds as much
// lets all of it pass.
//
// Thread-safety: any thread, without order between them. Lanes add, and who reads beside them may see a window that has
// just ended a moment later. Of two lanes that add to one meter a frame at a window's end may count for the next one.
// Cost: of a frame one comparison and one atomic addition.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::engine {

class RateMeter {
 public:
  // In ticks of the time-stamp counter; above 0.
  explicit RateMeter(std::uint64_t window) : window_(window) {}
  void add(std::uint32_t bytes, std::uint64_t tsc) {
    std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    // Another lane's clock may be behind.
    if (static_cast<std::int64_t>(tsc - begin) >= static_cast<std::int64_t>(window_)) [[unlikely]] {
      begin_window(begin, tsc);
    }
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Bits per second; 0 until a window is over.
  std::uint64_t rate(std::uint64_t tsc_hz) const;
  // Those that are over, each with a frame at least; one is over when the next one begins.
  std::uint64_t windows() const { return windows_.load(std::memory_order_relaxed); }
  std::uint64_t window() const { return window_; }

 private:
  void begin_window(std::uint64_t before, std::uint64_t tsc);

  const std::uint64_t window_;
  std::atomic<std::uint64_t> begin_{0};                         // 0: nothing has come yet
  std::atomic<std::uint64_t> bytes_{0}, most_{0}, windows_{0};  // bytes of this window, and of the fullest one
};

}  // namespace sluice::engine
