// Pipelines of several passes, on lanes that are driven by hand and on engines; and engines with two devices.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/lane_trial_test.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

const packet::Reason every_other = packet::register_reason("passes_test", "for a test");

struct PassTraits {
  bool drops = false;  // every other row
};

// An element with device work on payloads, which counts rows that its device work has not been through.
class PassElement : public Element {
 public:
  PassElement(Payloads payloads, PassTraits traits) : payloads_(payloads), traits_(traits) {}
  Shape shape() const override { return {.bytes_per_frame = 4, .payloads = payloads_, .on_device = true}; }
  void classify(Batch& batch, Span span) override { set(batch, span, 1); }
  Expected<void> launch(Batch& batch, device::GpuStream&) override {
    set(batch, {0, batch.count}, 2);
    return {};
  }
  void compute(Batch& batch, Span span) override { set(batch, span, 2); }
  void apply(Batch& batch, Span span, Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      wrong.fetch_add(of(batch)[i] != 2);
      if (traits_.drops && i % 2 == 0) batch.drop(i, every_other);
    }
  }
  std::atomic<std::uint64_t> wrong{0};

 private:
  std::uint32_t* of(const Batch& batch) const { return reinterpret_cast<std::uint32_t*>(area(batch)); }
  void set(const Batch& batch, Span span, std::uint32_t value) const {
    for (std::uint32_t i = span.first; i < span.end(); ++i) of(batch)[i] = value;
  }
  const Payloads payloads_;
  const PassTraits traits_;
};

// Passes: `count` elements that change and read in turn, the last one with what follows.
std::vector<std::unique_ptr<Element>> passes_of(unsigned count, PassTraits traits = {}) {
  std::vector<std::unique_ptr<Element>> elements;
  for (unsigned pass = 0; pass < count; ++pass) {
    elements.push_back(std::make_unique<PassElement>(pass % 2 == 0 ? Payloads::changed : Payloads::read, traits));
    traits = {};
  }
  return elements;
}

class PassesTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    auto elements = passes_of(2, traits_);
    elements.push_back(std::make_unique<WatchedElement>(peer_));
    return std::make_unique<Pipeline>(std::move(elements));
  }
  PassTraits traits_;
};

TEST_F(PassesTest, WhatGoesOnIsABatchOfTheNextPass) {
  for (const bool drops : {false, true}) {
    traits_.drops = drops;
    make({});
    time_point();
    arrived_ = left_ = 0;
    arrive(10);
    collect();
    time_point();
    Batch* const first = sealed(0);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(sealed(1), nullptr);
    finish(*first);
    EXPECT_EQ(lane_->forward_round(), 1U);
    EXPECT_EQ(take_out(), 0U);
    Batch* const second = sealed(1);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->count, drops ? 5U : 10U);
    EXPECT_EQ(lane_->in_flight(), second->count);
    EXPECT_EQ(lane_->forwarder_counters().measured.get(), 10U - second->count);
    finish(*second);
    if (drops) arrived_ = 0;  // take_out() knows an order without gaps alone
    EXPECT_EQ(lane_->forward_round(), 1U);
    EXPECT_EQ(take_out(), drops ? 5U : 10U);
    EXPECT_EQ(lane_->forwarder_counters().measured.get(), 10U) << "each once";
    EXPECT_EQ(LaneTest::drops(every_other), drops ? 5U : 0U);
    EXPECT_EQ(lane_->in_flight(), 0U);
  }
}

std::unique_ptr<Engine> engine_of(unsigned passes, const Options& options, unsigned gpus,
                                  std::vector<JitterGpu*>* handles = nullptr) {
  auto engine = Engine::create(
      options,
      [&](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
        auto elements = passes_of(passes);
        elements.push_back(std::make_unique<PeerElement>(ports));
        return std::make_unique<Pipeline>(std::move(elements));
      },
      [&](int index, unsigned streams) -> Expected<std::unique_ptr<device::Gpu>> {
        if (index >= static_cast<int>(gpus)) return make_error("there is no such GPU");
        auto gpu = std::make_unique<JitterGpu>(streams);
        if (handles != nullptr) handles->push_back(gpu.get());
        return gpu;
      });
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(*engine) : nullptr;
}

void expect_all_sent(const Trial& run) {
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
  EXPECT_EQ(stats.total.measured, stats.total.rx_frames);
  EXPECT_EQ(stats.latency.total(), stats.total.measured);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
  for (const auto& element : run.engine->pipeline().elements()) {
    if (const auto* const pass = dynamic_cast<const PassElement*>(element.get())) {
      EXPECT_EQ(pass->wrong.load(), 0U);
    }
  }
}

TEST(EnginePasses, FramesGoThroughAllOfThemInOrder) {
  for (const unsigned passes : {2U, 3U}) {
    for (const bool on_gpu : {false, true}) {
      SCOPED_TRACE(std::to_string(passes) + (on_gpu ? " on a GPU" : " on the CPU"));
      Trial run{engine_of(passes, replay_options(on_gpu ? "cuda:0" : "cpu"), 1)};
      ASSERT_TRUE(run.engine);
      ASSERT_EQ(run.engine->pipeline().passes(), passes);
      watch_order(run, 1);
      run_for(*run.engine, std::chrono::milliseconds(200));
      expect_all_sent(run);
    }
  }
}

