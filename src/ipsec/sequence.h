// Sequence numbers of an outbound SA (RFC 4303 sections 2.2 and 3.3.3): from 1 on, each once, and never from the
// beginning again. Lanes take them in runs, so that an SA which many lanes send by costs one atomic addition for a run.
// Numbers that a lane has taken and does not send are lost, which a receiver takes for packets lost.
//
// Thread-safety: any threads. Cost: an atomic addition for each take(); behind `near_end` a compare-and-exchange.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace sluice::ipsec {

inline constexpr std::uint64_t last_short_sequence = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint64_t last_extended_sequence = std::numeric_limits<std::uint64_t>::max();

// From here on an SA without ESN is dying: the last sixteenth of its numbers.
inline constexpr std::uint64_t late_sequence = 0xf0000000;

class Sequence {
 public:
  // Of numbers first, first + 1, ...; none: the last one was taken, and the SA is dead.
  struct Run {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  // `last`: taken before.
  explicit Sequence(std::uint64_t last = 0) : last_(last) {}

  // `count` at once, at most most_at_once, or as many as are left. `extended`: ESN.
  Run take(std::uint32_t count, bool extended) {
    const std::uint64_t end = extended ? last_extended_sequence : last_short_sequence;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    if (end - std::min(last, end) > near_end) [[likely]] {
      return {last_.fetch_add(count, std::memory_order_relaxed) + 1, count};
    }
    while (last < end) {
      const auto granted = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, end - last));
      if (last_.compare_exchange_weak(last, last + granted, std::memory_order_relaxed)) return {last + 1, granted};
    }
    return {};
  }

  // The last one that was taken; 0: none was.
  std::uint64_t last() const { return last_.load(std::memory_order_relaxed); }

  static constexpr std::uint32_t most_at_once = 1U << 16;

 private:
  // So that no addition goes over the end: more than all threads add between a load and its addition.
  static constexpr std::uint64_t near_end = std::uint64_t{most_at_once} << 10;

  std::atomic<std::uint64_t> last_;
};

}  // namespace sluice::ipsec
