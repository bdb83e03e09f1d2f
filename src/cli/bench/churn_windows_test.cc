#include "cli/bench/churn_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

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
std::string missed(const Windows& without, const Windows& with) {
  testing::internal::CaptureStdout();
  Goals goals("churn", true);
  judge_updates(goals, without, with);
  const bool any = goals.status() != 0;
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(any, said.find("MISSED") != std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 4) << said;
  std::string lines;
  for (std::size_t at = said.find("GOAL MISSED"); at != std::string::npos; at = said.find("GOAL MISSED", at + 1)) {
    lines += said.substr(at, said.find('\n', at) + 1 - at);
  }
  return lines;
}

TEST(ChurnGoals, TheMedianIsHeldAgainstTheMedianNotAgainstTheWorstWindow) {
  const Windows without = windows({80, 100, 900});
  EXPECT_EQ(missed(without, windows({70, 125, 2000})), "");
  EXPECT_EQ(
      missed(without, windows({100, 126, 200})),
      "GOAL MISSED: churn p99 with updates, median of the windows (a quarter over that without is allowed): 126 us, "
      "at most 125\n");
}

TEST(ChurnGoals, LateAndLostFramesCountByTheMedianWindow) {
  const Windows without = windows({100, 100, 100, 100, 100});
  Windows with = without;
  with.of[0].offered_missed = 1'000'000;
  with.of[1].deadline_misses = 1'000'000;
  EXPECT_EQ(missed(without, with), "") << "two windows may be the machine's";
  with.of[2].deadline_misses = 1'000'002;
  with.of[2].misses_away = 1'000'000;
  EXPECT_THAT(missed(without, with), HasSubstr("frames lost, or late by more than threads were kept away"));
  with.of[2].misses_away = 1'000'002;
  EXPECT_EQ(missed(without, with), "") << "all of the third window's are explained";
  with.of[2].offered_missed = 1;
  EXPECT_THAT(missed(without, with), Not(HasSubstr("frames lost"))) << "one in a million is allowed";
  EXPECT_THAT(missed(without, with), HasSubstr("windows with such frames, with updates"));
  Windows worse = without;
  worse.of[0].offered_missed = 1;
  EXPECT_EQ(missed(worse, with), "") << "without updates a window had losses, too";
}

}  // namespace
}  // namespace sluice::cli::bench
