#include "device/warp_times.h"

#include <algorithm>

#include "device/warp_schedule.h"

namespace sluice::device {
namespace {

void move_towards(std::atomic<float>& value, float measured) {
  constexpr float share = 1.0F / 16;
  const float old = value.load(std::memory_order_relaxed);
  value.store(old == 0 ? measured : old + (measured - old) * share, std::memory_order_relaxed);
}

}  // namespace

WarpTimes::WarpTimes(unsigned kinds, unsigned ranges, std::uint32_t range_bytes)
    : labels_(kinds * ranges),
      ranges_(ranges),
      range_bytes_(range_bytes),
      time_(std::make_unique<std::atomic<float>[]>(labels_)) {}

void WarpTimes::learn(unsigned label, float time) {
  move_towards(time_[label], time);
  move_towards(scale_, time / by_slope(label));
}

void WarpTimes::learn(std::span<const std::uint16_t> labels, std::span<const std::uint32_t> times) {
  for (std::size_t i = 0; i < std::min(labels.size(), times.size()); ++i) {
    if (labels[i] != mixed_label && times[i] != 0) learn(labels[i], static_cast<float>(times[i]));
  }
}

}  // namespace sluice::device
