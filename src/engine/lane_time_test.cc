// A lane and time: what it refuses, and what it counts as late and why.
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <chrono>
#include <thread>

#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

// A replay port says how long its frames have waited: here at least as long as the test sleeps.
TEST_F(LaneTest, WhatCannotLeaveInTimeIsRefused) {
  for (const bool in_time : {false, true}) {
    const auto port = open("late", "replay,mix=64,frames=64,rate=1e6");
    ASSERT_TRUE(port);
    make({.deadline_tsc = rte_get_tsc_hz() / 100 * (in_time ? 100'000 : 1), .refuses_overdue = true}, port.get());
    EXPECT_EQ(lane_->collect_round(), 0U) << "a port's time begins with the first look";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(lane_->collect_round(), 64U);
    EXPECT_EQ(lane_->in_flight(), in_time ? 64U : 0U);
    EXPECT_EQ(drops(overdue), in_time ? 0U : 64U);
    expect_conserved();
    lane_->abandon();
  }
}

// Refused of ten seconds: what is older than eight, or than one where a cycle, which lasts much longer, lies ahead.
LaneSetup ten_seconds(std::uint32_t cpu_below) {
  return {.cpu_below = cpu_below, .deadline_tsc = 10 * rte_get_tsc_hz(), .refuses_overdue = true, .shares_queue = true};
}

TEST_F(LaneTest, WhatIsRefusedIsLoadAllTheSame) {
  make(ten_seconds(10));
  for (const unsigned frames : {9U, 10U}) {
    arrive_at(frames, rte_rdtsc() - 9 * rte_get_tsc_hz());
    collect();
    time_point();
    EXPECT_EQ(lane_->on_device(), frames == 10);
  }
  EXPECT_EQ(drops(overdue), 19U);
  EXPECT_EQ(collected().rx_frames.get(), 19U);
}

TEST_F(LaneTest, ACycleCountsOnlyWhereTheDeviceComputes) {
  make(ten_seconds(0));
  arrive_at(5, rte_rdtsc() - 2 * rte_get_tsc_hz());
  collect();
  EXPECT_EQ(collected().frames_cpu.get(), 5U);
  EXPECT_EQ(drops(overdue), 0U);
  time_point();
  ASSERT_TRUE(lane_->on_device());
  arrive_at(7, rte_rdtsc() - 2 * rte_get_tsc_hz());
  collect();
  EXPECT_EQ(drops(overdue), 7U);
  arrive_at(3, rte_rdtsc());
  collect();
  EXPECT_EQ(drops(overdue), 7U);
  EXPECT_EQ(lane_->in_flight(), 8U);
}

}  // namespace
}  // namespace sluice::engine
