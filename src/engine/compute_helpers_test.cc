// Helpers that compute a part of lanes' batches: every job is done once, by whoever it may be, and the batch goes on as
// if its lane had computed it alone.
#include "engine/compute_helpers.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

// Has a job for each row, and writes down who has done it.
class Counting : public PeerElement, public Divisible {
 public:
  using PeerElement::PeerElement;
  void* find_trait(std::string_view name) override {
    void* const own = offer<Divisible>(name, this);
    return own != nullptr ? own : PeerElement::find_trait(name);
  }
  std::uint32_t jobs(const Batch& batch) const override { return batch.count; }
  void compute(Batch& batch, Span span) override { compute_jobs(batch, span, 0); }
  void compute_jobs(Batch& batch, Span some, std::uint32_t thread) override {
    if (thread == 0 && waits_for_helpers) {
      while (by_helpers.load() < waits_for_helpers) std::this_thread::yield();
    }
    work(ticks_per_job * some.count);
    answer(batch, some);
    done.fetch_add(some.count);
    if (thread == 0) own_calls.fetch_add(1);
    if (thread != 0) by_helpers.fetch_add(some.count);
    longest_span.store(std::max(longest_span.load(), some.count));
  }
  std::atomic<std::uint64_t> done{0}, by_helpers{0}, own_calls{0};
  std::atomic<std::uint32_t> longest_span{0};
  std::uint64_t waits_for_helpers = 0, ticks_per_job = 0;
};

TEST(ComputeShare, SpansAreOfWholeLanesOfAVector) {
  EXPECT_EQ(span_size(least_shared, 2), least_span);
  EXPECT_EQ(span_size(least_shared, 16), least_span);
  EXPECT_EQ(span_size(256, 2), most_span);
  EXPECT_EQ(span_size(256, 3), 48U);
  EXPECT_EQ(span_size(256, 4), 32U);
  EXPECT_EQ(span_size(4096, 2), most_span);
}

// Rows without frames, as jobs do not look at them.
struct Rows {
  explicit Rows(std::uint32_t count) : areas(count) {
    batch.capacity = batch.count = count;
    batch.area[0] = reinterpret_cast<std::byte*>(areas.data());
    for (PeerElement::Area& area : areas) area = {41, 0};
  }
  std::vector<PeerElement::Area> areas;
  Batch batch;
};

std::vector<int> some_cores(std::size_t count) {
  const std::vector<int> all = allowed_cores();
  std::vector<int> cores;
  for (std::size_t i = 0; i < count; ++i) cores.push_back(all[i % all.size()]);
  return cores;
}

