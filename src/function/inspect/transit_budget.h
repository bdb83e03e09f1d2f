// How long confirming may take of frames that are in no batch, those that a router leaves to the kernel: they are
// judged while a receive burst is collected, and the frames of the batches wait meanwhile.
//
//   TransitBudget budget(most);                                // of a batch
//   const std::uint64_t ticks = budget.begin(rte_rdtsc());     // before the first of a burst
//   const bool releases = budget.releases();
//   ... judge them ...
//   budget.end(taken, beyond);
//
// A quarter of a batch's time for a burst, and no more than a quarter of all time: what a burst has taken, with what
// its last candidate took too much, comes back by a tick in four, so that many bursts within a cycle have no more than
// one. The right to release all that waits in a stream (inspection.h) is a burst's, too, and comes back when five times
// as long is over as such a release is reckoned to have taken.
//
// Times are ticks of the time-stamp counter. Thread-safety: none. Cost: a few ns for a burst.
#pragma once

#include <algorithm>
#include <cstdint>

#include "function/inspect/confirm_time.h"

namespace sluice::function {

class TransitBudget {
 public:
  static constexpr std::uint64_t part = 4;

  explicit TransitBudget(std::uint64_t most)
      : is_limited_(most != ConfirmTime::unlimited),
        most_(static_cast<std::int64_t>(most / part)),
        left_(is_limited_ ? most_ : 0) {}

  std::uint64_t begin(std::uint64_t now) {
    if (!is_limited_) return ConfirmTime::unlimited;
    const std::uint64_t since = now > began_ ? now - began_ : 0;
    began_ += since;
    left_ = std::min(left_ + static_cast<std::int64_t>(since / part), most_);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(left_, 0));
  }
  // Whether the burst that has begun may release what there is no time for.
  bool releases() const { return began_ >= releases_from_; }
  // `taken`: of what begin() gave, or more; `beyond`: by releases that there was no time for.
  void end(std::uint64_t taken, std::uint64_t beyond) {
    if (!is_limited_) return;
    left_ -= static_cast<std::int64_t>(taken);
    if (beyond != 0) releases_from_ = began_ + (part + 1) * beyond;
  }

 private:
  const bool is_limited_;
  const std::int64_t most_;
  std::int64_t left_;  // below 0: what a burst took too much
  std::uint64_t began_ = 0, releases_from_ = 0;
};

}  // namespace sluice::function
