// A GPU that fails, refuses, hangs or is not ready yet: no frame is lost but under a name, and the CPU takes over.
#include <gtest/gtest.h>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

TEST(Engine, StaggersItsLanesOnAGpuAlone) {
  Options options = replay_options("cuda:0");
  for (const Stagger stagger : {Stagger::on, Stagger::off, Stagger::automatic}) {
    options.stagger = stagger;
    options.device = "cuda:0";
    const Trial on_gpu{make_engine(options, std::make_unique<JitterGpu>(1))};
    ASSERT_TRUE(on_gpu.engine);
    EXPECT_EQ(on_gpu.engine->timing().stagger, stagger == Stagger::on) << "this chain does not ask for it";
  }
  options.stagger = Stagger::on;
  options.device = "cpu";
  const Trial on_cpu{make_engine(options)};
  ASSERT_TRUE(on_cpu.engine);
  EXPECT_FALSE(on_cpu.engine->timing().stagger);
}

TEST(Engine, AFailingGpuCostsNoFrame) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(run.engine->stats().gpu_up);
  EXPECT_EQ(peer_of(*run.engine).devices_gone.load(), 1U) << "what waits for it has to know";
  const std::uint64_t then = run.engine->stats().total.tx_frames;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.total.tx_frames, then);
  EXPECT_GT(stats.total.batches_rescued, 0U);
  EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
}

// What the worker alone sees: without lose() the tables would wait for that GPU for ever.
TEST(Engine, AGpuThatRefusesALaunchIsLostForEverybody) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.refuse();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(run.engine->stats().gpu_up);
  EXPECT_TRUE(handle.lost());
  run.engine->stop();
  EXPECT_FALSE(run.engine->stats().gpu_up);
  expect_conserved(run.engine->stats());
}

// A device that has still to be set up is no device yet: lanes compute, and no frame waits.
TEST(Engine, AGpuTakesPartWhenTheElementSaysSo) {
  Trial run{make_engine(replay_options("cuda:0"), std::make_unique<JitterGpu>(2))};
  ASSERT_TRUE(run.engine);
  auto& peer = peer_of(*run.engine);
  peer.ready.store(false);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const EngineStats before = run.engine->stats();
  EXPECT_FALSE(before.gpu_up);
  EXPECT_EQ(before.total.frames_gpu, 0U);
  EXPECT_GT(before.total.frames_cpu, 0U);
  peer.ready.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(run.engine->stats().gpu_up);
  run.engine->stop();
  EXPECT_TRUE(run.engine->stats().gpu_up) << "a run that ends has not lost its device";
  EXPECT_GT(run.engine->stats().total.frames_gpu, 0U);
  expect_conserved(run.engine->stats());
}

// An element that changes frames cannot do it twice: what a failing device had begun is dropped under a name.
TEST(Engine, WhatAFailingGpuHalfDidIsDroppedWhenItCannotBeDoneAgain) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  peer_of(*run.engine).changes_frames = true;
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.drops[device_lost], 0U);
  EXPECT_EQ(stats.total.dropped, stats.drops[device_lost]);
  EXPECT_GT(stats.total.frames_cpu, 0U);
}

TEST(Engine, WhatWasLaunchedBeforeARefusedLaunchIsWaitedFor) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  peer_of(*run.engine).changes_frames = true;
  watch_order(run, 1);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.refuse();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_FALSE(stats.gpu_up);
  // Only what was to be launched together and failed is in doubt.
  EXPECT_GT(stats.drops[device_lost], 0U);
  EXPECT_LE(stats.drops[device_lost], most_together * run.engine->options().batch);
}

// 100 frames of a cycle are fewer than 256, but the core would need more than half of the cycle, or more than all of
// it.
TEST(Engine, FewFramesThatKeepACoreBusyGoToTheDevice) {
  struct Case {
    std::uint64_t computing, forwarding;  // ns a frame
    bool on_device;
  };
  for (const Case& one : {Case{100'000, 0, true}, Case{0, 50'000, true}, Case{2'000, 2'000, false}}) {
    Options options = replay_options("cuda:0");
    options.cpu_below = -1;
    options.ports.resize(1);
    options.ports[0].device += ",rate=15000";
    Trial run{make_engine(options, std::make_unique<JitterGpu>(2))};
    ASSERT_TRUE(run.engine);
    auto& peer = peer_of(*run.engine);
    peer.core_ticks_per_frame = one.computing * rte_get_tsc_hz() / 1'000'000'000;
    peer.forwarding_ticks_per_frame = one.forwarding * rte_get_tsc_hz() / 1'000'000'000;
    run.engine->start();
    // A thread that the machine does not run makes frames dear: so it is right now and then, not always.
    std::uint64_t parts = 0, right = 0;
    for (; parts < 60 && right < 2; ++parts) {
      const EngineStats before = run.engine->stats();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const EngineStats after = run.engine->stats();
      const std::uint64_t frames = after.total.rx_frames - before.total.rx_frames;
      const std::uint64_t there = after.total.frames_gpu - before.total.frames_gpu;
      right += frames > 1'000 && (one.on_device ? there * 10 > frames * 7 : there * 10 < frames * 3) ? 1 : 0;
    }
    run.engine->stop();
    EXPECT_EQ(run.engine->stats().imbalance(), 0);
    EXPECT_EQ(right, 2U) << "in " << parts << " parts: " << one.computing << ' ' << one.forwarding;
  }
}

}  // namespace
}  // namespace sluice::engine
