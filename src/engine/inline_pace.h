// How many frames a lane puts into a batch that it computes itself. A batch there has no time point to wait for: it is
// of what has come, `inline_batch` frames at most, so that the CPU device works in cache. Where frames cost much (an
// inspection of attacks), so many would take longer than their deadline: then a batch has as many as take a third of
// it, by what frames cost lately, and at least `least`. Work that has a bound for a batch (traits.h, BoundedWork)
// does not count: a smaller batch would take it as well.
//
// Of frames that suddenly cost more, the first batches are too large. Interruptions of the thread count as cost, but an
// average goes up by no more than its fourfold (and a burst of headers) for a batch.
//
// Thread-safety: took() each by one thread, the one that computes and the one that forwards; next() by the first.
// Cost: a division for a batch, and one for each of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/counters.h"

namespace sluice::engine {

// Ticks for a frame, in sixteenths: an average that rises faster than it falls.
class FrameCost {
 public:
  void took(std::uint64_t ticks, std::uint32_t frames) {
    if (frames == 0) return;
    const std::uint64_t had = average_.get();
    const std::uint64_t cost = std::min(ticks * scale / frames, 4 * had + few_ticks * scale);
    average_.set(cost > had ? (had + cost) / 2 : (7 * had + cost) / 8);
  }
  std::uint64_t get() const { return average_.get(); }

  static constexpr std::uint64_t scale = 16;

 private:
  static constexpr std::uint64_t few_ticks = 1024;

  Counter average_;
};

class InlinePace {
 public:
  static constexpr std::uint32_t least = 16;  // of some drivers the least that they receive

  InlinePace(std::uint64_t deadline_tsc, std::uint32_t most) : patience_(deadline_tsc / 3), most_(most), next_(most) {}

  FrameCost& computing() { return computing_; }
  const FrameCost& computing() const { return computing_; }
  FrameCost& forwarding() { return forwarding_; }
  // With the work that has a bound, too: it is no matter of the pace, but of the load.
  FrameCost& forwarding_in_all() { return forwarding_in_all_; }
  const FrameCost& forwarding_in_all() const { return forwarding_in_all_; }

  // Begins another batch.
  void begin() { next_ = frames_in_time(computing_.get() + forwarding_.get()); }
  // A multiple of `least`.
  std::uint32_t next() const { return next_; }

 private:
  std::uint32_t frames_in_time(std::uint64_t cost) const {
    const std::uint64_t frames =
        std::min<std::uint64_t>(patience_ / std::max<std::uint64_t>(cost, 1) * FrameCost::scale, most_);
    return std::max(static_cast<std::uint32_t>(frames) / least * least, least);
  }

  const std::uint64_t patience_;
  const std::uint32_t most_;
  std::uint32_t next_;
  FrameCost computing_;
  alignas(64) FrameCost forwarding_;
  FrameCost forwarding_in_all_;
};

}  // namespace sluice::engine
