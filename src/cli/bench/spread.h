// The middle of several measurements, and how far they lie apart: what a noisy machine allows to be said.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice::cli::bench {

struct Spread {
  double median = 0, low = 0, high = 0;
  std::size_t at = 0;  // which of the values is the median; of an even number, the lower middle one
};

// `values` must not be empty.
inline Spread spread_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const std::size_t at = order[(order.size() - 1) / 2];
  return {values[at], values[order.front()], values[order.back()], at};
}

}  // namespace sluice::cli::bench
