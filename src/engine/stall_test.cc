#include "engine/stall.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

TEST(StallWatch, CountsGapsThatAreLongerThanABurstsWork) {
  const std::uint64_t us = rte_get_tsc_hz() / 1'000'000;
  StallWatch watch;
  const std::uint64_t begin = rte_rdtsc();
  watch.resume(begin);
  watch.look(begin + 49 * us);
  EXPECT_EQ(watch.times(), 0U);
  watch.look(begin + 49 * us + 300 * us);
  watch.look(begin + 49 * us + 301 * us);
  watch.look(begin + 49 * us + 401 * us);
  EXPECT_EQ(watch.times(), 2U);
  EXPECT_EQ(watch.ticks(), 400 * us);
  EXPECT_EQ(watch.longest(), 300 * us);
}

TEST(StallWatch, KnowsWhatOfTheLastGapLiesBeforeAMoment) {
  const std::uint64_t us = rte_get_tsc_hz() / 1'000'000;
  StallWatch watch;
  const std::uint64_t begin = rte_rdtsc();
  watch.resume(begin);
  watch.look(begin + 100 * us);
  watch.look(begin + 400 * us);
  EXPECT_EQ(watch.ticks_until(begin + 500 * us), 400 * us);
  EXPECT_EQ(watch.ticks_until(begin + 300 * us), 300 * us);
  EXPECT_EQ(watch.ticks_until(begin + 90 * us), 100 * us);
}

TEST(StallWatch, BetweenTwoMomentsIsNeverLessThanNothing) {
  EXPECT_EQ(StallWatch::since(300, 700), 400U);
  EXPECT_EQ(StallWatch::since(700, 700), 0U);
  EXPECT_EQ(StallWatch::since(701, 700), 0U);
}

TEST(StallWatch, ASleepOnPurposeIsNoGap) {
  const std::uint64_t us = rte_get_tsc_hz() / 1'000'000;
  StallWatch watch;
  const std::uint64_t begin = rte_rdtsc();
  watch.resume(begin);
  watch.resume(begin + 5000 * us);
  watch.look(begin + 5010 * us);
  EXPECT_EQ(watch.times(), 0U);
}

}  // namespace
}  // namespace sluice::engine
