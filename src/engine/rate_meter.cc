#include "engine/rate_meter.h"

namespace sluice::engine {

void RateMeter::begin_window(std::uint64_t before, std::uint64_t tsc) {
  // Else another lane has begun it.
  if (!begin_.compare_exchange_strong(before, tsc, std::memory_order_relaxed)) return;
  const std::uint64_t bytes = bytes_.exchange(0, std::memory_order_relaxed);
  if (before == 0) return;
  std::uint64_t most = most_.load(std::memory_order_relaxed);
  while (most < bytes && !most_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
  }
  windows_.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t RateMeter::rate(std::uint64_t tsc_hz) const {
  const auto bits = static_cast<unsigned __int128>(most_.load(std::memory_order_relaxed)) * 8;
  return static_cast<std::uint64_t>(bits * tsc_hz / window_);
}

}  // namespace sluice::engine
