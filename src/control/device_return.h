// When a lost GPU is taken again by itself: `first` after it was lost, and twice as long each time, up to `longest`,
// for as long as it is not up for `longest`. So a GPU that fails again and again costs less and less.
//
// Thread-safety: none (the control thread). Cost: a comparison for each GPU.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace sluice::control {

class DeviceReturn {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes longest{10};

  // `first`: 0: never.
  DeviceReturn(std::chrono::nanoseconds first, std::size_t gpus) : first_(first), gpus_(gpus) {}

  // Whether it is to be tried now; then the next time is later.
  bool is_due(std::size_t gpu, bool lost, Clock::time_point now) {
    Gpu& of = gpus_[gpu];
    if (first_.count() == 0) return false;
    if (!lost) {
      if (of.was_lost) of.up_since = now;
      of.was_lost = false;
      if (now - of.up_since >= longest) of.wait = {};
      return false;
    }
    if (!of.was_lost) {
      of.was_lost = true;
      of.next = now + wait_again(of);
    }
    if (now < of.next) return false;
    of.next = now + wait_again(of);
    return true;
  }

 private:
  struct Gpu {
    bool was_lost = false;
    Clock::time_point up_since{}, next{};
    std::chrono::nanoseconds wait{};  // the last one; 0: none
  };
  std::chrono::nanoseconds wait_again(Gpu& of) const {
    const std::chrono::nanoseconds most = std::max<std::chrono::nanoseconds>(first_, longest);
    of.wait = of.wait.count() == 0 ? first_ : std::min(2 * of.wait, most);
    return of.wait;
  }

  std::chrono::nanoseconds first_;
  std::vector<Gpu> gpus_;
};

}  // namespace sluice::control
