#include "engine/bound.h"

#include <gtest/gtest.h>

#include "port/virtual_device.h"

namespace sluice::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Bound, IsTheoremOneForOverlapOne) {
  const auto timing = plan_timing(milliseconds(1), microseconds(300), 1);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->bound, 3 * microseconds(300) + collect_time);
}

TEST(Bound, ChosenCycleFitsItsDeadline) {
  for (const unsigned overlap : {1U, 2U, 4U, 8U}) {
    for (const auto deadline : {milliseconds(1), milliseconds(5), milliseconds(80)}) {
      const auto timing = plan_timing(deadline, std::chrono::nanoseconds(0), overlap);
      ASSERT_TRUE(timing);
      EXPECT_LE(timing->bound, deadline);
      EXPECT_GT(timing->bound, deadline * 8 / 10);
    }
  }
}

TEST(Bound, RefusesWhatCannotHold) {
  EXPECT_FALSE(plan_timing(milliseconds(1), microseconds(340), 1));
  EXPECT_TRUE(plan_timing(milliseconds(1), microseconds(330), 1));
  const auto timing = plan_timing(microseconds(50), std::chrono::nanoseconds(0), 1);
  ASSERT_FALSE(timing);
  EXPECT_NE(timing.error().message.find("raise the deadline to at least 78us"), std::string::npos)
      << timing.error().message;
  EXPECT_TRUE(plan_timing(microseconds(78), std::chrono::nanoseconds(0), 1));
}

TEST(Bound, ContainsWhatCollectingTakes) {
  EXPECT_EQ(collect_time_of(std::chrono::nanoseconds(0)), collect_time);
  EXPECT_EQ(collect_time_of(std::chrono::nanoseconds(26'880)), 3 * std::chrono::nanoseconds(28'160));
  EXPECT_EQ(plan_timing(milliseconds(1), microseconds(300), 1, {}, microseconds(84))->bound, microseconds(984));
  const auto refused = plan_timing(milliseconds(1), microseconds(310), 1, {}, microseconds(84));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("(2 + overlap)*cycle + 84us = 1014us"), std::string::npos)
      << refused.error().message;
  Options options;
  options.poll = Poll::busy;
  options.cycle = microseconds(300);
  EXPECT_EQ(plan_timing(options, true)->bound, microseconds(910));
  options.collect = microseconds(84);
  EXPECT_EQ(plan_timing(options, true)->bound, microseconds(984));
}

TEST(Bound, HasASleepWhereAPortIsLookedAt) {
  port::register_virtual_device("bound-test-tunnel");
  const auto sleep_with = [](const std::string& device) {
    Options options;
    options.poll = Poll::adaptive;
    for (const std::string& one : {std::string("net_af_packet0,iface=a"), device}) {
      options.ports.emplace_back().device = one;
    }
    return plan_timing(options, false)->sleep;
  };
  EXPECT_EQ(sleep_with("net_af_packet1,iface=b").count(), 0);
  EXPECT_EQ(sleep_with("net_memif0"), longest_lane_sleep(Options().deadline));
  EXPECT_EQ(sleep_with("bound-test-tunnel").count(), 0) << "nothing is received from it";
}

TEST(Bound, EachFurtherPassAddsItsTimeOnTheDeviceAndACycle) {
  for (const unsigned overlap : {1U, 2U}) {
    for (const unsigned passes : {1U, 2U, 3U}) {
      const auto timing = plan_timing(milliseconds(1), microseconds(50), overlap, {}, microseconds(20), passes);
      ASSERT_TRUE(timing) << timing.error().message;
      EXPECT_EQ(timing->bound, (2 + overlap + (passes - 1) * (1 + overlap)) * microseconds(50) + microseconds(20));
    }
  }
  EXPECT_EQ(bound_text(1, 1), "(2 + 1)");
  EXPECT_EQ(bound_text(1, 2), "(2 + 1 + 1*(1 + 1))");
  const auto refused = plan_timing(milliseconds(1), microseconds(200), 1, {}, microseconds(20), 2);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the cycle can be 196us at most"), std::string::npos)
      << refused.error().message;
  Options options;
  options.poll = Poll::busy;
  options.cycle = microseconds(100);
  options.passes = 2;
  EXPECT_EQ(plan_timing(options, true)->bound, microseconds(510));
}

