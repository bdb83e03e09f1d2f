// A GPU whose work does not end, or in whose driver a call hangs: noticed in time, nothing is written to that it may
// still write to, frames go on in order, and stopping waits for neither.
#include <gtest/gtest.h>

#include <functional>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

class EngineLoss : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds limit{50};

  void start(bool changes_frames = false) {
    Options options = replay_options("cuda:0");
    options.device_silence = limit;
    options.batches = 4;  // half of the frames that there are
    auto gpu = std::make_unique<JitterGpu>(2);
    gpu_ = gpu.get();
    run_.engine = make_engine(options, std::move(gpu));
    ASSERT_TRUE(run_.engine);
    peer_of(engine()).changes_frames = changes_frames;
    if (!changes_frames) watch_order(run_, 1);
    engine().start();
    ASSERT_TRUE(comes([&] { return engine().stats().total.frames_gpu > 10'000; }));
  }
  // The device answers again.
  void TearDown() override {
    if (!run_.engine) return;
    gpu_->hang(false);
    gpu_->block(false);
    EXPECT_TRUE(comes([&] { return engine().stats().total.frames_aside == 0; }));
    engine().stop();
    EXPECT_FALSE(engine().is_stuck());
    expect_conserved(engine().stats());
    EXPECT_EQ(run_.out_of_order, 0U);
    EXPECT_EQ(peer_of(engine()).wrong_answers.load(), 0U);
  }
  static bool comes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  void expect_lanes_compute() {
    const std::uint64_t sent = engine().stats().total.tx_frames;
    EXPECT_TRUE(comes([&] { return engine().stats().total.tx_frames > sent + 10'000; }));
  }
  Engine& engine() { return *run_.engine; }

  Trial run_;
  JitterGpu* gpu_ = nullptr;
};

TEST_F(EngineLoss, AKernelThatNeverEndsIsGivenUp) {
  start();
  gpu_->hang();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  EXPECT_EQ(engine().gpu_loss(0).how(), Loss::silent);
  EXPECT_NE(engine().gpu_loss(0).why().find("50ms"), std::string::npos) << engine().gpu_loss(0).why();
  expect_lanes_compute();
  EXPECT_TRUE(comes([&] { return gpu_->gone() == device::Gone::silent; }));
  EXPECT_EQ(peer_of(engine()).devices_gone.load(), 1U);
  const EngineStats stats = engine().stats();
  EXPECT_GT(stats.total.batches_rescued, 0U);
  EXPECT_EQ(stats.total.dropped, 0U) << "all of them can be computed again";
  EXPECT_EQ(stats.total.frames_aside, 0U) << "the device only reads them";
  EXPECT_GT(stats.total.longest_rescue, rte_get_tsc_hz() / 1000);
}

// They are under a name, and their buffers come back when the device is done with them.
TEST_F(EngineLoss, FramesThatAKernelMayStillWriteToAreKeptAside) {
  start(true);
  gpu_->hang();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  ASSERT_TRUE(comes([&] { return engine().stats().total.frames_aside != 0; }));
  expect_lanes_compute();
  const EngineStats stats = engine().stats();
  EXPECT_EQ(stats.total.frames_aside, stats.drops[device_lost]);
  EXPECT_EQ(stats.total.dropped, stats.drops[device_lost]);
}

// No worker says so: the lanes see it.
TEST_F(EngineLoss, ACallOfTheDriverThatHangsIsSeenByTheLanes) {
  start();
  gpu_->block();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  EXPECT_EQ(engine().gpu_loss(0).how(), Loss::hung);
  expect_lanes_compute();
  EXPECT_FALSE(gpu_->lost());
  engine().look_at_devices();
  EXPECT_TRUE(gpu_->lost()) << "what waits for its tables has to know";
  EXPECT_EQ(gpu_->gone(), device::Gone::hangs);
  EXPECT_EQ(engine().stats().total.dropped, 0U);
}

TEST_F(EngineLoss, AWorkerThatComesBackFromItsDriverTouchesNothing) {
  start(true);
  gpu_->block();
  ASSERT_TRUE(comes([&] { return engine().stats().total.frames_aside != 0; }));
  gpu_->block(false);
  EXPECT_TRUE(comes([&] { return engine().stats().total.frames_aside == 0; }));
  EXPECT_FALSE(engine().gpu_up());
  EXPECT_EQ(engine().gpu_loss(0).how(), Loss::hung);
  expect_lanes_compute();
}

// Of a GPU that answers, an error stays an error.
TEST_F(EngineLoss, WhatAnswersIsNotPutAside) {
  start(true);
  gpu_->lose("for a test");
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  EXPECT_EQ(engine().gpu_loss(0).how(), Loss::failed);
  EXPECT_FALSE(engine().gpu_loss(0).why().empty());
  expect_lanes_compute();
  EXPECT_EQ(engine().stats().total.frames_aside, 0U);
}

}  // namespace
}  // namespace sluice::engine
