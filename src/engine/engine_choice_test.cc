// Lanes that choose between their cores and a GPU: end to end, with frames in order wherever they were computed.
#include <gtest/gtest.h>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

constexpr std::chrono::seconds patience(20);

class Choosing : public testing::Test {
 protected:
  // Frames take so long on a core, and no time on the GPU.
  void start(std::uint64_t ticks_per_frame, const Options& options) {
    run_.engine.reset();  // before another one has its ports
    auto gpu = std::make_unique<JitterGpu>(2);
    gpu_ = gpu.get();
    run_.engine = make_engine(options, std::move(gpu));
    ASSERT_TRUE(run_.engine);
    peer_of(*run_.engine).core_ticks_per_frame = ticks_per_frame;
    watch_order(run_, 1);
    run_.engine->start();
  }
  static Options options() {
    Options options = replay_options("auto");
    options.cpu_below = -1;
    options.deadline = std::chrono::milliseconds(4);
    return options;
  }
  template <class Condition>
  bool comes(const Condition& condition) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!condition(run_.engine->stats()) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition(run_.engine->stats());
  }
  void finish() {
    run_.engine->stop();
    expect_conserved(run_.engine->stats());
    EXPECT_EQ(run_.out_of_order, 0U);
    EXPECT_EQ(peer_of(*run_.engine).wrong_answers.load(), 0U);
  }
  static bool all_on_gpu(const EngineStats& stats) {
    return std::ranges::all_of(stats.lanes, [](const auto& lane) { return lane.on_device; });
  }

  Trial run_;
  JitterGpu* gpu_ = nullptr;
};

TEST_F(Choosing, GoesToAGpuThatCarriesMoreAndLooksBackAtTheCore) {
  start(rte_get_tsc_hz() / 50'000, options());  // 20 us
  ASSERT_TRUE(comes(all_on_gpu));
  const EngineStats then = run_.engine->stats();
  for (const EngineStats::Lane& lane : then.lanes) {
    ASSERT_TRUE(lane.choice);
    EXPECT_GT(lane.choice->core_rate, 0U);
    EXPECT_LT(lane.choice->core_rate, 60'000U);
  }
  EXPECT_TRUE(comes([&](const EngineStats& now) {
    return now.lanes[0].choice->core_cost != 0 && now.total.frames_gpu > then.total.frames_gpu + 10'000;
  })) << "probes";
  finish();
}

// Whatever the machine, and lanes that try both sides, have made of it.
TEST_F(Choosing, IsOnItsCoreUnderALowLoadBehindAFullOne) {
  start(0, options());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (std::size_t p = 0; p < 2; ++p) run_.engine->port(p).replay()->set_rate(1000);
  EXPECT_TRUE(comes([](const EngineStats& now) {
    return std::ranges::none_of(now.lanes, [](const auto& lane) { return lane.on_device; });
  }));
  const std::uint64_t before = run_.engine->stats().total.frames_gpu;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(run_.engine->stats().total.frames_gpu, before);
  finish();
}

// What came meanwhile is carried at once. It says nothing about what the core can do.
TEST_F(Choosing, ALaneThatStoodStillStaysOnItsCore) {
  Options few = options();
  for (auto& port : few.ports) port.device += ",rate=50000";
  auto gpu = std::make_unique<JitterGpu>(2);
  run_.engine = make_engine(few, std::move(gpu));
  ASSERT_TRUE(run_.engine);
  auto& peer = peer_of(*run_.engine);
  watch_order(run_, 1);
  for (unsigned times = 0; times < 5; ++times) {
    peer.stand_still_again();  // for 30 ms
    if (times == 0) run_.engine->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  for (const EngineStats::Lane& lane : run_.engine->stats().lanes) {
    EXPECT_EQ(lane.choice->moves, 0U);
    EXPECT_EQ(lane.frames_gpu, 0U);
  }
  finish();
}

TEST_F(Choosing, IsOnItsCoreWhenTheGpuIsLost) {
  start(rte_get_tsc_hz() / 50'000, options());
  ASSERT_TRUE(comes(all_on_gpu));
  gpu_->lose("for a test");
  EXPECT_TRUE(comes([](const EngineStats& now) {
    return std::ranges::all_of(now.lanes, [](const auto& lane) {
      return !lane.on_device && lane.choice->why == DeviceChoice::Why::device_down;
    });
  }));
  EXPECT_TRUE(comes([](const EngineStats& now) { return now.total.rx_frames > 20'000; }));
  finish();
}

TEST_F(Choosing, DoesNotWhereTheGpuIsForcedOrAThresholdIsSet) {
  Options forced = options();
  forced.device = "cuda:0";
  start(0, forced);
  EXPECT_FALSE(run_.engine->stats().lanes[0].choice);
  run_.engine->stop();
  forced.cores_too = true;
  start(0, forced);
  EXPECT_TRUE(run_.engine->stats().lanes[0].choice);
  run_.engine->stop();
  Options by_frames = options();
  by_frames.cpu_below = 100;
  start(0, by_frames);
  EXPECT_FALSE(run_.engine->stats().lanes[0].choice);
  run_.engine->stop();
}

}  // namespace
}  // namespace sluice::engine
