// What a lane refuses when it cannot keep up: the rule by itself, and an engine that is offered twice what it can do.
// What a lane makes of it: lane_time_test.cc.
#include "engine/admission.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <chrono>
#include <thread>

#include "engine/engine.h"

namespace sluice::engine {
namespace {

TEST(Admission, WithoutADeadlineEverythingIsLetIn) {
  Admission admission;
  admission.took(UINT64_MAX / 2);
  EXPECT_TRUE(admission.in_time(UINT64_MAX / 4, true));
}

TEST(Admission, AgeAndTheLastBatchAndACycleHaveToFit) {
  Admission admission(1000, 100);
  EXPECT_TRUE(admission.in_time(700, true));
  EXPECT_FALSE(admission.in_time(701, true));
  EXPECT_TRUE(admission.in_time(800, false));  // no time point to wait for
  EXPECT_FALSE(admission.in_time(801, false));
  admission.took(300);
  EXPECT_TRUE(admission.in_time(400, true));
  EXPECT_FALSE(admission.in_time(401, true));
  EXPECT_TRUE(admission.in_time(500, false));
  EXPECT_FALSE(admission.in_time(501, false));
}

TEST(Admission, FreshFramesAreLetInWhateverTheLastBatchMet) {
  Admission admission(1000, 100);
  admission.took(1'000'000);
  EXPECT_TRUE(admission.in_time(100, true));
  EXPECT_FALSE(admission.in_time(101, true));
  admission.took(0);
  EXPECT_TRUE(admission.in_time(700, true));
}

constexpr double us_per_frame = 10;

// Takes a core `us_per_frame` for each frame.
class SlowElement : public Element {
 public:
  Shape shape() const override { return {.on_device = true, .ends_chain = true}; }
  Expected<void> attach(device::Gpu&, const DevicePlan&) override { return make_error("for the CPU alone"); }
  Expected<void> launch(Batch&, device::GpuStream&) override { return make_error("for the CPU alone"); }
  void compute(Batch&, Span span) override {
    const auto ticks = static_cast<std::uint64_t>(us_per_frame * 1e-6 * static_cast<double>(rte_get_tsc_hz()));
    for (const std::uint64_t end = rte_rdtsc() + ticks * span.count; rte_rdtsc() < end;) {
    }
  }
  void apply(Batch& batch, Span span, Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) batch.send(i, 0);
  }
};

// Twice the rate that the core can do, with a queue of frames for a tenth of a second behind it.
EngineStats offer_too_much(Admit admission) {
  Options options;
  options.device = "cpu";
  options.deadline = std::chrono::milliseconds(50);
  options.admission = admission;
  options.memory.frames = 2048;
  options.ports.resize(1);
  options.ports[0].name = "a";
  options.ports[0].device = "replay,mix=64,frames=20000,rate=200000";
  auto engine = Engine::create(options, [](const PortTable&) -> Expected<std::unique_ptr<Pipeline>> {
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<SlowElement>());
    return std::make_unique<Pipeline>(std::move(elements));
  });
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  if (!engine) {
    return {};
  }
  (*engine)->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  (*engine)->stop();
  return (*engine)->stats();
}

// How much of what is let in is on time: lane_time_test.cc. Here, where a busy machine may keep the lane from running,
// what holds all the same.
TEST(Admission, AnOverloadedEngineRefusesAndLosesNothing) {
  const EngineStats stats = offer_too_much(Admit::in_time);
  EXPECT_EQ(stats.imbalance(), 0);
  EXPECT_GT(stats.drops[overdue], 0U);
  EXPECT_GT(stats.total.tx_frames, 0U);
}

TEST(Admission, WithoutItWhatComesBehindTheFirstFramesIsLate) {
  // A frame falls due every 5 us and leaves no sooner than 10 us after the one before it, so that from here on it is
  // more than a deadline behind.
  constexpr std::uint64_t on_time_at_most = 10'000;
  for (const Admit admission : {Admit::all, Admit::automatic}) {  // automatic: there is no GPU
    const EngineStats stats = offer_too_much(admission);
    EXPECT_EQ(stats.imbalance(), 0);
    EXPECT_EQ(stats.drops[overdue], 0U);
    EXPECT_GT(stats.total.misses, 0U);
    EXPECT_LE(stats.total.tx_frames - stats.total.misses, on_time_at_most + inline_batch);
  }
}

}  // namespace
}  // namespace sluice::engine
