#include "bench/goals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace sluice::cli::bench {
namespace {

std::string said(const std::function<void()>& action) {
  testing::internal::CaptureStdout();
  action();
  return testing::internal::GetCapturedStdout();
}

TEST(Goals, EachIsSaidAndOneThatIsMissedIsStatusOne) {
  Goals goals("echo", true);
  EXPECT_EQ(said([&] { goals.at_least("share", 90.04, 90, "%"); }), "GOAL reached: echo share: 90 %, at least 90\n");
  EXPECT_EQ(said([&] { goals.at_most("late", 0, 0, "frames"); }), "GOAL reached: echo late: 0 frames, at most 0\n");
  EXPECT_EQ(said([&] { EXPECT_EQ(goals.status(), 0); }), "goals: 2 of 2 reached\n");
  EXPECT_EQ(said([&] { goals.at_least("share", 89.9, 90, "%"); }), "GOAL MISSED: echo share: 89.9 %, at least 90\n");
  EXPECT_EQ(said([&] { EXPECT_EQ(goals.status(), 1); }), "goals: 2 of 3 reached\n");
}

TEST(Goals, AFigureIsJudgedAsItIsPrinted) {
  Goals goals("touch", true);
  said([&] {
    goals.at_least("share", 84.96, 85, "%");
    goals.at_most("ratio", 2.04, 2, "times");
    EXPECT_EQ(goals.status(), 0);
    goals.at_most("ratio", 2.06, 2, "times");
    EXPECT_EQ(goals.status(), 1);
  });
}

TEST(Goals, WhatHasNoFigureIsSaidAndDoesNotCount) {
  Goals goals("route", true);
  EXPECT_EQ(said([&] { goals.without("times testpmd's", "there is none"); }),
            "GOAL not judged: route times testpmd's: there is none\n");
  EXPECT_EQ(said([&] { EXPECT_EQ(goals.status(), 0); }), "");
}

TEST(Goals, WithoutJudgingNothingIsSaidAndTheStatusIsZero) {
  Goals goals("route", false);
  EXPECT_EQ(said([&] {
              goals.at_least("share", 1, 90, "%");
              goals.without("ratio", "no");
              EXPECT_EQ(goals.status(), 0);
            }),
            "");
}

}  // namespace
}  // namespace sluice::cli::bench
