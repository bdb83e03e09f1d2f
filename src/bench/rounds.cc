#include "bench/rounds.h"

#include <vector>

#include "bench/spread.h"

namespace sluice::cli::bench {

Expected<Outcome> in_rounds(double seconds, const std::function<Expected<Outcome>(double seconds)>& measure) {
  const double each = seconds / (rounds + 1);
  if (auto warm_up = measure(each); !warm_up) return warm_up;
  std::vector<Outcome> outcomes;
  std::vector<double> rates;
  for (unsigned round = 0; round < rounds; ++round) {
    auto outcome = measure(each);
    if (!outcome) return outcome;
    rates.push_back(outcome->gbytes());
    outcomes.push_back(*outcome);
  }
  return outcomes[spread_of(rates).at];
}

}  // namespace sluice::cli::bench
