// How long a warp takes for items of one label (kind and length range), by which WarpSchedule orders bins. Before
// anything was measured a label's estimate grows with the length by a default slope; what was measured of some labels
// scales those that were not, so that all remain comparable. Times are in the measurer's own unit, nanoseconds or
// clocks, the same for all.
//
// Threads: any. Each value is read and written whole; where two threads learn of the same label at once, one
// measurement may count for nothing. Cost: learn() some 3 ns, of() two loads and a product. Source: Park et al.,
// PIPSEA, 3.3, where processing times are measured by algorithm and packet size.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice::device {

class WarpTimes {
 public:
  // Label kind * ranges + range, as WarpSchedule has them; ranges of `range_bytes` each.
  WarpTimes(unsigned kinds, unsigned ranges, std::uint32_t range_bytes);

  // A warp full of such items took `time`, above 0. The first measurement of a label counts whole, others move it by a
  // sixteenth of the difference.
  void learn(unsigned label, float time);
  // Of a batch's warps, as WarpOrder names their labels, beside what each took. Nothing is learned of mixed ones, nor
  // where a time is 0.
  void learn(std::span<const std::uint16_t> labels, std::span<const std::uint32_t> times);

  float of(unsigned label) const {
    const float learned = time_[label].load(std::memory_order_relaxed);
    const float scale = scale_.load(std::memory_order_relaxed);
    return learned != 0 ? learned : by_slope(label) * (scale != 0 ? scale : 1);
  }
  unsigned labels() const { return labels_; }

 private:
  // An item's fixed cost is about that of 64 bytes.
  float by_slope(unsigned label) const {
    return 64 + (static_cast<float>(label % ranges_) + 0.5F) * static_cast<float>(range_bytes_);
  }

  const unsigned labels_, ranges_;
  const std::uint32_t range_bytes_;
  std::unique_ptr<std::atomic<float>[]> time_;  // 0: not measured
  std::atomic<float> scale_{0};                 // measured times by those of the slope; 0: nothing is measured
};

}  // namespace sluice::device
