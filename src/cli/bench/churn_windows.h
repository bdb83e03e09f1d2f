// The windows of bench churn, those without updates or those with them, and what the latter are held against.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/bench/goals.h"
#include "cli/bench/rig.h"
#include "cli/bench/spread.h"

namespace sluice::cli::bench {

struct Windows {
  std::vector<Outcome> of;

  Spread spread(double Outcome::*figure) const;
  std::uint64_t sum(std::uint64_t Outcome::*figure) const;
  // Late by more than the machine kept threads away.
  std::uint64_t own_misses() const;
};

// The median window's p99, and the late and the lost frames of all windows together, are at most a quarter more with
// updates than without: medians of seven windows lie that far apart by themselves. Of the frames besides, one in a
// million, so that none at all without does not forbid a single one. There must be windows of both kinds, as many and
// as long.
void judge_updates(Goals& goals, const Windows& without, const Windows& with);

}  // namespace sluice::cli::bench
