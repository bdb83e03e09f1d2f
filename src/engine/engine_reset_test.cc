// A lost GPU that comes back: what is made anew, in which order, what goes on meanwhile, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Says what happens to it.
class ComingElement : public PeerElement {
 public:
  using PeerElement::PeerElement;
  Expected<void> attach(device::Gpu& gpu, const DevicePlan& plan) override {
    if (refuses) return make_error("no memory for a test");
    calls.push_back((gpu.lost() ? "attach to a lost " : "attach ") + std::to_string(plan.device));
    return {};
  }
  void detach(std::uint32_t device) override { calls.push_back("detach " + std::to_string(device)); }
  bool can_detach() const override { return can; }
  std::vector<std::string> calls;
  bool can = true, refuses = false;
};

class EngineReset : public testing::Test {
 protected:
  void start(const std::string& device = "cuda:0", bool changes_frames = false) {
    Options options = replay_options(device);
    options.device_silence = std::chrono::milliseconds(50);
    options.batches = 4;  // half of the frames that there are
    auto made = Engine::create(
        options,
        [this](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
          auto element = std::make_unique<ComingElement>(ports);
          element_ = element.get();
          return pipeline_of(std::move(element));
        },
        [this](int, unsigned) -> Expected<std::unique_ptr<device::Gpu>> {
          auto gpu = std::make_unique<JitterGpu>(2);
          gpus_.push_back(gpu.get());
          return gpu;
        });
    ASSERT_TRUE(made) << made.error().message;
    run_.engine = std::move(*made);
    element_->changes_frames = changes_frames;
    if (!changes_frames) watch_order(run_, 1);
    engine().start();
    ASSERT_TRUE(computes());
    element_->calls.clear();
  }
  void TearDown() override {
    if (!run_.engine) return;
    engine().stop();
    EXPECT_FALSE(engine().is_stuck());
    expect_conserved(engine().stats());
    EXPECT_EQ(run_.out_of_order, 0U);
    EXPECT_EQ(element_->wrong_answers.load(), 0U);
  }
  static bool comes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  // Every GPU, from now on.
  bool computes() {
    const EngineStats before = engine().stats();
    return comes([&] {
      const EngineStats now = engine().stats();
      bool all = true;
      for (std::size_t g = 0; g < now.gpus.size(); ++g) all &= now.gpus[g].frames > before.gpus[g].frames + 5'000;
      return all;
    });
  }
  bool cores_compute() {
    const std::uint64_t before = engine().stats().total.frames_cpu;
    return comes([&] { return engine().stats().total.frames_cpu > before + 5'000; });
  }
  std::string reset(std::size_t gpu) {
    const auto done = engine().reset_device(gpu);
    return done ? "done" : done.error().message;
  }
  Engine& engine() { return *run_.engine; }

  Trial run_;
  ComingElement* element_ = nullptr;
  std::vector<JitterGpu*> gpus_;
};

TEST_F(EngineReset, AGpuThatHasFailedComesBackAndWhatIsThereBeginsAnew) {
  start();
  for (unsigned times = 1; times <= 3; ++times) {
    gpus_[0]->lose("for a test");
    ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
    ASSERT_TRUE(cores_compute());
    ASSERT_EQ(reset(0), "done");
    EXPECT_THAT(element_->calls, ElementsAre("detach 0", "attach 0"));
    element_->calls.clear();
    EXPECT_TRUE(engine().gpu_up());
    EXPECT_EQ(engine().gpu_loss(0).how(), Loss::none);
    EXPECT_EQ(engine().gpu_loss(0).why(), "");
    EXPECT_EQ(engine().gpu_clock(0).resets.load(), times);
    ASSERT_TRUE(computes());
  }
}

TEST_F(EngineReset, OneThatWasSilentComesBackOnceItsWorkHasEnded) {
  start("cuda:0", true);
  gpus_[0]->hang();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  ASSERT_TRUE(cores_compute());
  EXPECT_THAT(reset(0), HasSubstr("has not ended"));
  EXPECT_THAT(element_->calls, ElementsAre()) << "a refusal changes nothing";
  gpus_[0]->hang(false);
  ASSERT_EQ(reset(0), "done");
  EXPECT_TRUE(comes([&] { return engine().stats().total.frames_aside == 0; }));
  ASSERT_TRUE(computes());
}

TEST_F(EngineReset, OneThatRefusedALaunchComesBack) {
  start("cuda:0", true);
  gpus_[0]->refuse();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  ASSERT_EQ(reset(0), "done");
  ASSERT_TRUE(computes());
}

TEST_F(EngineReset, OneWhoseDriverHungDoesNotComeBack) {
  start();
  gpus_[0]->block();
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  engine().look_at_devices();
  EXPECT_THAT(reset(0), HasSubstr("hung"));
  gpus_[0]->block(false);
  EXPECT_THAT(reset(0), HasSubstr("hung")) << "a call may do what it was to do, late";
  EXPECT_TRUE(cores_compute());
}

TEST_F(EngineReset, WhatFailsMayBeTriedAgain) {
  start();
  gpus_[0]->lose("for a test");
  gpus_[0]->refuses_resets = 1;
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  const std::string why = engine().gpu_loss(0).why();
  EXPECT_EQ(reset(0), "no reset for a test");
  element_->refuses = true;
  EXPECT_EQ(reset(0), "no memory for a test");
  EXPECT_FALSE(engine().gpu_up());
  EXPECT_EQ(engine().gpu_loss(0).why(), why);
  EXPECT_TRUE(cores_compute());
  element_->refuses = false;
  EXPECT_EQ(reset(0), "done");
  EXPECT_TRUE(computes());
}

TEST_F(EngineReset, OnlyALostOneIsReset) {
  start();
  EXPECT_EQ(reset(0), "it is not lost");
  gpus_[0]->lose("for a test");
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(); }));
  element_->can = false;
  EXPECT_THAT(reset(0), HasSubstr("an element of the chain, number 1, cannot begin anew"));
  engine().stop();
  EXPECT_EQ(reset(0), "the engine does not run");
}