TEST(EnginePasses, AFailingGpuCostsNoFrame) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_of(2, replay_options("cuda:0"), 1, &gpus)};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  gpus[0]->lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  EXPECT_GT(run.engine->stats().total.batches_rescued, 0U);
  expect_all_sent(run);
}

// What one thread collects another one takes through both passes.
TEST(EnginePasses, ForwardersTakeFramesThroughThem) {
  const AllCores cores;
  if (cores.count() < 2) GTEST_SKIP() << "one core";
  for (const bool on_gpu : {false, true}) {
    SCOPED_TRACE(on_gpu ? "GPU" : "CPU");
    Options options = replay_options(on_gpu ? "cuda:0" : "cpu");
    options.poll = Poll::adaptive;
    options.forwarder_cores = {cores.first()};
    Trial run{engine_of(2, options, 1)};
    ASSERT_TRUE(run.engine);
    watch_order(run, 1);
    run_for(*run.engine, std::chrono::milliseconds(200));
    expect_all_sent(run);
  }
}

TEST(EngineDevices, TwoTakeBatchesOfSeveralPasses) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_of(3, replay_options("cuda:0,cuda:1"), 2, &gpus)};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  gpus[0]->lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  EXPECT_EQ(peer_of(*run.engine).devices_used.load(), 3U);
  expect_all_sent(run);
}

TEST(EngineDevices, ADeviceWithoutALaneIsRefused) {
  Options options = replay_options("cuda:0,cuda:1,cuda:2");
  const auto no_pipeline = [](const PortTable&) -> Expected<std::unique_ptr<Pipeline>> {
    return make_error("not asked");
  };
  const auto no_gpu = [](int, unsigned) -> Expected<std::unique_ptr<device::Gpu>> { return make_error("not asked"); };
  const auto engine = Engine::create(options, no_pipeline, no_gpu);
  const auto checked = check_placement(options);
  ASSERT_FALSE(checked);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message, checked.error().message);
  EXPECT_EQ(checked.error().message,
            "[engine] device = \"cuda:0,cuda:1,cuda:2\": 3 GPUs for 2 lanes, and one without a lane has no work: name "
            "fewer, or raise lanes of a port");
}

// Their batches that it keeps are computed by cores, in order, and they go on with the other one.
TEST(EngineDevices, LanesOfOneThatDoesNotAnswerGoToTheOther) {
  for (const bool blocks : {false, true}) {
    SCOPED_TRACE(blocks ? "its driver" : "its kernel");
    std::vector<JitterGpu*> gpus;
    Options options = replay_options("cuda:0,cuda:1");
    options.device_silence = std::chrono::milliseconds(20);
    Trial run{engine_of(0, options, 2, &gpus)};
    ASSERT_TRUE(run.engine);
    watch_order(run, 1);
    run.engine->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    blocks ? gpus[0]->block() : gpus[0]->hang();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto comes = [&](const auto& condition) {
      while (!condition(run.engine->stats()) && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return condition(run.engine->stats());
    };
    EXPECT_TRUE(comes([](const EngineStats& stats) { return !stats.gpus_up[0]; }));
    const EngineStats then = run.engine->stats();
    EXPECT_TRUE(comes([&](const EngineStats& stats) {
      return std::ranges::all_of(stats.lanes, [](const EngineStats::Lane& lane) { return lane.device == 1; }) &&
             stats.lanes[0].frames_gpu > then.lanes[0].frames_gpu + 1'000 &&
             stats.gpus[1].frames > then.gpus[1].frames + 1'000;
    }));
    EXPECT_GT(run.engine->stats().total.batches_rescued, 0U);
    gpus[0]->hang(false);
    gpus[0]->block(false);
    EXPECT_TRUE(comes(
        [&](const EngineStats&) { return run.engine->gpu_loss(0).how() == (blocks ? Loss::hung : Loss::silent); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run.engine->stop();
    EXPECT_FALSE(run.engine->is_stuck());
    expect_all_sent(run);
  }
}

TEST(EngineDevices, TwoTakeBatchesAndOneGoesOnWithoutTheOther) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_of(1, replay_options("cuda:0,cuda:1"), 2, &gpus)};
  ASSERT_TRUE(run.engine);
  ASSERT_EQ(gpus.size(), 2U);
  watch_order(run, 1);
  run.engine->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(run.engine->stats().gpu_up);
  EXPECT_EQ(peer_of(*run.engine).devices_used.load(), 3U);
  gpus[1]->lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const EngineStats then = run.engine->stats();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const EngineStats stats = run.engine->stats();
  EXPECT_FALSE(stats.gpu_up);
  EXPECT_EQ(stats.gpus_up, (std::vector<bool>{true, false}));
  for (const EngineStats::Gpu& gpu : stats.gpus) EXPECT_GT(gpu.frames, 0U);
  EXPECT_EQ(stats.gpus[1].frames, then.gpus[1].frames);
  // The lanes of the lost one are the other one's.
  for (std::size_t l = 0; l < stats.lanes.size(); ++l) {
    EXPECT_EQ(stats.lanes[l].device, 0U);
    EXPECT_GT(stats.lanes[l].frames_gpu, then.lanes[l].frames_gpu);
  }
  EXPECT_FALSE(gpus[0]->lost());
  run.engine->stop();
  expect_all_sent(run);
}

}  // namespace
}  // namespace sluice::engine
