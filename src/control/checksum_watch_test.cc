#include "control/checksum_watch.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

// One port; each call is a second.
class ChecksumWatchTest : public testing::Test {
 protected:
  ChecksumWatchTest() { watch_.look({port_}); }
  bool second(std::uint64_t checked, std::uint64_t wrong) {
    port_.checked += checked;
    port_.wrong += wrong;
    watch_.look({port_});
    return watch_.unfinished().at(0);
  }

  ChecksumWatch watch_;
  ChecksumWatch::Port port_{"lan"};
};

TEST_F(ChecksumWatchTest, ASynThatIsSentAgainAndAgainIsNoticed) {
  EXPECT_FALSE(second(1, 1));
  EXPECT_FALSE(second(1, 1));
  EXPECT_FALSE(second(0, 0));
  EXPECT_FALSE(second(0, 0));
  EXPECT_TRUE(second(1, 1));
  EXPECT_TRUE(second(0, 0));
}

TEST_F(ChecksumWatchTest, ADamagedFrameNowAndThenIsNot) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(second(100, 2)) << i;
}

TEST_F(ChecksumWatchTest, ItEndsWhenMostAreRightAgain) {
  for (int i = 0; i < 10; ++i) second(10, 10);
  EXPECT_TRUE(second(100, 0));
  EXPECT_FALSE(second(300, 0));
}

TEST_F(ChecksumWatchTest, ItEndsAMinuteAfterTheLast) {
  for (int i = 0; i < 3; ++i) second(1, 1);
  EXPECT_TRUE(second(0, 0));
  for (int i = 0; i < 60; ++i) second(0, 0);
  EXPECT_FALSE(second(0, 0));
}

TEST_F(ChecksumWatchTest, PortsAreApart) {
  ChecksumWatch watch;
  watch.look({{"lan", 0, 0}, {"wan", 0, 0}});
  watch.look({{"lan", 9, 0}, {"wan", 9, 9}});
  EXPECT_EQ(watch.unfinished(), (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace sluice::control