TEST(Bound, JobsHaveASixteenthOfEachCycleBesides) {
  const auto plain = plan_timing(milliseconds(1), microseconds(160), 1);
  const auto jobs = plan_timing(milliseconds(1), microseconds(160), 1, {}, collect_time, 1, true);
  ASSERT_TRUE(plain && jobs);
  EXPECT_EQ(plain->jobs.count(), 0);
  EXPECT_EQ(plain->on_device(), microseconds(160));
  EXPECT_EQ(jobs->jobs, microseconds(10));
  EXPECT_EQ(jobs->bound, plain->bound + microseconds(30));
  EXPECT_EQ(jobs->on_device(), microseconds(180));
  EXPECT_EQ(bound_text(1, 1, true), "(2 + 1 + 3/16)");
  EXPECT_EQ(bound_text(2, 2, true), "(2 + 2 + 1*(1 + 2) + 7/16)");
  const auto chosen = plan_timing(milliseconds(1), {}, 1, {}, collect_time, 1, true);
  ASSERT_TRUE(chosen);
  EXPECT_LE(chosen->bound, microseconds(900));
  EXPECT_GT(chosen->bound, microseconds(899));
  EXPECT_FALSE(plan_timing(milliseconds(1), microseconds(320), 1, {}, collect_time, 1, true));
  EXPECT_TRUE(plan_timing(milliseconds(1), microseconds(320), 1));
}

TEST(Bound, ForwardersHaveToKeepUp) {
  const struct {
    unsigned forwarding;
    bool own_thread, holds;
  } cases[] = {{300, true, true}, {301, true, false}, {100, false, true}, {101, false, false}};
  for (const auto& one : cases) {
    EXPECT_EQ(forwards_in_time(microseconds(one.forwarding), microseconds(300), one.own_thread), one.holds)
        << one.forwarding;
  }
}

TEST(Bound, ContainsTheSleepOfALane) {
  EXPECT_EQ(longest_lane_sleep(milliseconds(1)), microseconds(250));
  EXPECT_EQ(longest_lane_sleep(milliseconds(50)), milliseconds(2));
  EXPECT_EQ(longest_lane_sleep(microseconds(20)), microseconds(10));
  const auto timing = plan_timing(milliseconds(1), microseconds(240), 1, microseconds(250));
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->bound, 3 * microseconds(240) + collect_time + microseconds(250));
  const auto refused = plan_timing(milliseconds(1), microseconds(300), 1, microseconds(250));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("+ 250us of sleep = 1160us"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("cycle can be 246us at most, or set poll = \"busy\""), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(plan_timing(milliseconds(1), microseconds(246), 1, microseconds(250)));
}

TEST(Bound, TheDeadlineThatARefusalNamesIsAccepted) {
  for (const unsigned overlap : {1U, 2U, 4U, 8U}) {
    for (const bool sleeps : {false, true}) {
      const auto plan = [&](std::chrono::nanoseconds deadline) {
        return plan_timing(deadline, {}, overlap, sleeps ? longest_lane_sleep(deadline) : std::chrono::nanoseconds(0));
      };
      const auto refused = plan(microseconds(60));
      ASSERT_FALSE(refused);
      const std::string& message = refused.error().message;
      const std::size_t at = message.find("at least ");
      ASSERT_NE(at, std::string::npos) << message;
      EXPECT_TRUE(plan(microseconds(std::stol(message.substr(at + 9))))) << message;
    }
  }
}

TEST(Bound, OfTheCpuIsTheSleepAndABatch) {
  const std::chrono::nanoseconds never(0);
  const auto timing = plan_cpu_timing(milliseconds(1), microseconds(250));
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->bound, inline_batch_time + microseconds(250));
  EXPECT_EQ(timing->cycle, never);
  EXPECT_TRUE(plan_cpu_timing(inline_batch_time, never));
  EXPECT_FALSE(plan_cpu_timing(inline_batch_time - std::chrono::nanoseconds(1), never));
  EXPECT_TRUE(plan_cpu_timing(microseconds(67), longest_lane_sleep(microseconds(67))));
  const auto refused = plan_cpu_timing(std::chrono::nanoseconds(1), longest_lane_sleep(std::chrono::nanoseconds(1)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "[engine] the bound of this configuration on the CPU, 50us of a batch + 10us of sleep = 60us, exceeds its "
            "deadline of 1ns: raise the deadline to at least 67us, or set poll = \"busy\"");
}

// Before ports are open their devices' names say which of them can wake a lane.
TEST(Bound, OfOptionsCountsSleepWhereAPortCannotWakeItsLane) {
  Options options;
  options.ports.resize(2);
  options.ports[0].device = "net_af_packet0,iface=a";
  options.ports[1].device = "net_tap0";
  options.poll = Poll::adaptive;
  EXPECT_EQ(plan_timing(options, false)->bound, inline_batch_time);
  options.ports[1].device = "net_memif0";
  EXPECT_EQ(plan_timing(options, false)->bound, inline_batch_time + microseconds(250));
  EXPECT_EQ(plan_timing(options, true)->sleep, microseconds(250));
  EXPECT_LE(plan_timing(options, true)->bound, options.deadline);
  options.poll = Poll::busy;
  EXPECT_EQ(plan_timing(options, false)->bound, inline_batch_time);
  EXPECT_EQ(plan_timing(options, true)->sleep.count(), 0);
}

}  // namespace
}  // namespace sluice::engine
