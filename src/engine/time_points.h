// When the lanes' time points are: P_k = P_0 + k·I of all of them at once, or, staggered, of lane l of L by l·I/L
// later, so that the device gets the lanes' batches one after the other. Each lane's own are I apart either way, which
// is all that the bound asks for (docs/real-time.md).
//
//   TimePoints points(rte_rdtsc(), cycle, lanes, stagger);
//   if (now >= points.next()) points.pass(now, [&](std::size_t lane, std::uint64_t count) { ... });
//
// Times are ticks of the time-stamp counter. Thread-safety: none. Cost: pass() looks at every lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::engine {

class TimePoints {
 public:
  // The first cycle begins at `begin`; at least one lane, and a cycle above 0.
  TimePoints(std::uint64_t begin, std::uint64_t cycle, std::size_t lanes, bool stagger) : cycle_(cycle) {
    for (std::size_t l = 0; l < lanes; ++l) of_lane_.push_back(begin + cycle + (stagger ? cycle * l / lanes : 0));
    next_ = of_lane_.front();
  }

  // The next one of any lane.
  std::uint64_t next() const { return next_; }
  // Calls raise(lane, count) for each lane that has had time points up to `now` and was not notified of them. After a
  // stall they are in the future again, on the same grid.
  template <typename Raise>
  void pass(std::uint64_t now, const Raise& raise) {
    for (std::size_t l = 0; l < of_lane_.size(); ++l) {
      std::uint64_t& point = of_lane_[l];
      if (now < point) continue;
      const std::uint64_t count = 1 + (now - point) / cycle_;
      point += count * cycle_;
      raise(l, count);
    }
    next_ = *std::ranges::min_element(of_lane_);
  }

 private:
  std::uint64_t cycle_, next_ = 0;
  std::vector<std::uint64_t> of_lane_;
};

}  // namespace sluice::engine
