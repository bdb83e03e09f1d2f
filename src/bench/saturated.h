// What a gateway carries saturated, as benches measure it that offer a share of that.
#pragma once

#include <vector>

#include "bench/rig.h"
#include "bench/rounds.h"

namespace sluice::cli::bench {

// As fast as lanes poll, the middle one of three rounds, which together take `seconds`.
inline Outcome saturate(Load& load, double seconds, double settling) {
  constexpr unsigned rounds = 3;
  load.set_rate(0);
  std::vector<Outcome> outcomes{load.measure(settling, seconds / rounds)};
  while (outcomes.size() < rounds) outcomes.push_back(load.measure(0, seconds / rounds));
  return middle_of(outcomes);
}

}  // namespace sluice::cli::bench
