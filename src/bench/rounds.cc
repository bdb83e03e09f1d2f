#include "bench/rounds.h"

#include "bench/spread.h"

namespace sluice::cli::bench {

Outcome middle_of(const std::vector<Outcome>& outcomes) {
  std::vector<double> mpps;
  mpps.reserve(outcomes.size());
  for (const Outcome& outcome : outcomes) mpps.push_back(outcome.mpps());
  const Spread spread = spread_of(mpps);
  Outcome middle = outcomes[spread.at];
  middle.rounds = static_cast<unsigned>(outcomes.size());
  middle.mpps_low = spread.low;
  middle.mpps_high = spread.high;
  return middle;
}

Expected<Outcome> in_rounds(double seconds, const std::function<Expected<Outcome>(double seconds)>& measure) {
  const double each = seconds / (repetitions + 1);
  if (auto warm_up = measure(each); !warm_up) return warm_up;
  std::vector<Outcome> outcomes;
  for (unsigned round = 0; round < repetitions; ++round) {
    auto outcome = measure(each);
    if (!outcome) return outcome;
    outcomes.push_back(*outcome);
  }
  return middle_of(outcomes);
}

}  // namespace sluice::cli::bench
