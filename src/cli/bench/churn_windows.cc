#include "cli/bench/churn_windows.h"

#include <algorithm>
#include <iterator>

namespace sluice::cli::bench {
namespace {

constexpr double allowed_times = 1.25;
constexpr double allowed_share = 1e-6;
constexpr std::size_t allowed_windows = 2;

double lost(const Outcome& window) {
  return static_cast<double>(window.offered_missed + window.own_misses());
}

}  // namespace

Spread Windows::spread(double Outcome::*figure) const {
  std::vector<double> values;
  for (const Outcome& one : of) {
    values.push_back(one.*figure);
  }
  return spread_of(values);
}

std::uint64_t Windows::sum(std::uint64_t Outcome::*figure) const {
  std::uint64_t all = 0;
  for (const Outcome& one : of) {
    all += one.*figure;
  }
  return all;
}

std::size_t Windows::with_losses() const {
  return static_cast<std::size_t>(
      std::count_if(of.begin(), of.end(), [](const Outcome& one) { return lost(one) > 0; }));
}

void judge_updates(Goals& goals, const Windows& without, const Windows& with) {
  goals.at_most("p99 with updates, median of the windows (a quarter over that without is allowed)",
                with.spread(&Outcome::p99_us).median, allowed_times * without.spread(&Outcome::p99_us).median, "us");
  const auto median = [](const Windows& windows) {
    std::vector<double> values;
    std::transform(windows.of.begin(), windows.of.end(), std::back_inserter(values), lost);
    return spread_of(values).median;
  };
  const double few =
      allowed_share * static_cast<double>(with.sum(&Outcome::frames)) / static_cast<double>(with.of.size());
  goals.at_most(
      "frames lost, or late by more than threads were kept away, with updates, median of the windows (a quarter and "
      "one "
      "in a million over that without are allowed)",
      median(with), allowed_times * median(without) + few, "frames");
  goals.at_most("windows with such frames, with updates (two more than without are allowed)",
                static_cast<double>(with.with_losses()), static_cast<double>(without.with_losses() + allowed_windows),
                "windows");
}

}  // namespace sluice::cli::bench
