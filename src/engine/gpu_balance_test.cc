#include "engine/gpu_balance.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

struct Offered {
  std::uint32_t gpu;
  std::uint64_t frames;  // in an interval
  bool waits;
};

class GpuBalanceTest : public testing::Test {
 protected:
  // An interval in which lanes have this; a lane that is moved goes.
  std::optional<GpuBalance::Move> pass(std::vector<Offered>& lanes) {
    counted_.resize(lanes.size());
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      counted_[l].gpu = lanes[l].gpu;
      counted_[l].frames += lanes[l].frames;
      counted_[l].waits += lanes[l].waits ? 7 : 0;
    }
    now_ += GpuBalance::interval;
    const auto move = balance_.look(counted_, up_, now_);
    if (move) lanes[move->lane].gpu = move->gpu;
    return move;
  }
  GpuBalance balance_;
  std::vector<GpuBalance::LaneLoad> counted_;
  std::vector<bool> up_ = {true, true};
  GpuBalance::Time now_{std::chrono::hours(1)};
};

TEST_F(GpuBalanceTest, EqualLoadsStayWhereTheyAre) {
  std::vector<Offered> lanes = {{0, 100, true}, {0, 100, true}, {1, 95, true}, {1, 95, true}};
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(pass(lanes));
}

TEST_F(GpuBalanceTest, AFullGpuGivesALaneToTheOneThatHasLess) {
  std::vector<Offered> lanes = {{0, 100, true}, {0, 40, true}, {0, 100, true}, {1, 60, false}};
  EXPECT_FALSE(pass(lanes)) << "the first look has nothing to compare with";
  const auto move = pass(lanes);
  ASSERT_TRUE(move);
  EXPECT_EQ(move->gpu, 1U);
  EXPECT_EQ(move->lane, 0U) << "140 and 160: the larger one is smaller than by moving 40";
  for (Offered& lane : lanes) lane.waits = false;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(pass(lanes));
}

TEST_F(GpuBalanceTest, AsLongAsNobodyWaitsNoneMoves) {
  std::vector<Offered> lanes = {{0, 100, false}, {0, 100, true}, {0, 100, false}, {1, 1, false}};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pass(lanes));
}

TEST_F(GpuBalanceTest, OneLaneThatIsTooMuchForAnyGpuStays) {
  std::vector<Offered> lanes = {{0, 100, true}, {1, 0, false}};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pass(lanes));
}

TEST_F(GpuBalanceTest, NoneGoesToAGpuThatIsLostOrFull) {
  std::vector<Offered> lanes = {{0, 100, true}, {0, 100, true}, {1, 10, true}};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pass(lanes));
  lanes[2].waits = false;
  up_[1] = false;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pass(lanes));
  up_[1] = true;
  EXPECT_TRUE(pass(lanes));
}

// Traffic that follows the lanes about: whichever GPU has more is full.
TEST_F(GpuBalanceTest, ALaneThatWasMovedStaysForAWhile) {
  std::vector<Offered> lanes = {{0, 100, true}, {0, 100, true}, {1, 10, false}};
  std::vector<GpuBalance::Time> moved(lanes.size());
  int moves = 0;
  for (int i = 0; i < 200; ++i) {
    const bool first_has_more = i / 5 % 2 == 0;
    for (Offered& lane : lanes) {
      lane.waits = (lane.gpu == 0) == first_has_more;
      lane.frames = lane.waits ? 100 : 10;
    }
    if (const auto move = pass(lanes)) {
      ++moves;
      EXPECT_TRUE(moved[move->lane] == GpuBalance::Time() || now_ - moved[move->lane] >= GpuBalance::settled);
      moved[move->lane] = now_;
    }
  }
  EXPECT_GT(moves, 1);
}

TEST_F(GpuBalanceTest, CallsWithinAnIntervalSayNothing) {
  std::vector<Offered> lanes = {{0, 100, true}, {0, 100, true}, {1, 10, false}};
  EXPECT_FALSE(pass(lanes));
  for (int i = 0; i < 9; ++i) {
    now_ += GpuBalance::interval / 10;
    for (auto& lane : counted_) lane.frames += 10;
    EXPECT_FALSE(balance_.look(counted_, up_, now_));
  }
  EXPECT_TRUE(pass(lanes));
}

}  // namespace
}  // namespace sluice::engine
