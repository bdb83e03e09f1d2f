// The router's works, measured in turns on one running engine (switched.h): full load, zero load and, on the CPU
// device, the MAC loop, IPv4 and IPv6, round after round.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/rig.h"
#include "bench/rounds.h"
#include "bench/router_rig.h"
#include "bench/spread.h"
#include "bench/switched.h"
#include "bench/testpmd.h"

namespace sluice::cli::bench {

struct RoundsOfWork {
  std::vector<double> ns;  // per frame and core, a GPU's worker's among them; one for each round
  std::vector<Outcome> outcomes;
  bool empty() const { return ns.empty(); }
  Spread spread() const { return spread_of(ns); }
  Outcome median() const { return middle_of(outcomes); }
};

struct RouteRounds {
  std::array<std::array<RoundsOfWork, 3>, 2> of;  // [IPv4, IPv6][Work]
  Switched::Loops loops;
  std::chrono::nanoseconds deadline{0};
  std::string cores;            // "4 lanes on 5 cores"
  std::vector<double> testpmd;  // million frames per second, between the rounds
  const RoundsOfWork& get(int family, Work work) const { return of[family == 6 ? 1 : 0][static_cast<unsigned>(work)]; }
};

// A quotient for each round, so that both sides had the same moment of the machine. `over` and `under`: of one run.
Spread ratio(const RoundsOfWork& over, const RoundsOfWork& under);

// Nine rounds; in each of them every work of every family has a sixth of `options.seconds`, but 0.1 s at least. An
// Error when frames were dropped, when the counters do not add up, or when a loop left frames untouched. After every
// other round, `testpmd` has a turn of some seconds while the gateway sleeps; null: without it.
Expected<RouteRounds> measure_rounds(const BenchOptions& options, const RouterTable& table, const std::string& device,
                                     Testpmd* testpmd);

}  // namespace sluice::cli::bench
