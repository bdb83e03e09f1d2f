// The windows of bench churn, those without updates or those with them, and what the latter are held against.
#pragma once

#include <cstddef>
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
  // Windows with frames that were lost, or late by more than the machine kept threads away.
  std::size_t with_losses() const;
};

// The median window's p99, and its frames lost or late of their own making, are at most a quarter more with updates
// than without; of the frames besides, one in a million, so that none at all without does not forbid a single one. And
// at most two windows more have any. Sums over the windows are not judged: one absence of a thread in one window
// decides them, whichever kind it falls into. There must be windows of both kinds, as many and as long.
void judge_updates(Goals& goals, const Windows& without, const Windows& with);

}  // namespace sluice::cli::bench
