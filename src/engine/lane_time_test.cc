// A lane and time: what it refuses, and what it counts as late and why.
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <chrono>
#include <deque>
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

TEST_F(LaneTest, WhatAnotherCoresCounterPutsAheadHasNoAge) {
  make(ten_seconds(0));
  time_point();
  arrive_at(3, rte_rdtsc() + 1000 * rte_get_tsc_hz());
  collect();
  EXPECT_EQ(lane_->in_flight(), 3U);
  EXPECT_EQ(drops(overdue), 0U);
}

// Bursts that fall due twice as often as the core can compute them, into a queue with capacity for twelve. Time passes
// in tenths of a second of the test's own: a frame arrives with the age that it has by then, and all of a batch is
// older when it has been computed.
class OverloadedLaneTest : public LaneTest {
 protected:
  static constexpr std::uint64_t work = 30, between = work / 2, bursts = 200, frames = 8;

  void overload(bool refuses_overdue) {
    const std::uint64_t tenth = rte_get_tsc_hz() / 10;
    LaneSetup setup = ten_seconds(1000);
    setup.refuses_overdue = refuses_overdue;
    make(setup);
    peer_.while_computing = [&](Batch& batch) {
      batch.sealed_tsc -= work * tenth;
      batch.began_tsc -= work * tenth;
      for (std::uint32_t s = 0; s < batch.segments; ++s) {
        batch.segment[s].rx_tsc -= work * tenth;
      }
    };
    std::deque<std::uint64_t> queue;
    std::uint64_t now = 0, next = 0;
    for (std::uint64_t burst = 0; burst < bursts; ++burst) {
      for (; next <= now; next += between) {
        if (queue.size() < 12) {
          queue.push_back(next);
        }
      }
      ASSERT_FALSE(queue.empty());
      arrive_at(frames, rte_rdtsc() - (now - queue.front()) * tenth);
      queue.pop_front();
      const std::uint64_t computed = collected().batches_cpu.get();
      lane_->collect_round();
      lane_->forward_round();
      left_in_all_ += take_out();
      now = collected().batches_cpu.get() != computed ? now + work : queue.empty() ? next : now;
    }
  }
  std::uint64_t misses() const { return lane_->forwarder_counters().misses.get(); }

  std::uint64_t left_in_all_ = 0;
};

TEST_F(OverloadedLaneTest, SendsOnTimeWhatItLetsIn) {
  overload(true);
  EXPECT_EQ(misses(), 0U);
  EXPECT_NEAR(static_cast<double>(drops(overdue)), bursts * frames / 2.0, bursts * frames / 10.0);
  EXPECT_EQ(left_in_all_ + drops(overdue), bursts * frames);
}

TEST_F(OverloadedLaneTest, WithoutAdmissionNearlyEverythingIsLate) {
  overload(false);
  EXPECT_EQ(drops(overdue), 0U);
  EXPECT_EQ(left_in_all_, bursts * frames);
  EXPECT_GT(misses(), bursts * frames * 9 / 10);
}

// Frames that came five seconds ago, with a deadline of two.
TEST_F(LaneTest, LatenessWithinASchedulingStallIsDistinguished) {
  struct Case {
    const char* name;
    bool worker;
    double begin, end;  // of the stall, in seconds ago; equal: none
    bool excused;
  };
  for (const Case& one :
       {Case{"none", false, 0, 0, false}, Case{"all the time", false, 6, 0, true}, Case{"before", false, 9, 6, false},
        Case{"four of them", false, 5, 1, true}, Case{"too short", false, 4, 2, false},
        Case{"the worker", true, 6, 0, true}, Case{"the worker, before", true, 9, 6, false}}) {
    const auto second = static_cast<double>(rte_get_tsc_hz());
    make({.cpu_below = 1000, .deadline_tsc = 2 * rte_get_tsc_hz(), .shares_queue = true});
    const std::uint64_t now = rte_rdtsc();
    StallWatch& stalls = one.worker ? clock_.stalls : stalls_;
    stalls.resume(now - static_cast<std::uint64_t>(one.begin * second));
    if (one.begin != one.end) {
      stalls.look(now - static_cast<std::uint64_t>(one.end * second));
    }
    stalls_.resume(now);
    arrive_at(3, now - 5 * rte_get_tsc_hz());
    collect();
    lane_->forward_round();
    EXPECT_EQ(take_out(), 3U);
    EXPECT_EQ(lane_->forwarder_counters().misses.get(), 3U) << one.name;
    EXPECT_EQ(lane_->forwarder_counters().misses_stalled.get(), one.excused ? 3U : 0U) << one.name;
  }
}

// As when another thread's watch is read while it counts a gap: in doubt a miss is the engine's.
TEST_F(LaneTest, AnAbsenceOfLessThanNothingExcusesNothing) {
  for (const auto before : {&Segment::lane_stalls, &Segment::worker_stalls}) {
    make({.cpu_below = 1000, .deadline_tsc = 2 * rte_get_tsc_hz(), .shares_queue = true});
    peer_.while_computing = [&](Batch& batch) { batch.segment[0].*before = UINT64_MAX / 2; };
    arrive_at(3, rte_rdtsc() - 5 * rte_get_tsc_hz());
    collect();
    lane_->forward_round();
    EXPECT_EQ(take_out(), 3U);
    EXPECT_EQ(lane_->forwarder_counters().misses.get(), 3U);
    EXPECT_EQ(lane_->forwarder_counters().misses_stalled.get(), 0U);
  }
}

// However long the machine keeps this thread besides: that is another part of the time since `begin`.
TEST_F(LaneTest, LatenessInADriversTransmitIsTheEnginesOwn) {
  const auto port = open("slow", "replay,mix=64,frames=64");
  ASSERT_TRUE(port);
  std::uint64_t stood = 0;
  port->replay()->observe([&](const rte_mbuf*) {
    const std::uint64_t from = rte_rdtsc();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stood += rte_rdtsc() - from;
  });
  make({.cpu_below = 1000, .deadline_tsc = rte_get_tsc_hz() / 100}, nullptr, port.get());
  const std::uint64_t begin = rte_rdtsc();
  stalls_.resume(begin);
  arrive(1);
  collect();
  EXPECT_EQ(lane_->forward_round(), 1U);
  stalls_.look(rte_rdtsc());
  EXPECT_EQ(lane_->forwarder_counters().misses.get(), 1U);
  EXPECT_EQ(lane_->forwarder_counters().misses_stalled.get(), 0U);
  EXPECT_LE(stalls_.ticks(), rte_rdtsc() - begin - stood);
}

}  // namespace
}  // namespace sluice::engine
