// The worker by itself. With lanes and a device: engine_device_test.cc.
#include "engine/worker.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/lane_trial_test.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

// It sleeps for 20 ms at a time, in which a hundred time points pass.
TEST_F(LaneTest, HearsOfTheTimePointsThatTheWorkerSleptThrough) {
  constexpr auto cycle = std::chrono::microseconds(200);
  const std::uint64_t cycle_tsc = rte_get_tsc_hz() / 1'000'000 * cycle.count();
  JitterGpu gpu(1);
  make({});
  Worker worker({.gpu = &gpu,
                 .pipeline = pipeline_.get(),
                 .lanes = {lane_.get()},
                 .clock = &clock_,
                 .timing = {.cycle = cycle, .bound = {}, .deadline = {}, .overlap = 1},
                 .mode = Mode::full,
                 .core = sched_getcpu(),
                 .busy = false,
                 .scheduling = Scheduling::normal});
  // One for each sleep would take twice as long.
  const auto hears_of = [&](std::uint64_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (lane_->time_points() < count && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return lane_->time_points() >= count;
  };
  const std::uint64_t start = rte_rdtsc();
  worker.start();
  EXPECT_TRUE(hears_of(1));
  const std::uint64_t first = rte_rdtsc();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(hears_of((rte_rdtsc() - first) / cycle_tsc));
  worker.stop();
  EXPECT_LE(lane_->time_points(), (rte_rdtsc() - start) / cycle_tsc);
  EXPECT_LT(worker.counters().cycles.get() * 2, lane_->time_points()) << "it did not sleep";
}

// One after the other, each once a cycle, and a cycle of the worker's is one of the first lane's.
TEST_F(LaneTest, StaggeredLanesHearOfTheirTimePointsInTurn) {
  constexpr auto cycle = std::chrono::milliseconds(20);
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Lane*> all;
  for (std::uint32_t l = 0; l < 2; ++l) {
    make({.index = l});
    all.push_back(lanes.emplace_back(std::move(lane_)).get());
  }
  JitterGpu gpu(1);
  Worker worker({.gpu = &gpu,
                 .pipeline = pipeline_.get(),
                 .lanes = all,
                 .clock = &clock_,
                 .timing = {.cycle = cycle, .bound = {}, .deadline = {}, .overlap = 1, .stagger = true},
                 .mode = Mode::full,
                 .core = sched_getcpu(),
                 .busy = true,
                 .scheduling = Scheduling::normal});
  worker.start();
  unsigned ahead = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((lanes[1]->time_points() < 4 || ahead < 4) && std::chrono::steady_clock::now() < until) {
    const std::uint64_t second = lanes[1]->time_points(), first = lanes[0]->time_points();
    EXPECT_GE(first, second);
    ahead += first == second + 1 ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  worker.stop();
  EXPECT_GE(lanes[1]->time_points(), 4U);
  EXPECT_GE(ahead, 4U) << "for half of each cycle";
  EXPECT_NE(worker.counters().cycles.get(), 0U);
  EXPECT_LE(worker.counters().cycles.get(), lanes[0]->time_points()) << "not of both lanes";
}

// Elements whose batches can be launched together: what was launched, by lane and ticket.
class Launches {
 public:
  struct Launched {
    const device::GpuStream* stream;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> batches;
    bool operator==(const Launched&) const = default;
  };
  Expected<void> add(std::span<Batch* const> batches, device::GpuStream& stream) {
    if (refuses.load()) return make_error("refused");
    const std::lock_guard lock(mutex_);
    launched_.push_back({&stream, {}});
    for (const Batch* const batch : batches) launched_.back().batches.emplace_back(batch->lane, batch->ticket);
    return {};
  }
  std::vector<Launched> launched() const {
    const std::lock_guard lock(mutex_);
    return launched_;
  }
  std::atomic<bool> refuses{false};

 private:
  mutable std::mutex mutex_;
  std::vector<Launched> launched_;
};

class TogetherElement : public Element, public Grouping {
 public:
  TogetherElement(Launches& launches, Together together) : launches_(launches), together_(together) {}
  Shape shape() const override { return {.on_device = true, .ends_chain = true}; }
  void* find_trait(std::string_view name) override {
    return together_ == Together::of_one_lane ? offer<Grouping>(name, this) : nullptr;
  }
  Expected<void> launch(Batch& batch, device::GpuStream& stream) override {
    Batch* const one = &batch;
    return launches_.add({&one, 1}, stream);
  }
  Expected<void> launch_together(std::span<Batch* const> batches, device::GpuStream& stream) override {
    return launches_.add(batches, stream);
  }
  void apply(Batch&, Span, Emitter&) override {}
  Launches& launches() { return launches_; }

 private:
  Launches& launches_;
  const Together together_;
};

// That of such an element, whichever lanes the batches are of.
class TogetherFusion : public Fusion {
 public:
  explicit TogetherFusion(Launches& launches) : launches_(launches) {}
  Expected<bool> launch(std::span<Batch* const> batches, device::GpuStream& stream) override {
    if (auto ok = launches_.add(batches, stream); !ok) return tl::unexpected(ok.error());
    return true;
  }

 private:
  Launches& launches_;
};
const bool fuses = register_fusion([](std::span<Element* const> elements) -> std::unique_ptr<Fusion> {
  if (elements.size() != 1) return nullptr;
  auto* const element = dynamic_cast<TogetherElement*>(elements.front());
  return element == nullptr ? nullptr : std::make_unique<TogetherFusion>(element->launches());
});

// A GPU that has done what the test says.
class HandGpu : public JitterGpu {
 public:
  struct Stream : device::GpuStream {
    void* raw() const override { return nullptr; }
    Expected<void> mark() override {
      if (refuses.load()) return make_error("refused");
      marks.fetch_add(1);
      return {};
    }
    device::MarkState poll() override {
      while (blocks.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (done.load() == allowed.load()) return device::MarkState::pending;
      done.fetch_add(1);
      return device::MarkState::done;
    }
    unsigned pending_marks() const override { return marks.load() - done.load(); }
    std::atomic<unsigned> marks{0}, done{0}, allowed{0};
    std::atomic<bool> refuses{false}, blocks{false};
  };
  HandGpu() : JitterGpu(0) {}
  unsigned stream_count() const override { return static_cast<unsigned>(hands.size()); }
  device::GpuStream& stream(unsigned i) override { return hands[i]; }
  std::array<Stream, 2> hands;
};

class WorkerTogether : public LaneTest {
 protected:
  static constexpr std::uint32_t lane_count = 3, batch_count = 16;
  static constexpr std::chrono::milliseconds patience{5000}, while_nothing_comes{20};

  void SetUp() override {
    LaneTest::SetUp();
    for (std::uint32_t l = 0; l < lane_count; ++l) {
      make({.batches = batch_count, .capacity = 64, .index = l});
      lanes_.push_back(std::move(lane_));
    }
    make_worker();
  }
  void make_worker() {
    worker_.reset();
    launched_ = pipeline_of(std::make_unique<TogetherElement>(together_, how_));
    std::vector<Lane*> lanes;
    for (const auto& lane : lanes_) lanes.push_back(lane.get());
    worker_ = std::make_unique<Worker>(
        Worker::Parts{.gpu = &gpu_,
                      .pipeline = launched_.get(),
                      .lanes = lanes,
                      .clock = &clock_,
                      .timing = {.cycle = std::chrono::milliseconds(1), .bound = {}, .deadline = {}, .overlap = 1},
                      .mode = Mode::full,
                      .core = sched_getcpu(),
                      .busy = true,
                      .scheduling = Scheduling::normal,
                      .silence = silence_});
  }
  void TearDown() override {
    for (HandGpu::Stream& hand : gpu_.hands) hand.allowed.store(~0U);
    worker_->stop();
    LaneTest::TearDown();
  }

  Batch* seal(std::uint32_t lane, std::uint64_t bytes = 100) {
    Batch* const batch = lanes_[lane]->ring().open();
    if (batch == nullptr) return nullptr;
    batch->bytes = bytes;
    batch->sealed_tsc = rte_rdtsc();
    lanes_[lane]->ring().seal(BatchState::sealed);
    return batch;
  }
  static bool comes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!condition() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return condition();
  }
  // So many launches, and no more for a while.
  std::vector<Launches::Launched> launches(std::size_t count) {
    EXPECT_TRUE(comes([&] { return together_.launched().size() >= count; }));
    std::this_thread::sleep_for(while_nothing_comes);
    auto launched = together_.launched();
    EXPECT_EQ(launched.size(), count);
    launched.resize(count);
    return launched;
  }
  static bool is(const Batch* batch, BatchState state) { return batch->state.load() == state; }

  std::chrono::nanoseconds silence_ = std::chrono::minutes(1);
  HandGpu gpu_;
  Launches together_;
  Together how_ = Together::of_any_lane;
  std::unique_ptr<Pipeline> launched_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Worker> worker_;
};

// Six launches' worth is sealed: a stream has two under way, of eight batches, and the next only when one is done.
TEST_F(WorkerTogether, LaunchesWhatIsSealedInTurnOfTheLanesAndTwoForAStream) {
  for (std::uint32_t b = 0; b < batch_count; ++b) {
    for (std::uint32_t l = 0; l < lane_count; ++l) ASSERT_NE(seal(l), nullptr);
  }
  worker_->start();
  std::vector<Launches::Launched> expected;
  for (std::uint32_t i = 0; i < lane_count * batch_count; ++i) {
    if (i % most_together == 0) expected.push_back({&gpu_.hands[expected.size() % 2], {}});
    expected.back().batches.emplace_back(i % lane_count, i / lane_count);
  }
  const auto first = [&](std::size_t count) { return std::vector(expected.begin(), expected.begin() + count); };
  EXPECT_EQ(launches(4), first(4));
  EXPECT_EQ(gpu_.hands[0].pending_marks(), 2U);
  EXPECT_EQ(gpu_.hands[1].pending_marks(), 2U);
  gpu_.hands[1].allowed.store(1);
  expected[4].stream = &gpu_.hands[1];
  EXPECT_EQ(launches(5), first(5));
  gpu_.hands[0].allowed.store(2);
  expected[5].stream = &gpu_.hands[0];
  EXPECT_EQ(launches(6), first(6));
  EXPECT_EQ(worker_->counters().launches.get(), 6U);
}

// The turn goes on where the last launch ended, whoever has a batch.
TEST_F(WorkerTogether, TheLaneBehindTheLastOneIsNext) {
  worker_->start();
  ASSERT_TRUE(comes([&] { return clock_.device_up.load(); }));
  using Batches = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  gpu_.hands[0].allowed.store(~0U);
  gpu_.hands[1].allowed.store(~0U);
  seal(1);
  EXPECT_EQ(launches(1).back().batches, (Batches{{1, 0}}));
  // Nothing is under way, so what the worker sees first is launched by itself: the streams are kept busy meanwhile.
  ASSERT_TRUE(comes([&] { return gpu_.hands[0].pending_marks() + gpu_.hands[1].pending_marks() == 0; }));
  for (HandGpu::Stream& hand : gpu_.hands) hand.allowed.store(hand.done.load());
  for (std::size_t fill = 0; fill < 4; ++fill) {
    seal(0);
    EXPECT_EQ(launches(2 + fill).back().batches, (Batches{{0, fill}}));
  }
  Batch* const waits = seal(0);
  seal(2);
  seal(1);
  std::this_thread::sleep_for(while_nothing_comes);
  EXPECT_TRUE(is(waits, BatchState::sealed));
  gpu_.hands[0].allowed.fetch_add(1);
  EXPECT_EQ(launches(6).back().batches, (Batches{{1, 1}, {2, 0}, {0, 4}}));
}

// Not the one with the fewest launches: the one with the fewest bytes, of those that may have another launch.
TEST_F(WorkerTogether, TheStreamWithTheFewestBytesUnderWayIsNext) {
  worker_->start();
  ASSERT_TRUE(comes([&] { return clock_.device_up.load(); }));
  struct Step {
    std::uint64_t bytes;
    unsigned stream;
  };
  std::size_t count = 0;
  const auto goes = [&](const Step& step) {
    seal(0, step.bytes);
    EXPECT_EQ(launches(++count).back().stream, &gpu_.hands[step.stream]) << count;
  };
  for (const Step& step : {Step{1000, 0}, {10, 1}, {10, 1}, {5, 0}}) goes(step);
  gpu_.hands[1].allowed.store(1);
  goes({2000, 1});
  gpu_.hands[0].allowed.store(1);
  gpu_.hands[1].allowed.store(2);
  ASSERT_TRUE(comes([&] { return gpu_.hands[0].done.load() == 1 && gpu_.hands[1].done.load() == 2; }));
  goes({7, 0});  // 5 bytes are under way there, and 2,000 in the other
}

// Of one lane, as many as go together, in order: a stream has one launch under way.
TEST_F(WorkerTogether, LaunchesWhatOneLaneHasSealed) {
  how_ = Together::of_one_lane;
  make_worker();
  for (std::uint32_t b = 0; b <= most_of_one_lane; ++b) ASSERT_NE(seal(0), nullptr);
  for (std::uint32_t b = 0; b < 2; ++b) ASSERT_NE(seal(2), nullptr);
  worker_->start();
  using Batches = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  Batches most;
  for (std::uint32_t b = 0; b < most_of_one_lane; ++b) most.emplace_back(0, b);
  const auto first = launches(2);
  EXPECT_EQ(first[0].batches, most);
  EXPECT_EQ(first[1].batches, (Batches{{2, 0}, {2, 1}}));
  EXPECT_EQ(gpu_.hands[0].pending_marks(), 1U);
  EXPECT_EQ(gpu_.hands[1].pending_marks(), 1U);
  gpu_.hands[1].allowed.store(1);
  const auto rest = launches(3);
  EXPECT_EQ(rest[2].batches, (Batches{{0, most_of_one_lane}}));
  EXPECT_EQ(rest[2].stream, &gpu_.hands[1]);
}

// All of its batches are in doubt, and none that was launched before; later ones are no more the device's.
class RefusedTogether : public WorkerTogether, public testing::WithParamInterface<bool> {};

TEST_P(RefusedTogether, EveryBatchOfTheLaunchIsLost) {
  std::vector<Batch*> before, refused;
  for (std::size_t b = 0; b < 4 * most_together; ++b)
    before.push_back(seal(static_cast<std::uint32_t>(b % lane_count)));
  worker_->start();
  launches(4);
  for (std::uint32_t l = 0; l < lane_count; ++l) {
    refused.push_back(seal(l));
    refused.push_back(seal(l));
  }
  const bool by_element = GetParam();
  (by_element ? together_.refuses : gpu_.hands[1].refuses).store(true);
  gpu_.hands[1].allowed.store(1);
  ASSERT_TRUE(comes([&] { return !clock_.device_up.load(); }));
  // The worker waits for what was launched before, and for what may have been launched of the refused one.
  for (HandGpu::Stream& hand : gpu_.hands) hand.allowed.store(~0U);
  for (const Batch* const batch : refused) EXPECT_TRUE(comes([&] { return is(batch, BatchState::lost); }));
  for (const Batch* const batch : before) EXPECT_TRUE(comes([&] { return is(batch, BatchState::done); }));
  EXPECT_TRUE(comes([&] { return gpu_.lost(); }));
  const Batch* const later = seal(0);
  EXPECT_TRUE(comes([&] { return is(later, BatchState::failed); }));
  EXPECT_EQ(worker_->counters().launches.get(), 4U);
}
// What it may still touch stays: so this test has it end before all of that goes.
TEST_F(WorkerTogether, StoppingDoesNotWaitForACallThatHangs) {
  silence_ = std::chrono::milliseconds(10);
  make_worker();
  worker_->start();
  ASSERT_TRUE(comes([&] { return clock_.device_up.load(); }));
  for (HandGpu::Stream& hand : gpu_.hands) hand.blocks.store(true);
  const Batch* const batch = seal(0);
  ASSERT_TRUE(comes([&] { return together_.launched().size() == 1; }));
  EXPECT_FALSE(worker_->stop());
  EXPECT_TRUE(is(batch, BatchState::in_flight));
  for (HandGpu::Stream& hand : gpu_.hands) {
    hand.allowed.store(~0U);
    hand.blocks.store(false);
  }
  EXPECT_TRUE(comes([&] { return is(batch, BatchState::done); }));
  EXPECT_TRUE(comes([&] { return worker_->has_ended(); }));
}

TEST_F(WorkerTogether, StoppingDoesNotWaitForAKernelThatNeverEnds) {
  silence_ = std::chrono::milliseconds(10);
  make_worker();
  worker_->start();
  const Batch* const batch = seal(0);
  ASSERT_TRUE(comes([&] { return clock_.takes_back.load(); }));
  EXPECT_EQ(clock_.loss.how(), Loss::silent);
  EXPECT_EQ(gpu_.gone(), device::Gone::silent);
  EXPECT_TRUE(worker_->stop());
  EXPECT_TRUE(is(batch, BatchState::in_flight)) << "it is the device's";
}

// One stream that answers says nothing of another one's.
TEST_F(WorkerTogether, AStreamIsSilentByItself) {
  silence_ = std::chrono::milliseconds(50);
  make_worker();
  worker_->start();
  seal(0, 1000);
  ASSERT_TRUE(comes([&] { return gpu_.hands[0].pending_marks() == 1; }));
  gpu_.hands[1].allowed.store(~0U);
  EXPECT_TRUE(comes([&] {
    seal(1, 10);
    return clock_.takes_back.load() || lanes_[1]->ring().oldest() == nullptr;
  }));
  EXPECT_TRUE(comes([&] { return clock_.takes_back.load(); }));
}

INSTANTIATE_TEST_SUITE_P(ByTheElementOrTheStream, RefusedTogether, testing::Bool());

}  // namespace
}  // namespace sluice::engine
