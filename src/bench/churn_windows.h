// The windows of bench churn, those without updates or those with them, and what the latter are held against.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/goals.h"
#include "bench/rig.h"
#include "bench/spread.h"

namespace sluice::cli::bench {

struct Windows {
  std::vector<Outcome> of;

  Spread spread(double Outcome::*figure) const;
  std::uint64_t sum(std::uint64_t Outcome::*figure) const;
  // Late by more than the machine kept threads from running.
  std::uint64_t own_misses() const;
};

// Judged: that the median window's p99 is at most a quarter more with updates than without. And, of frames lost, frames
// late of their own making, late time points and overruns, that the windows with updates do not rank above the others
// by more than chance does in one case of a hundred. Sums are not judged: one stall of a thread decides them,
// whichever kind of window it falls into; ranks see what comes in every third window. `without`: nothing happens there,
// or a thread only wakes. There must be windows of all kinds, all of one length.
void judge_updates(Goals& goals, const std::vector<Windows>& without, const Windows& with);

}  // namespace sluice::cli::bench
