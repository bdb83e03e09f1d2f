// When a lane's load is low: the rule by itself. What a lane makes of it: lane_test.cc.
#include "engine/load.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

constexpr std::uint32_t cpu_below = 256;

// A cycle of a lane that keeps up: all its frames in receives that take what waits, and a time point.
void cycle(LoadWatch& load, std::uint32_t frames, std::uint64_t cycles = 1) {
  load.received(frames, true);
  load.time_point(cycles);
  load.received(0, true);
}

LoadWatch high() {
  LoadWatch load(cpu_below);
  cycle(load, cpu_below);
  EXPECT_FALSE(load.low());
  return load;
}

TEST(Load, IsLowUntilACycleHasEnough) {
  LoadWatch load(cpu_below);
  EXPECT_TRUE(load.low());
  load.received(100'000, false);
  EXPECT_TRUE(load.low()) << "before the first time point";
  load = LoadWatch(cpu_below);
  cycle(load, cpu_below - 1);
  EXPECT_TRUE(load.low());
  cycle(load, cpu_below);
  EXPECT_FALSE(load.low());
}

TEST(Load, ComesBackWithHalfOfIt) {
  LoadWatch load = high();
  cycle(load, cpu_below / 2);
  EXPECT_FALSE(load.low());
  cycle(load, cpu_below / 2 - 1);
  EXPECT_TRUE(load.low());
  cycle(load, cpu_below - 1);
  EXPECT_TRUE(load.low());
}

TEST(Load, IsAnAverageOverTheCyclesSleptThrough) {
  LoadWatch load = high();
  cycle(load, 10 * cpu_below / 2, 10);
  EXPECT_FALSE(load.low());
  cycle(load, 10 * cpu_below / 2 - 1, 10);
  EXPECT_TRUE(load.low());
  cycle(load, 10 * cpu_below - 1, 10);
  EXPECT_TRUE(load.low());
  cycle(load, 10 * cpu_below, 10);
  EXPECT_FALSE(load.low());
}

TEST(Load, FewFramesSayNothingWhereMoreWaited) {
  LoadWatch load = high();
  load.received(1, true);
  load.time_point(6);  // the lane was not run for five cycles
  load.received(64, false);
  EXPECT_FALSE(load.low());
  load.received(64, true);  // the queue is empty now, but it was not at the time point
  EXPECT_FALSE(load.low());
  cycle(load, 1);
  EXPECT_FALSE(load.low()) << "what had waited is the load of this cycle";
  cycle(load, 1);
  EXPECT_TRUE(load.low());
  load.time_point(6);
  load.received(64, false);
  EXPECT_TRUE(load.low()) << "nothing is said of a low load, either";
}

TEST(Load, FewFramesSayNothingUntilTheLaneReceives) {
  LoadWatch load = high();
  for (int point = 0; point < 5; ++point) {
    load.time_point(1);  // with every batch in use
    EXPECT_FALSE(load.low());
  }
  load.received(64, false);
  EXPECT_FALSE(load.low());
  load.time_point(1);
  load.received(63, true);
  EXPECT_TRUE(load.low());
}

TEST(Load, IsNeverLowBehindAThresholdOfNothing) {
  LoadWatch load(0);
  EXPECT_TRUE(load.low());
  cycle(load, 0);
  EXPECT_FALSE(load.low());
  cycle(load, 0, 1000);
  EXPECT_FALSE(load.low());
}

}  // namespace
}  // namespace sluice::engine
