#include "cli/bench/churn_windows.h"

#include <string>

namespace sluice::cli::bench {
namespace {

constexpr double allowed_times = 1.25;
constexpr double allowed_share = 1e-6;

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

std::uint64_t Windows::own_misses() const {
  std::uint64_t all = 0;
  for (const Outcome& one : of) {
    all += one.own_misses();
  }
  return all;
}

void judge_updates(Goals& goals, const Windows& without, const Windows& with) {
  goals.at_most("p99 with updates, median of the windows (a quarter over that without is allowed)",
                with.spread(&Outcome::p99_us).median, allowed_times * without.spread(&Outcome::p99_us).median, "us");
  const double few = allowed_share * static_cast<double>(with.sum(&Outcome::frames));
  const auto frames = [&](const std::string& what, std::uint64_t figure, std::uint64_t before) {
    goals.at_most(what + " with updates (a quarter and one in a million over those without are allowed)",
                  static_cast<double>(figure), allowed_times * static_cast<double>(before) + few, "frames");
  };
  frames("late by more than threads were kept away", with.own_misses(), without.own_misses());
  frames("lost", with.sum(&Outcome::offered_missed), without.sum(&Outcome::offered_missed));
}

}  // namespace sluice::cli::bench
