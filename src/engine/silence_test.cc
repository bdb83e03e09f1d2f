#include "engine/silence.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

TEST(SilenceWatch, CountsFromWhatWasHeardLast) {
  SilenceWatch watch;
  watch.heard(1'000, 100);
  EXPECT_EQ(watch.look(1'050), 50U);
  EXPECT_EQ(watch.look(1'090), 90U);
  watch.heard(1'200, 100);
  EXPECT_EQ(watch.look(1'210), 10U);
}

TEST(SilenceWatch, TimeInWhichNobodyLookedIsNoSilence) {
  SilenceWatch watch;
  watch.heard(1'000, 100);
  EXPECT_EQ(watch.look(9'000'000), 100U) << "the thread did not run";
  EXPECT_EQ(watch.look(9'000'010), 110U);
}

TEST(SilenceWatch, ACounterOfAnotherCoreMayBeBehind) {
  SilenceWatch watch;
  watch.heard(1'000, 100);
  EXPECT_EQ(watch.look(990), 0U);
  EXPECT_EQ(watch.look(1'010), 10U);
}

TEST(SilenceLimit, IsTheMostUntilSomethingWasHeard) {
  EXPECT_EQ(SilenceLimit::learned(100, 10'000).get(), 10'000U);
  EXPECT_EQ(SilenceLimit::learned(100, 50).get(), 50U);
}

TEST(SilenceLimit, FollowsWhatTookLongestAndForgetsIt) {
  SilenceLimit limit = SilenceLimit::learned(1'000, 100'000);
  limit.took(5);
  EXPECT_EQ(limit.get(), 1'000U);
  limit.took(4'096);
  EXPECT_EQ(limit.get(), 8 * 4'096U);
  limit.took(5);
  EXPECT_EQ(limit.get(), 8 * 4'092U);
  limit.took(1'000'000);
  EXPECT_EQ(limit.get(), 100'000U);
  for (int i = 0; i < 10'000; ++i) limit.took(5);
  EXPECT_LT(limit.get(), 10'000U);
}

TEST(SilenceLimit, AFixedOneLearnsNothing) {
  SilenceLimit limit = SilenceLimit::fixed(700);
  EXPECT_EQ(limit.get(), 700U);
  limit.took(1);
  EXPECT_EQ(limit.get(), 700U);
  limit.took(100'000);
  EXPECT_EQ(limit.get(), 700U);
}

}  // namespace
}  // namespace sluice::engine
