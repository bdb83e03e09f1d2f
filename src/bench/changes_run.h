// A gateway that is changed under high load: what becomes of its frames.
//
// First what it carries saturated. Then, at the offered rate, a few changes, to know what one takes. Then windows
// without changes and windows with them, in turns. At last no frame comes.
//
// In a window with changes they are made one after the other, with a rest between them, by a thread of its own. A
// window is long enough for one change at least. Frames are counted from the first window until all have left or were
// dropped: those that are dropped between two windows count for the one before.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/choice_beds.h"
#include "bench/churn_windows.h"
#include "bench/goals.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

struct ChangesPlan {
  std::string device = "auto";
  double load = 0.9;      // the offered rate, of what the chain carries saturated
  double offered = 0;     // instead, frames a second of all lanes, and nothing is saturated; 0: by `load`
  double seconds = 2;     // of the saturated rate; of a window a third, or what a change wants
  unsigned rounds = 21;   // windows of each kind
  double settling = 0.1;  // in front of each window
  double settling_saturated = 1.5;
  std::chrono::milliseconds rest{10};  // between changes
};

// Of all windows of one kind.
struct ChangedWindows {
  Windows windows;
  std::uint64_t overdue = 0;         // frames that were refused
  std::vector<std::uint64_t> drops;  // for other reasons: by packet::Reason; empty: none
  std::uint64_t dropped() const;     // all of these
  std::string dropped_text() const;  // which, and how many; "none"
  // What was dropped between two moments, by packet::Reason.
  void count(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& after);
};

struct ChangesFigures {
  Outcome saturated;
  double offered = 0;  // frames a second
  double window_seconds = 0;
  ChangedWindows without, with;
  std::vector<double> change_ms;  // each change that was made in a window, or began in one
  std::int64_t unaccounted = 0;   // EngineStats::imbalance(), once the engine has stopped
};

// The EAL runs. Errors: a gateway that does not start, a change that is refused, frames that do not leave when no more
// come, and no change at all.
Expected<ChangesFigures> measure_changes(const ChoiceChain& chain, const ChangesPlan& plan);

// How long a window has to be for a change that takes so long, where it would be `seconds`.
double window_for(double change_seconds, double seconds);

// Nothing dropped but as overdue, counters that add up, and what judge_windows() asks for. `name`: of the chain.
void judge_changes(Goals& goals, const std::string& name, const ChangesFigures& figures);

}  // namespace sluice::cli::bench
