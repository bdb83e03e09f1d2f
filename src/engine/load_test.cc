// When a lane's load is low: the rule by itself. What a lane makes of it: lane_test.cc.
#include "engine/load.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::engine {
namespace {

constexpr std::uint32_t cpu_below = 256;
constexpr LoadWatch::Limits by_frames{.frames = cpu_below};
constexpr std::uint64_t cycle_tsc = 100'000;
constexpr LoadWatch::Limits by_cost{
    .frames = cpu_below, .cycle_tsc = cycle_tsc, .work_tsc = cycle_tsc / 2, .retry_cycles = 1000};

// A cycle of a lane that keeps up: all its frames in receives that take what waits, and a time point.
void cycle(LoadWatch& load, std::uint32_t frames, std::uint64_t cycles = 1) {
  load.received(frames, true, 0, 0);
  load.time_point(cycles, 0);
  load.received(0, true, 0, 0);
}

LoadWatch high() {
  LoadWatch load(by_frames);
  cycle(load, cpu_below);
  EXPECT_FALSE(load.low());
  return load;
}

TEST(Load, IsLowUntilACycleHasEnough) {
  LoadWatch load(by_frames);
  EXPECT_TRUE(load.low());
  load.received(100'000, false, 0, 0);
  EXPECT_TRUE(load.low()) << "before the first time point";
  load = LoadWatch(by_frames);
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
  load.received(1, true, 0, 0);
  load.time_point(6, 0);  // the lane was not run for five cycles
  load.received(64, false, 0, 0);
  EXPECT_FALSE(load.low());
  load.received(64, true, 0, 0);  // the queue is empty now, but it was not at the time point
  EXPECT_FALSE(load.low());
  cycle(load, 1);
  EXPECT_FALSE(load.low()) << "what had waited is the load of this cycle";
  cycle(load, 1);
  EXPECT_TRUE(load.low());
  load.time_point(6, 0);
  load.received(64, false, 0, 0);
  EXPECT_TRUE(load.low()) << "nothing is said of a low load, either";
}

TEST(Load, FewFramesSayNothingUntilTheLaneReceives) {
  LoadWatch load = high();
  for (int point = 0; point < 5; ++point) {
    load.time_point(1, 0);  // with every batch in use
    EXPECT_FALSE(load.low());
  }
  load.received(64, false, 0, 0);
  EXPECT_FALSE(load.low());
  load.time_point(1, 0);
  load.received(63, true, 0, 0);
  EXPECT_TRUE(load.low());
}

TEST(Load, IsNeverLowBehindAThresholdOfNothing) {
  LoadWatch load({.frames = 0});
  EXPECT_TRUE(load.low());
  cycle(load, 0);
  EXPECT_FALSE(load.low());
  cycle(load, 0, 1000);
  EXPECT_FALSE(load.low());
}

// The core has half of a cycle for them: a lane that cannot keep up is never brought 256 frames in one.
class CostlyLoad : public testing::Test {
 protected:
  // A cycle in four receives, in which the lane looks for itself; and a time point, where the worker is awake.
  void cycle(std::uint32_t frames, std::uint64_t ticks, bool time_point = false) {
    for (int i = 0; i < 4; ++i) load_.received(frames / 4, true, now_ += cycle_tsc / 4, ticks * FrameCost::scale);
    if (!time_point) return;
    load_.time_point(1, ticks * FrameCost::scale);
    load_.received(0, true, 0, ticks * FrameCost::scale);
  }
  void become_high() {
    for (int i = 0; i < 4 && load_.low(); ++i) cycle(40, 100'000);
    ASSERT_FALSE(load_.low());
  }

  LoadWatch load_{by_cost};
  std::uint64_t now_ = 50 * cycle_tsc;
};

TEST_F(CostlyLoad, FewFramesThatAreMuchWorkAreAHighOne) {
  for (int i = 0; i < 100; ++i) cycle(48, 1000);
  EXPECT_TRUE(load_.low());
  for (int i = 0; i < 3; ++i) cycle(52, 1000);
  EXPECT_FALSE(load_.low()) << "within three cycles, without a time point";
  for (int i = 0; i <= 100; ++i) cycle(i % 20 == 0 ? 16 : 8, 1000, true);
  EXPECT_FALSE(load_.low()) << "now and then more than a quarter of it";
  for (int i = 0; i < 32; ++i) {
    EXPECT_FALSE(load_.low());
    cycle(12, 1000, true);
  }
  EXPECT_TRUE(load_.low());

  LoadWatch asked_for(by_frames);
  load_ = asked_for;
  for (int i = 0; i < 10; ++i) cycle(252, 1'000'000, true);
  EXPECT_TRUE(load_.low()) << "whatever they cost";
}

TEST_F(CostlyLoad, AnInterruptionOnceOrASilenceIsNoWork) {
  for (int i = 0; i < 10; ++i) {
    cycle(40, 2500);
    EXPECT_TRUE(load_.low()) << i;
    cycle(40, 1000, true);
    EXPECT_TRUE(load_.low()) << i;
    now_ += 1000 * cycle_tsc;
  }
}

TEST_F(CostlyLoad, ManyFramesAreSeenWhileTheWorkerSleeps) {
  for (int i = 0; i < 10; ++i) cycle(252, 0);
  EXPECT_TRUE(load_.low());
  for (int i = 0; i < 3; ++i) cycle(260, 0);
  EXPECT_FALSE(load_.low()) << "that cost nothing";
}

// 8.7 frames of 7 us in a cycle of 100 us, on average. The lane comes to receive less often while it forwards.
TEST_F(CostlyLoad, FewFramesOnceByChanceAreNoLowLoad) {
  std::minstd_rand random(1);
  std::poisson_distribution<std::uint32_t> arrivals(8.7);
  load_ = LoadWatch({.frames = cpu_below, .cycle_tsc = cycle_tsc, .work_tsc = cycle_tsc / 2, .retry_cycles = 1 << 30});
  become_high();
  const std::uint64_t cost = 7000 * FrameCost::scale;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t cycles = 1 + random() % 4;
    std::uint32_t waiting = 0;
    for (std::uint64_t c = 0; c < cycles; ++c) waiting += arrivals(random);
    load_.time_point(cycles, cost);
    load_.received(waiting, true, now_ += cycles * cycle_tsc, cost);
    ASSERT_FALSE(load_.low()) << i;
  }
}

// The thread was not run for 40 cycles; what came meanwhile fits into one receive.
TEST_F(CostlyLoad, WhatWaitedIsTheLoadOfTheCyclesBefore) {
  become_high();
  load_.time_point(40, 50'000 * FrameCost::scale);
  load_.received(30, true, now_, 50'000 * FrameCost::scale);
  EXPECT_FALSE(load_.low());
  load_.time_point(40, 50'000 * FrameCost::scale);
  EXPECT_FALSE(load_.low());
  load_.time_point(40, 50'000 * FrameCost::scale);
  load_.received(5, true, now_, 50'000 * FrameCost::scale);
  EXPECT_TRUE(load_.low());
}

// What a frame costs is not seen while the device computes.
TEST_F(CostlyLoad, FewFramesAreTriedAgainAfterAWhile) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    become_high();
    int cycles = 0;
    for (; !load_.low() && cycles < 5000; ++cycles) cycle(40, 100'000, true);
    EXPECT_EQ(cycles, 1000) << "each time as long";
    if (attempt == 1) {
      for (int i = 0; i < 5; ++i) load_.received(10, true, now_ += cycle_tsc / 4, 100'000 * FrameCost::scale);
      EXPECT_FALSE(load_.low()) << "a try that fails is over with the first cycle";
    }
  }
  for (int i = 0; i < 10; ++i) cycle(40, 1000, true);
  EXPECT_TRUE(load_.low()) << "they cost little by now";

  become_high();
  for (int i = 0; i < 5000; ++i) cycle(cpu_below / 2, 100'000, true);
  EXPECT_FALSE(load_.low()) << "never while there are many";
}

}  // namespace
}  // namespace sluice::engine
