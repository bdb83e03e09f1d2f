#include "control/capture_end.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

class CaptureEndOf : public testing::Test {
 protected:
  bool after(std::uint64_t received, std::uint64_t in_flight, std::vector<std::uint64_t> polls) {
    engine::EngineStats stats;
    stats.total.rx_frames = received;
    stats.total.in_flight = in_flight;
    for (const std::uint64_t empty : polls) {
      stats.lanes.emplace_back();
      stats.lanes.back().empty_polls = empty;
    }
    return end_.reached(stats);
  }
  CaptureEnd end_;
};

TEST_F(CaptureEndOf, IsWhereEveryLaneHasPolledInVain) {
  EXPECT_FALSE(after(100, 0, {0, 0}));
  EXPECT_FALSE(after(200, 0, {0, 7})) << "the other one's is still read";
  EXPECT_FALSE(after(200, 0, {0, 20}));
  EXPECT_FALSE(after(200, 0, {1, 30}));
  EXPECT_TRUE(after(200, 0, {2, 40}));
}

TEST_F(CaptureEndOf, IsNotWhereALaneDoesNotRun) {
  for (int tick = 0; tick < 1000; ++tick) ASSERT_FALSE(after(0, 0, {0}));
  EXPECT_FALSE(after(0, 0, {1}));
  EXPECT_TRUE(after(0, 0, {2})) << "an empty capture ends, too";
}

TEST_F(CaptureEndOf, WaitsForWhatIsInFlight) {
  EXPECT_FALSE(after(5, 5, {3}));
  EXPECT_FALSE(after(5, 1, {30}));
  EXPECT_FALSE(after(5, 0, {30})) << "polls while something was in flight do not count";
  EXPECT_TRUE(after(5, 0, {32}));
}

TEST_F(CaptureEndOf, BeginsAnewWithEveryFrame) {
  EXPECT_FALSE(after(5, 0, {3}));
  EXPECT_FALSE(after(6, 0, {9})) << "a poll before that frame may have been in vain";
  EXPECT_TRUE(after(6, 0, {11}));
}

}  // namespace
}  // namespace sluice::control