// As many lanes fork as there are threads here; a helper that comes late must not take the next fork's span twice.
TEST(ComputeShare, DoesEachJobOnceWhileManyFork) {
  const AllCores cores;
  constexpr unsigned threads = 3, forks = 2000;
  ComputeHelpers helpers(some_cores(2), false, Scheduling::normal);
  std::vector<ComputeShare*> shares;
  for (unsigned t = 0; t < threads; ++t) shares.push_back(helpers.add_share());
  helpers.start();
  Counting element{PortTable()};
  std::atomic<std::uint64_t> wrong{0}, asked{0};
  std::vector<std::thread> lanes;
  for (unsigned t = 0; t < threads; ++t) {
    lanes.emplace_back([&, t] {
      for (unsigned fork = 0; fork < forks; ++fork) {
        Rows rows(least_shared + (fork * 7 + t) % 200);
        shares[t]->run(element, rows.batch, rows.batch.count);
        asked.fetch_add(rows.batch.count);
        for (const PeerElement::Area& area : rows.areas) wrong += area.answer != 42 ? 1 : 0;
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  helpers.stop();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(element.done, asked);
  std::uint64_t by_helpers = 0;
  for (const auto& helper : helpers.helpers()) by_helpers += helper->jobs().get();
  EXPECT_EQ(by_helpers, element.by_helpers);
}

TEST(ComputeShare, AHelperThatSleepsIsWaked) {
  const AllCores cores;
  ComputeHelpers helpers(some_cores(1), false, Scheduling::normal);
  ComputeShare* const share = helpers.add_share();
  helpers.start();
  const auto sleeps = [&] { return helpers.helpers().front()->sleeps(); };
  while (!sleeps()) std::this_thread::yield();
  Counting element{PortTable()};
  element.waits_for_helpers = 1;  // this thread goes on when the helper has come
  Rows rows(256);
  share->run(element, rows.batch, 256);
  EXPECT_EQ(element.done, 256U);
  EXPECT_GT(element.by_helpers, 0U);
}

// A helper that was kept from its span for long is seen.
TEST(ComputeShare, CountsStallsOfAHelperThatHasASpan) {
  ComputeHelpers helpers(some_cores(1), false, Scheduling::normal);
  ComputeShare* const share = helpers.add_share();
  ComputeHelper& helper = *helpers.helpers().front();
  Counting element{PortTable()};
  const std::uint64_t us = rte_get_tsc_hz() / 1'000'000;
  const auto fork = [&](std::uint64_t ticks_per_job) {
    element.ticks_per_job = ticks_per_job;
    Rows rows(64);
    element.waits_for_helpers = element.by_helpers + 1;
    std::thread lane([&] { share->run(element, rows.batch, 64); });
    while (!helper.round()) std::this_thread::yield();
    lane.join();
  };
  for (unsigned i = 0; i < 8; ++i) fork(us / 10);
  const std::uint64_t before = helper.stalls().times();
  fork(100 * us);  // as if it had not been run in between
  EXPECT_GT(helper.stalls().times(), before);
  EXPECT_GE(helper.stalls().longest(), 1600 * us);
}

class HelpedLaneTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    return pipeline_of(std::make_unique<WatchedElement>(counting_));
  }
  void make_helped(const LaneSetup& setup, unsigned helpers) {
    make(setup);
    helpers_ = std::make_unique<ComputeHelpers>(some_cores(helpers), false, Scheduling::normal);
    const Lane::Side side{&stalls_, &bell_, helpers_->add_share()};
    lane_->set_threads(side, side);
    clock_.device_up.store(false);
    helpers_->start();
  }
  void TearDown() override {
    LaneTest::TearDown();
    helpers_.reset();
    EXPECT_EQ(counting_.wrong_answers, 0U);
  }
  const AllCores cores_;
  Counting counting_{PortTable({{.name = "0", .mac = {}, .peer = 1}, {.name = "1", .mac = {}, .peer = 0}})};
  std::unique_ptr<ComputeHelpers> helpers_;
};

TEST_F(HelpedLaneTest, FramesLeaveInOrderWhoeverHasComputedThem) {
  make_helped({}, 2);
  counting_.waits_for_helpers = 1;
  for (unsigned round = 0; round < 20; ++round) {
    arrive(200);
    collect();
    forward();
    EXPECT_EQ(take_out(), 200U);
  }
  EXPECT_EQ(counting_.done, 4000U);
  EXPECT_GT(counting_.by_helpers, 0U);
  EXPECT_LE(counting_.longest_span, most_span);
  EXPECT_EQ(collected().frames_cpu.get(), 4000U);
}

TEST_F(HelpedLaneTest, FewFramesAreNotShared) {
  make_helped({}, 1);
  for (unsigned round = 0; round < 20; ++round) {
    arrive(least_shared - 1);
    collect();
    forward();
    EXPECT_EQ(take_out(), least_shared - 1);
  }
  EXPECT_EQ(counting_.by_helpers, 0U);
  EXPECT_EQ(counting_.own_calls, 20U);
}

// In an engine whose lanes are two, on one thread.
TEST(ComputeHelpersEngine, LanesShareThem) {
  const AllCores cores;
  if (cores.count() < 2) GTEST_SKIP() << "a helper has a core of its own";
  Options options = replay_options("cpu");
  const std::vector<int> all = allowed_cores();
  options.cores = {all[1]};
  options.compute_cores = {all[0]};
  Counting* counting = nullptr;
  auto engine = Engine::create(options, [&](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
    auto element = std::make_unique<Counting>(ports);
    counting = element.get();
    return pipeline_of(std::move(element));
  });
  ASSERT_TRUE(engine) << engine.error().message;
  Trial run{std::move(*engine)};
  watch_order(run, 1);
  run_for(*run.engine, std::chrono::milliseconds(400));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_EQ(counting->wrong_answers, 0U);
  EXPECT_EQ(counting->done, stats.total.rx_frames);
  EXPECT_GT(counting->by_helpers, 0U);
  ASSERT_EQ(stats.helpers.size(), 1U);
  EXPECT_EQ(stats.helpers[0].core, all[0]);
  EXPECT_EQ(stats.helpers[0].jobs, counting->by_helpers);
  EXPECT_GT(stats.helpers[0].busy, 0U);
}

// Where no element has jobs to share no thread is started.
TEST(ComputeHelpersEngine, AreNotThereForElementsThatCannotShare) {
  const AllCores cores;
  if (cores.count() < 2) GTEST_SKIP() << "a helper has a core of its own";
  Options options = replay_options("cpu");
  const std::vector<int> all = allowed_cores();
  options.cores = {all[1]};
  options.compute_cores = {all[0]};
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  run_for(*run.engine, std::chrono::milliseconds(50));
  EXPECT_TRUE(run.engine->stats().helpers.empty());
}

}  // namespace
}  // namespace sluice::engine