// The first one has pinned the memory of both.
TEST_F(EngineReset, LanesGoHomeWhicheverOfTwoWasLost) {
  for (const std::size_t lost : {std::size_t{1}, std::size_t{0}}) {
    gpus_.clear();
    run_.engine.reset();
    start("cuda:0,cuda:1");
    gpus_[lost]->lose("for a test");
    ASSERT_TRUE(comes([&] {
      return std::ranges::all_of(engine().stats().lanes, [&](const auto& lane) { return lane.device == 1 - lost; });
    }));
    ASSERT_EQ(reset(lost), "done");
    ASSERT_TRUE(computes());
    const EngineStats stats = engine().stats();
    EXPECT_EQ(stats.gpus_up, (std::vector<bool>{true, true}));
    EXPECT_EQ(stats.lanes[0].device, 0U);
    EXPECT_EQ(stats.lanes[1].device, 1U);
    EXPECT_EQ(engine().gpu_clock(0).lanes.load(), 1U);
    EXPECT_EQ(engine().gpu_clock(1).lanes.load(), 1U);
    EXPECT_FALSE(gpus_[1 - lost]->lost());
    EXPECT_THAT(element_->calls, ElementsAre("detach " + std::to_string(lost), "attach " + std::to_string(lost)));
  }
}

// What one has registered is gone with its context, whether it gets a new one or not.
TEST_F(EngineReset, AFailedResetOfTheFirstLeavesTheOthersTheirMemory) {
  start("cuda:0,cuda:1");
  const std::size_t areas = gpus_[0]->registered;
  EXPECT_GT(areas, 0U);
  EXPECT_EQ(gpus_[1]->registered, 0U);
  gpus_[0]->lose("for a test");
  gpus_[0]->refuses_resets = 1;
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(0); }));
  EXPECT_EQ(reset(0), "no reset for a test");
  EXPECT_EQ(gpus_[1]->registered, areas);
  EXPECT_TRUE(engine().gpu_up(1));
  const std::uint64_t before = engine().stats().gpus[1].frames;
  EXPECT_TRUE(comes([&] { return engine().stats().gpus[1].frames > before + 5'000; }));
  EXPECT_EQ(reset(0), "done");
  EXPECT_EQ(gpus_[0]->registered, 0U) << "the other one has it";
  EXPECT_TRUE(computes());
}

TEST_F(EngineReset, WhereMemoryCannotBePinnedForTheOthersTheyAreLost) {
  start("cuda:0,cuda:1");
  gpus_[0]->lose("for a test");
  gpus_[0]->refuses_resets = 1;
  gpus_[1]->refuses_memory = true;
  ASSERT_TRUE(comes([&] { return !engine().gpu_up(0); }));
  EXPECT_EQ(reset(0), "no reset for a test");
  EXPECT_TRUE(comes([&] { return !engine().gpu_up(1); }));
  EXPECT_TRUE(cores_compute());
  gpus_[1]->refuses_memory = false;
  EXPECT_EQ(reset(1), "done");
  EXPECT_EQ(reset(0), "done");
  EXPECT_TRUE(computes());
}

// A worker's streams are full, or it does not run, when the lane goes home.
TEST_F(EngineReset, WhatALaneLeftSealedForAnotherGpuGoesOn) {
  for (unsigned times = 0; times < 5; ++times) {
    gpus_.clear();
    run_.engine.reset();
    start("cuda:0,cuda:1");
    gpus_[1]->lose("for a test");
    ASSERT_TRUE(comes([&] {
      return std::ranges::all_of(engine().stats().lanes, [&](const auto& lane) { return lane.device == 0; });
    }));
    gpus_[0]->block();  // its worker takes nothing
    ASSERT_EQ(reset(1), "done");
    gpus_[0]->block(false);
    ASSERT_TRUE(computes()) << times;
  }
}

}  // namespace
}  // namespace sluice::engine
