#include "function/inspect/capture_time.h"

#include <gtest/gtest.h>

namespace sluice::function {
namespace {

constexpr std::uint64_t second = 1'000'000, day = 86'400 * second, begin = 20'000 * day;

TEST(CaptureTime, OneFrameFarAheadIsOfTheLastOnesTime) {
  CaptureTime time;
  EXPECT_EQ(time.of(begin), begin);
  EXPECT_EQ(time.of(begin + second), begin + second);
  EXPECT_EQ(time.of(begin + 30'000 * day), begin + second);
  EXPECT_EQ(time.of(begin + 2 * second), begin + 2 * second);
  EXPECT_EQ(time.of(begin + 30'000 * day), begin + 2 * second) << "again, but alone";
  EXPECT_EQ(time.of(begin + second), begin + second) << "out of order is not ahead";
}

TEST(CaptureTime, TwoInARowAreBelieved) {
  CaptureTime time;
  time.of(begin);
  EXPECT_EQ(time.of(begin + 3 * day), begin);
  EXPECT_EQ(time.of(begin + 3 * day + second), begin + 3 * day + second);
  EXPECT_EQ(time.of(begin + 3 * day + 2 * second), begin + 3 * day + 2 * second);
}

TEST(CaptureTime, GoesOnWhereFramesAreDaysApart) {
  CaptureTime time;
  time.of(begin);
  EXPECT_EQ(time.of(begin + 2 * day), begin);
  EXPECT_EQ(time.of(begin + 4 * day), begin + 4 * day);
}

}  // namespace
}  // namespace sluice::function
