#include "engine/bound.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Bound, IsTheoremOneForOverlapOne) {
  const auto timing = plan_timing(milliseconds(1), microseconds(300), 1);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->bound, 3 * microseconds(300) + collect_time);
}

TEST(Bound, ChosenCycleFitsItsDeadline) {
  for (const unsigned overlap : {1U, 2U, 4U, 8U}) {
    for (const auto deadline : {milliseconds(1), milliseconds(5), milliseconds(80)}) {
      const auto timing = plan_timing(deadline, std::chrono::nanoseconds(0), overlap);
      ASSERT_TRUE(timing);
      EXPECT_LE(timing->bound, deadline);
      EXPECT_GT(timing->bound, deadline * 8 / 10);
    }
  }
}

TEST(Bound, RefusesWhatCannotHold) {
  EXPECT_FALSE(plan_timing(milliseconds(1), microseconds(340), 1));
  EXPECT_TRUE(plan_timing(milliseconds(1), microseconds(330), 1));
  const auto timing = plan_timing(microseconds(50), std::chrono::nanoseconds(0), 1);
  ASSERT_FALSE(timing);
  EXPECT_NE(timing.error().message.find("raise the deadline to at least 78us"), std::string::npos)
      << timing.error().message;
  EXPECT_TRUE(plan_timing(microseconds(78), std::chrono::nanoseconds(0), 1));
}

}  // namespace
}  // namespace sluice::engine
