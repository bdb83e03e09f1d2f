#include "control/device_return.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

class DeviceReturnTest : public testing::Test {
 protected:
  // Seconds, from now on, at which the GPU is tried, while it is lost.
  std::vector<int> tries(int within) {
    std::vector<int> at;
    for (int s = 0; s < within; ++s) {
      if (return_.is_due(0, true, now_)) at.push_back(s);
      now_ += seconds(1);
    }
    return at;
  }
  void up_for(seconds time) {
    for (seconds past{0}; past < time; past += seconds(1)) {
      EXPECT_FALSE(return_.is_due(0, false, now_));
      now_ += seconds(1);
    }
  }
  DeviceReturn return_{seconds(10), 2};
  DeviceReturn::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(DeviceReturnTest, IsTriedAfterAWhileAndEachTimeLater) {
  EXPECT_THAT(tries(2000), ElementsAre(10, 30, 70, 150, 310, 630, 1230, 1830));
}

TEST_F(DeviceReturnTest, OneThatFailsAgainWaitsLonger) {
  EXPECT_THAT(tries(11), ElementsAre(10));
  up_for(seconds(60));
  EXPECT_THAT(tries(100), ElementsAre(40));
}

TEST_F(DeviceReturnTest, OneThatWasWellForLongBeginsAnew) {
  EXPECT_THAT(tries(400), ElementsAre(10, 30, 70, 150, 310));
  up_for(minutes(11));
  EXPECT_THAT(tries(20), ElementsAre(10));
}

TEST_F(DeviceReturnTest, EachGpuHasItsOwnTime) {
  EXPECT_THAT(tries(5), ElementsAre());
  EXPECT_FALSE(return_.is_due(1, true, now_));
  EXPECT_TRUE(return_.is_due(0, true, now_ + seconds(5)));
  EXPECT_FALSE(return_.is_due(1, true, now_ + seconds(5)));
  EXPECT_TRUE(return_.is_due(1, true, now_ + seconds(10)));
}

TEST_F(DeviceReturnTest, NeverWhereItIsNotWanted) {
  return_ = DeviceReturn(seconds(0), 1);
  EXPECT_THAT(tries(2000), ElementsAre());
}

}  // namespace
}  // namespace sluice::control
