// The middle of several measurements, and how far they lie apart: what a noisy machine allows to be said.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
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

// How far the values of `of` lie above those of `over` by their ranks, in standard deviations of what chance does: the
// z of the Mann-Whitney U test, with the correction for ties (M. Hollander, D. Wolfe, Nonparametric Statistical
// Methods, 4.1). Above 2.33 it is chance in one case of a hundred. 0 when all values are the same.
inline double rank_excess(const std::vector<double>& of, const std::vector<double>& over) {
  std::vector<std::pair<double, bool>> all;
  for (const double value : of) {
    all.emplace_back(value, true);
  }
  for (const double value : over) {
    all.emplace_back(value, false);
  }
  std::sort(all.begin(), all.end());
  const auto count = static_cast<double>(all.size());
  double ranks = 0;
  double ties = 0;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t end = first;
    double members = 0;
    for (; end < all.size() && all[end].first == all[first].first; ++end) {
      members += all[end].second ? 1 : 0;
    }
    const auto tied = static_cast<double>(end - first);
    ranks += members * (static_cast<double>(first + 1) + static_cast<double>(end)) / 2;
    ties += tied * tied * tied - tied;
    first = end;
  }
  const auto n = static_cast<double>(of.size());
  const auto m = static_cast<double>(over.size());
  const double u = ranks - n * (n + 1) / 2;
  const double variance = n * m / 12 * (count + 1 - ties / (count * (count - 1)));
  return variance <= 0 ? 0 : (u - n * m / 2) / std::sqrt(variance);
}

}  // namespace sluice::cli::bench
