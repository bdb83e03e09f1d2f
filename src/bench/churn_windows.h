// The windows of benches that change a running gateway (churn, changes), those without changes or those with them, and
// what the latter are held against.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
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

// One window beside a thread of its own that works until `stopped` says so, as the control thread does. It returns once
// that thread has ended, which may be later than the window. An Error: the work's.
Expected<Outcome> measure_beside(Load& load, double settle_seconds, double seconds,
                                 const std::function<Expected<void>(const std::function<bool()>& stopped)>& work);

// Of all windows of a kind, as a RESULT line says it.
std::string windows_text(const Windows& windows);

// Judged: that the median window's p99 is at most a quarter more with changes than without. And, of frames lost, frames
// refused as overdue, frames late of their own making, late time points and overruns, that the windows with changes do
// not rank above the others by more than chance does in one case of a hundred. Sums are not judged: one stall of a
// thread decides them, whichever kind of window it falls into; ranks see what comes in every third window. `without`:
// nothing happens there, or a thread only wakes. There must be windows of all kinds, all of one length. In the goals'
// names `place` is in front, and `what` says what changes.
void judge_windows(Goals& goals, const std::string& place, const std::string& what, const std::vector<Windows>& without,
                   const Windows& with);

}  // namespace sluice::cli::bench
