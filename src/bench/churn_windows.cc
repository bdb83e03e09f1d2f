#include "bench/churn_windows.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace sluice::cli::bench {
namespace {

constexpr double allowed_times = 1.25;
constexpr double chance = 2.33;  // standard deviations

using Figure = double (*)(const Outcome&);

std::vector<double> values(const std::vector<Windows>& windows, Figure figure) {
  std::vector<double> all;
  for (const Windows& kind : windows) {
    std::transform(kind.of.begin(), kind.of.end(), std::back_inserter(all), figure);
  }
  return all;
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

std::uint64_t Windows::own_misses() const {
  std::uint64_t all = 0;
  for (const Outcome& one : of) {
    all += one.own_misses();
  }
  return all;
}

void judge_updates(Goals& goals, const std::vector<Windows>& without, const Windows& with) {
  const Figure p99 = [](const Outcome& one) { return one.p99_us; };
  goals.at_most("p99 with updates, median of the windows (a quarter over that without is allowed)",
                spread_of(values({with}, p99)).median, allowed_times * spread_of(values(without, p99)).median, "us");
  const std::pair<const char*, Figure> figures[] = {
      {"frames lost", [](const Outcome& one) { return static_cast<double>(one.offered_missed); }},
      {"frames late by more than threads were kept from running",
       [](const Outcome& one) { return static_cast<double>(one.own_misses()); }},
      {"late time points", [](const Outcome& one) { return static_cast<double>(one.late_cycles); }},
      {"overruns", [](const Outcome& one) { return static_cast<double>(one.overruns); }}};
  for (const auto& [what, figure] : figures) {
    goals.at_most(std::string(what) + ", windows with updates ranked over the others",
                  rank_excess(values({with}, figure), values(without, figure)), chance, "standard deviations");
  }
}

}  // namespace sluice::cli::bench
