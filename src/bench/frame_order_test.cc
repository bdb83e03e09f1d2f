// That a frame which leaves out of its turn is seen, whatever is done to frames meanwhile.
#include "bench/frame_order.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <array>

namespace sluice::cli::bench {
namespace {

class FrameOrderTest : public testing::Test {
 protected:
  FrameOrderTest() {
    for (std::uint32_t i = 0; i < frames_.size(); ++i) frames_[i].hash.fdir.hi = i;  // ReplayPort::frame_index()
  }
  void come(std::uint32_t lane, std::initializer_list<unsigned> frames) {
    for (const unsigned i : frames) order_.came(lane, frames_[i]);
  }
  void leave(std::uint32_t lane, std::initializer_list<unsigned> frames) {
    for (const unsigned i : frames) order_.leaves(lane, frames_[i]);
  }
  std::array<rte_mbuf, 8> frames_{};
  FrameOrder order_{2, 8};
};

TEST_F(FrameOrderTest, FramesThatWereDroppedLeaveNoGap) {
  come(0, {0, 1, 2, 3, 4, 5});
  leave(0, {0, 2, 5});
  come(0, {3, 0, 1});  // those that were dropped come again, in any order
  leave(0, {3, 1});
  EXPECT_EQ(order_.left(), 5U);
  EXPECT_EQ(order_.out_of_order(), 0U);
}

TEST_F(FrameOrderTest, OneThatIsOvertakenIsOutOfOrder) {
  come(0, {0, 1, 2, 3});
  leave(0, {0, 2, 1, 3});
  EXPECT_EQ(order_.out_of_order(), 1U);
}

TEST_F(FrameOrderTest, SoIsOneThatLeavesTwice) {
  come(0, {0, 1});
  leave(0, {0, 0, 1});
  EXPECT_EQ(order_.out_of_order(), 1U);
}

TEST_F(FrameOrderTest, LanesHaveAnOrderOfTheirOwn) {
  come(0, {0, 1, 2});
  come(1, {4, 5});
  leave(1, {4});
  leave(0, {0, 1});
  leave(1, {5});
  leave(0, {2});
  EXPECT_EQ(order_.left(), 5U);
  EXPECT_EQ(order_.out_of_order(), 0U);
}

}  // namespace
}  // namespace sluice::cli::bench
