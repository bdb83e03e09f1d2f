#include "control/send_watch.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

// One port; each call is a second.
class SendWatchTest : public testing::Test {
 protected:
  bool second(std::uint64_t lost) {
    port_.errors += lost;
    watch_.look({port_});
    return watch_.failing().at(0);
  }

  SendWatch watch_;
  SendWatch::Port port_{"wan"};
};

TEST_F(SendWatchTest, WhatIsLostSecondAfterSecondIsNoticedUntilItEnds) {
  EXPECT_FALSE(second(0));
  EXPECT_FALSE(second(1));
  EXPECT_FALSE(second(7));
  EXPECT_TRUE(second(1));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(second(0)) << i;
  EXPECT_TRUE(second(1)) << "it is not over";
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(second(0)) << i;
  EXPECT_FALSE(second(0));
}

TEST_F(SendWatchTest, ALinkThatGoesDownNowAndThenIsNot) {
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(second(i % 3 == 0 ? 0 : 100)) << i;
}

}  // namespace
}  // namespace sluice::control
