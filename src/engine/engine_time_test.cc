// The engine and time: bounds and deadlines, whose lateness it is, sleeping, and what a low load costs.
#include <gtest/gtest.h>

#include <string>

#include "../tests/support/gpu.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

// That of a machine that is busy as well: more of it changes nothing here.
TEST(Engine, LatenessWithinASchedulingStallIsDistinguished) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::milliseconds(10);
  options.ports[0].device += ",rate=20000";
  options.ports[1].device += ",rate=20000";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  auto& peer = peer_of(*run.engine);
  peer.stands_still = true;
  run_for(*run.engine, std::chrono::milliseconds(300));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.total.misses_stalled, 0U);
  EXPECT_LE(stats.total.misses_stalled, stats.total.misses);
  EXPECT_GE(stats.lanes_stalls.longest, static_cast<std::uint64_t>(29e6 * run.engine->tsc_per_ns()));
}

TEST(Engine, OfferedRateIsKeptAndALowLoadStaysOnTheCore) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Options options = replay_options("cuda:0");
  options.cpu_below = -1;
  options.ports[0].device += ",rate=5000";
  options.ports[1].device += ",rate=5000";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  run_for(*run.engine, std::chrono::milliseconds(500));
  const EngineStats stats = run.engine->stats();
  EXPECT_NEAR(static_cast<double>(stats.total.rx_frames), 5000.0, 2000.0);
  // A machine that keeps the lane from running makes it catch up in a larger batch now and then.
  EXPECT_LT(stats.total.frames_gpu * 4, stats.total.rx_frames);
  EXPECT_EQ(stats.imbalance(), 0);
}

// What lanes have worked is less than all the time there was, and more for more frames; polls in vain are no work.
TEST(Engine, LanesReportHowLongTheyWorked) {
  const auto run_at = [](const char* rate) {
    Options options = replay_options("cpu");
    options.poll = Poll::busy;
    for (PortOptions& port : options.ports) port.device += rate;
    Trial run{make_engine(options)};
    EXPECT_TRUE(run.engine);
    const auto begin = std::chrono::steady_clock::now();
    run_for(*run.engine, std::chrono::milliseconds(200));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const EngineStats stats = run.engine->stats();
    const auto worked = static_cast<double>(stats.total.collecting + stats.total.forwarding);
    EXPECT_GT(stats.total.collecting, 0U);
    EXPECT_GT(stats.total.forwarding, 0U);
    return worked / (1e9 * run.engine->tsc_per_ns() * spent.count() * static_cast<double>(stats.lanes.size()));
  };
  const double little = run_at(",rate=2000"), all = run_at("");
  EXPECT_LT(little, 0.3);
  EXPECT_GT(all, little);
  EXPECT_LE(all, 1.0);
}

// A replay port cannot wake its lane, which finds the frame after its sleep.
TEST(Engine, ALaneThatSleepsKeepsAShortDeadline) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::milliseconds(1);
  options.poll = Poll::adaptive;
  for (PortOptions& port : options.ports) {
    port.device += ",rate=20";
  }
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  EXPECT_EQ(run.engine->timing().sleep, longest_lane_sleep(options.deadline));
  EXPECT_EQ(run.engine->timing().bound, inline_batch_time + longest_lane_sleep(options.deadline));
  run_for(*run.engine, std::chrono::milliseconds(1500));
  const EngineStats stats = run.engine->stats();
  EXPECT_GT(stats.total.rx_frames, 30U);
  // The machine may wake a thread late; most frames are far from their deadline.
  const double half_ns = static_cast<double>(stats.latency.percentile(0.5)) / run.engine->tsc_per_ns();
  EXPECT_LT(half_ns, 5e5);
}

TEST(Engine, RefusesADeadlineThatTheCpuCannotKeep) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::nanoseconds(1);
  const auto engine = Engine::create(options, [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
    return pipeline_of(std::make_unique<PeerElement>(ports));
  });
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("on the CPU"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("exceeds its deadline of 1ns"), std::string::npos) << engine.error().message;
}

TEST(Engine, FallingBackToTheCpuSaysItsBound) {
  Options options = replay_options("auto");
  options.poll = Poll::busy;
  const auto engine = Engine::create(
      options,
      [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
        return pipeline_of(std::make_unique<PeerElement>(ports));
      },
      [](int, unsigned) -> Expected<std::unique_ptr<device::Gpu>> { return make_error("there is none"); });
  ASSERT_TRUE(engine) << engine.error().message;
  std::string notes;
  for (const std::string& note : (*engine)->notes()) {
    notes += note + "\n";
  }
  EXPECT_NE(notes.find("device: CPU, because there is none\n"), std::string::npos) << notes;
  EXPECT_NE(notes.find("50.0 us of a batch = 50.0 us; deadline 20000.0 us\n"), std::string::npos) << notes;
}

TEST(Engine, RefusesABoundBeyondItsDeadline) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Options options = replay_options("cuda:0");
  options.deadline = std::chrono::milliseconds(1);
  options.cycle = std::chrono::microseconds(400);
  options.poll = Poll::busy;
  const auto engine = Engine::create(options, [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
    return pipeline_of(std::make_unique<PeerElement>(ports));
  });
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("exceeds its deadline"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("cycle can be 330us"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace sluice::engine
