#include "bench/churn_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;

// Windows of a million frames with these p99.
Windows windows(std::vector<double> p99_us) {
  Windows all;
  for (const double p99 : p99_us) {
    Outcome one;
    one.frames = 1'000'000;
    one.p99_us = p99;
    all.of.push_back(one);
  }
  return all;
}

// What was missed, a line each.
std::string missed(const std::vector<Windows>& without, const Windows& with) {
  testing::internal::CaptureStdout();
  Goals goals("churn", true);
  judge_windows(goals, "", "updates", without, with);
  const bool any = goals.status() != 0;
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(any, said.find("MISSED") != std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 7) << said;
  std::string lines;
  for (std::size_t at = said.find("GOAL MISSED"); at != std::string::npos; at = said.find("GOAL MISSED", at + 1)) {
    lines += said.substr(at, said.find('\n', at) + 1 - at);
  }
  return lines;
}

TEST(ChurnGoals, TheMedianIsHeldAgainstTheMedianNotAgainstTheWorstWindow) {
  const Windows without = windows({80, 100, 900});
  EXPECT_EQ(missed({without}, windows({70, 125, 2000})), "");
  EXPECT_EQ(
      missed({without}, windows({100, 126, 200})),
      "GOAL MISSED: churn p99 with updates, median of the windows (a quarter over that without is allowed): 126 us, "
      "at most 125\n");
}

TEST(ChurnGoals, WhatComesInEveryThirdWindowWithUpdatesIsSeenAndOneBadWindowIsNot) {
  const Windows quiet = windows(std::vector<double>(21, 100.0));
  const std::pair<const char*, std::uint64_t Outcome::*> figures[] = {
      {"frames lost, windows with updates ranked over the others", &Outcome::offered_missed},
      {"frames refused as overdue, windows with updates ranked over the others", &Outcome::refused},
      {"frames late by more than threads were kept from running, windows", &Outcome::deadline_misses},
      {"late time points, windows", &Outcome::late_cycles},
      {"overruns, windows", &Outcome::overruns}};
  for (const auto& [line, figure] : figures) {
    Windows with = quiet;
    with.of[3].*figure = 1'000'000;
    EXPECT_EQ(missed({quiet, quiet}, with), "") << line << ": one window may be the machine's";
    for (std::size_t i = 0; i < 21; i += 3) {
      with.of[i].*figure = 10;
    }
    EXPECT_THAT(missed({quiet, quiet}, with), HasSubstr(line));
    EXPECT_EQ(missed({quiet, with}, with), "") << line << ": a thread that only wakes does it, too";
  }
  Windows stalled = quiet;
  for (Outcome& one : stalled.of) {
    one.deadline_misses = one.misses_stalled = 1000;
  }
  EXPECT_EQ(missed({quiet, quiet}, stalled), "") << "explained by the machine";
}

TEST(ChurnGoals, PlaceAndWhatChangesAreInEachName) {
  const Windows quiet = windows(std::vector<double>(3, 100.0));
  testing::internal::CaptureStdout();
  Goals goals("changes", true);
  judge_windows(goals, "acl + route: ", "changes", {quiet}, windows({200, 200, 200}));
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("changes acl + route: p99 with changes, median of the windows"));
  EXPECT_THAT(said, HasSubstr("changes acl + route: frames lost, windows with changes ranked over the others"));
}

class StillLoad : public Load {
 public:
  void set_rate(double /*frames_per_second*/) override {}
  Outcome measure(double warm_up_seconds, double seconds) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(warm_up_seconds + seconds));
    Outcome one;
    one.seconds = seconds;
    return one;
  }
  Hold hold(double /*seconds*/, bool /*while_clean*/) override { return {}; }
};

TEST(MeasureBeside, TheWorkGoesOnForAsLongAsTheWindow) {
  StillLoad load;
  unsigned turns = 0;
  const auto outcome = measure_beside(load, 0.01, 0.02, [&](const std::function<bool()>& stopped) -> Expected<void> {
    for (; !stopped(); ++turns) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->seconds, 0.02);
  EXPECT_GT(turns, 2U);
}

TEST(MeasureBeside, AnErrorOfTheWorkIsTheWindows) {
  StillLoad load;
  const auto outcome = measure_beside(
      load, 0, 0.001, [](const std::function<bool()>&) -> Expected<void> { return make_error("the table is full"); });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the table is full");
}

TEST(RankExcess, IsThatOfATextbook) {
  // Hollander and Wolfe, example 4.1: U = 15 of 5 and 10 values without ties, z = (15 - 25) / sqrt(66.7).
  const std::vector<double> y = {1.15, 0.88, 0.90, 0.74, 1.21};
  const std::vector<double> x = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  EXPECT_NEAR(rank_excess(y, x), -1.2247, 1e-4);
  EXPECT_NEAR(rank_excess(x, y), 1.2247, 1e-4);
  EXPECT_EQ(rank_excess({1, 1}, {1, 1, 1}), 0) << "nothing but ties";
  EXPECT_NEAR(rank_excess({2, 2}, {1, 1}), 1.7321, 1e-4) << "with ties";
}

}  // namespace
}  // namespace sluice::cli::bench
