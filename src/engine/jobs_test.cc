// Jobs in virtual time: each look of a worker and of the cores' thread is a call of the test's.
#include "engine/jobs.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <map>
#include <thread>

#include "engine/job_trial_test.h"

namespace sluice::engine {
namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};
std::uint64_t now = 0;  // of the test's clock
// In ticks, which are nanoseconds.
std::uint64_t us(std::uint64_t time) {
  return time * 1000;
}
constexpr std::chrono::microseconds cycle(160), slice(10);

class JobsTest : public testing::Test {
 protected:
  void SetUp() override { now = 1'000; }
  void TearDown() override {
    if (!service_) return;
    client_.reset();
    const JobCounters all = queue_->counters();
    EXPECT_EQ(all.imbalance(), 0);
    EXPECT_EQ(all.in_flight, 0U);
    EXPECT_EQ(all.batches_gpu == 0, all.jobs_gpu == 0);
  }

  void make(unsigned gpus, std::uint32_t most = 32, const std::function<void(AddingKind&)>& prepare = {}) {
    for (unsigned g = 0; g < gpus; ++g) gpus_.push_back(std::make_unique<ScriptedGpu>());
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<Submitter>(adding_kind(prepare)));
    pipeline_ = std::make_unique<Pipeline>(std::move(elements));
    bells_.resize(gpus);
    std::vector<Bell*> bells;
    for (auto& bell : bells_) bells.push_back((bell = std::make_unique<Bell>()).get());
    auto made = JobService::create(
        *pipeline_, {.gpus = gpus_,
                     .memory = [this](std::size_t bytes) -> Expected<void*> {
                       memory_.resize(bytes / sizeof(Line) + 1);
                       return memory_.data();
                     },
                     .worker_bells = bells,
                     .timing = {.cycle = cycle, .bound = {}, .deadline = {}, .overlap = 1, .jobs = slice},
                     .clock = {.now = [] { return now; }, .hz = 1'000'000'000}});
    ASSERT_TRUE(made) << made.error().message;
    service_ = std::move(*made);
    ASSERT_TRUE(service_->notify_users(*pipeline_));
    queue_ = static_cast<Submitter&>(*pipeline_->elements()[0]).queue;
    ASSERT_EQ(queue_, service_->find("adding"));
    kind_ = static_cast<AddingKind*>(&queue_->kind());
    client_ = queue_->open(most);
    for (unsigned g = 0; g < gpus; ++g) service_->device(g).join();
    queue_->start();
  }
  ScriptedGpu& gpu(unsigned g = 0) { return static_cast<ScriptedGpu&>(*gpus_[g]); }

  JobRefusal submit(std::uint64_t tag, std::uint64_t deadline = never, bool is_for_cores = false) {
    return client_->submit(tag, deadline, [&](std::byte* job) {
      AddingKind::of(job) = {.a = tag, .b = 1000, .sum = 0, .is_for_cores = is_for_cores};
    });
  }
  // What is back, by tag; each answer of a job that was done is right.
  std::map<std::uint64_t, JobOutcome> take() {
    std::map<std::uint64_t, JobOutcome> all;
    client_->poll([&](const JobAnswer& answer) {
      EXPECT_TRUE(all.emplace(answer.tag, answer.outcome).second) << "it came twice";
      if (answer.done()) {
        EXPECT_EQ(AddingKind::of(answer.job).sum, answer.tag + 1000);
      }
    });
    return all;
  }
  unsigned work(unsigned g = 0, bool frames = true) {
    auto done = service_->device(g).work(frames);
    EXPECT_TRUE(done) << done.error().message;
    return done ? *done : 0;
  }

  // The GPU takes what waits, and does not answer. Cores do it.
  void be_lost_in_silence() {
    gpu().is_slow = true;
    ASSERT_EQ(work(), 1U);
    now += us(2'100'000);
    ASSERT_FALSE(service_->device(0).work(true));
    service_->device(0).leave(now);
    while (service_->cores().round() != 0) {
    }
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::unique_ptr<device::Gpu>> gpus_;
  std::vector<std::unique_ptr<Bell>> bells_;
  std::vector<Line> memory_;
  std::unique_ptr<JobService> service_;
  std::unique_ptr<Pipeline> pipeline_;
  JobQueue* queue_ = nullptr;
  AddingKind* kind_ = nullptr;
  JobClientHandle client_;
};

TEST_F(JobsTest, CoresDoThemWhereThereIsNoGpu) {
  make(0);
  EXPECT_EQ(service_->cores().round(), 0U);
  for (std::uint64_t tag = 0; tag < 20; ++tag) EXPECT_EQ(submit(tag), JobRefusal::none);
  EXPECT_EQ(client_->under_way(), 20U);
  EXPECT_EQ(queue_->counters().in_flight, 20U);
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(service_->cores().round(), 8U) << "as many as a batch has";
  EXPECT_EQ(take().size(), 8U);
  while (service_->cores().round() != 0) {
  }
  EXPECT_EQ(take().size(), 12U);
  EXPECT_EQ(client_->under_way(), 0U);
  const JobCounters all = queue_->counters();
  EXPECT_EQ(all.kind, "adding");
  EXPECT_EQ(all.submitted, 20U);
  EXPECT_EQ(all.completed, 20U);
  EXPECT_EQ(all.batches_cpu, 3U);
  EXPECT_EQ(all.jobs_cpu, 20U);
  EXPECT_EQ(all.jobs_gpu, 0U);
}

TEST_F(JobsTest, AGpuTakesWhatHasGathered) {
  make(1);
  for (std::uint64_t tag = 0; tag < 4; ++tag) EXPECT_EQ(submit(tag), JobRefusal::none);
  EXPECT_TRUE(service_->device(0).has_waiting());
  EXPECT_EQ(service_->cores().round(), 0U) << "they are for the GPU";
  gpu().is_slow = true;
  EXPECT_EQ(work(), 1U);
  EXPECT_TRUE(service_->device(0).under_way());
  EXPECT_EQ(work(), 0U);
  gpu().is_slow = false;
  now += us(2);
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(take(), (std::map<std::uint64_t, JobOutcome>{{0, JobOutcome::done}})) << "the first launch has one";
  EXPECT_EQ(work(), 0U) << "not in this cycle";
  now += us(161);
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(take().size(), 2U);
  now += us(161);
  work();
  work();
  EXPECT_EQ(take().size(), 1U);
  EXPECT_EQ(queue_->counters().jobs_gpu, 4U);
  EXPECT_EQ(queue_->counters().long_launches, 0U);
}

TEST_F(JobsTest, WithoutFramesTheNextLaunchWaitsForNoCycle) {
  make(1);
  for (std::uint64_t tag = 0; tag < 32; ++tag) submit(tag);
  unsigned launches = 0;
  for (; queue_->counters().in_flight != 0; ++launches) {
    ASSERT_EQ(work(0, false), 1U);
    now += us(1);
    ASSERT_EQ(work(0, false), 1U);
  }
  EXPECT_EQ(launches, 7U);  // of 1, 2, 4, 8, 8, 8 and 1
  EXPECT_EQ(take().size(), 32U);
  // One that was too long is made up for all the same.
  submit(1);
  work(0, false);
  now += us(500);
  work(0, false);
  now += us(200);
  submit(2);
  EXPECT_EQ(work(0, false), 1U) << "the least of late counts";
  for (int i = 0; i < 60; ++i) {
    now += us(500);
    work(0, false);
    now += us(20'000);
    submit(3 + static_cast<std::uint64_t>(i));
    work(0, false);
  }
  now += us(500);
  work(0, false);
  submit(100);
  EXPECT_EQ(work(0, false), 0U);
  service_->device(0).leave(now);
  while (service_->cores().round() != 0) {
  }
}

TEST_F(JobsTest, WhatAGpuCannotDoGoesToTheCores) {
  make(1);
  submit(1, never, true);
  submit(2);
  EXPECT_EQ(service_->cores().round(), 1U);
  EXPECT_EQ(take().count(1), 1U);
  work();
  work();
  EXPECT_EQ(take().count(2), 1U);
}

TEST_F(JobsTest, AKindThatNoGpuDoesIsTheCores) {
  make(1, 32, [](AddingKind& kind) { kind.has_gpus = false; });
  EXPECT_EQ(kind_->attached, (std::vector<std::uint32_t>{0}));
  submit(1);
  EXPECT_EQ(work(), 0U);
  EXPECT_EQ(service_->cores().round(), 1U);
  EXPECT_EQ(take().size(), 1U);
}

TEST_F(JobsTest, JobsWaitForWhatTheGpuHasNotYet) {
  make(1);
  kind_->is_ready = false;
  submit(1);
  EXPECT_EQ(work(), 0U);
  now += us(50'000);
  EXPECT_EQ(work(), 0U);
  EXPECT_TRUE(service_->device(0).has_waiting());
  EXPECT_TRUE(kind_->launched.empty());
  kind_->is_ready = true;
  EXPECT_EQ(work(), 1U);
  now += us(1);
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(take().size(), 1U);
  EXPECT_EQ(queue_->counters().long_launches, 0U) << "it was not the GPU that took so long";
}

TEST_F(JobsTest, ALaunchThatIsLongerThanItsSliceIsCounted) {
  make(1);
  submit(1);
  work();
  now += us(50);  // five slices
  work();
  EXPECT_EQ(queue_->counters().long_launches, 1U);
  submit(2);
  now += us(740);
  EXPECT_EQ(work(), 0U) << "not before its excess is made up for";
  now += us(20);
  EXPECT_EQ(work(), 1U);
  now += us(1);
  EXPECT_EQ(work(), 1U);
}

TEST_F(JobsTest, AClientHasAsManyUnderWayAsItMay) {
  make(0, 3);
  const JobClientHandle other = queue_->open(100);
  for (std::uint64_t tag = 0; tag < 3; ++tag) EXPECT_EQ(submit(tag), JobRefusal::none);
  EXPECT_EQ(submit(3), JobRefusal::full);
  // All slots together.
  const auto nothing = [](std::byte*) {};
  for (std::uint32_t i = 3; i < queue_->shape().slots; ++i) {
    EXPECT_EQ(other->submit(i, never, nothing), JobRefusal::none);
  }
  EXPECT_EQ(other->submit(99, never, nothing), JobRefusal::full);
  while (service_->cores().round() != 0) {
  }
  EXPECT_EQ(submit(3), JobRefusal::full) << "until it has taken one";
  EXPECT_EQ(take().size(), 3U);
  EXPECT_EQ(submit(3), JobRefusal::none);
  service_->cores().round();
  EXPECT_EQ(queue_->counters().full, 3U);
  EXPECT_EQ(refusal_text(JobRefusal::full), "too many jobs are under way");
}

TEST_F(JobsTest, WhatIsKnownToBeTooLateIsRefused) {
  make(0);
  EXPECT_EQ(submit(1, now), JobRefusal::too_late) << "it has passed";
  kind_->while_computing = [] { now += us(2'000); };
  EXPECT_EQ(submit(2, now + us(3'000)), JobRefusal::none);
  EXPECT_EQ(service_->cores().round(), 1U);  // from now on it is known what a batch takes
  EXPECT_EQ(submit(3, now + us(1'000)), JobRefusal::none)
      << "nobody is in front of it: what a batch took once may be no more";
  EXPECT_EQ(submit(4, now + us(1'000)), JobRefusal::too_late);
  EXPECT_EQ(submit(5, now + us(100'000)), JobRefusal::none);
  while (service_->cores().round() != 0) {
  }
  const auto back = take();
  EXPECT_EQ(back.at(2), JobOutcome::done);
  EXPECT_EQ(back.at(3), JobOutcome::late);
  EXPECT_EQ(back.at(5), JobOutcome::done);
  const JobCounters all = queue_->counters();
  EXPECT_EQ(all.too_late, 2U);
  EXPECT_EQ(all.late, 1U);
  EXPECT_EQ(all.completed, 3U);
}

TEST_F(JobsTest, WhatHasExpiredIsNotDone) {
  make(1);
  submit(1, now + 100);
  submit(2, now + 100, true);
  submit(3);
  now += 100;
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(service_->cores().round(), 0U);
  work();
  const auto back = take();
  EXPECT_EQ(back.at(1), JobOutcome::expired);
  EXPECT_EQ(back.at(2), JobOutcome::expired);
  EXPECT_EQ(back.at(3), JobOutcome::done);
  EXPECT_EQ(queue_->counters().expired, 2U);
}

TEST_F(JobsTest, AnswersSayHowLongTheyTook) {
  make(0);
  submit(7);
  now += 500;
  service_->cores().round();
  now += 500;
  client_->poll([](const JobAnswer& answer) { EXPECT_EQ(answer.ticks, 500U); });
}

// Jobs that a GPU had are done from the beginning, though it had spoiled their answers.
TEST_F(JobsTest, AGpuThatFailsHandsItsJobsToTheCores) {
  for (const char* how : {"it fails", "it refuses a launch", "it refuses a mark", "it hangs"}) {
    SCOPED_TRACE(how);
    client_.reset();
    service_.reset();
    gpus_.clear();
    make(1);
    for (std::uint64_t tag = 0; tag < 5; ++tag) submit(tag);
    const std::string_view way = how;
    kind_->refuses_launches = way == "it refuses a launch";
    gpu().refuses_marks = way == "it refuses a mark";
    gpu().is_slow = true;
    auto first = service_->device(0).work(true);
    if (way == "it fails") gpu().lose("for a test");
    if (way == "it hangs") now += us(2'100'000);
    auto failed = first ? service_->device(0).work(true) : first;
    ASSERT_FALSE(failed);
    service_->device(0).leave(now);
    EXPECT_FALSE(service_->device(0).under_way());
    EXPECT_EQ(submit(5), JobRefusal::none);
    while (service_->cores().round() != 0) {
    }
    EXPECT_EQ(take().size(), 6U);
    EXPECT_EQ(work(), 0U) << "it takes none any more";
    const JobCounters all = queue_->counters();
    EXPECT_EQ(all.handed_over, 1U);
    EXPECT_EQ(all.jobs_cpu, 6U);
    EXPECT_EQ(all.imbalance(), 0);
  }
}

// What was handed over is not the GPU's any more when it is back.
TEST_F(JobsTest, BehindAResetAGpuBeginsWithWhatWaitsNow) {
  make(1);
  submit(0);
  be_lost_in_silence();
  EXPECT_EQ(take().size(), 1U);
  service_->device(0).detach();
  ASSERT_TRUE(service_->device(0).attach());
  service_->device(0).join();
  gpu().is_slow = false;
  while (work() != 0) {
  }
  submit(1);
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(kind_->launched.back().jobs, 1U);
  EXPECT_EQ(work(), 1U);
  const auto back = take();
  EXPECT_EQ(back.size(), 1U);
  EXPECT_EQ(back.count(1), 1U);
  EXPECT_EQ(client_->under_way(), 0U);
}

// A GPU that is silent may write to what it has: those slots are kept until it is reset, whether their clients have
// taken the answers before that or not.
TEST_F(JobsTest, SlotsThatASilentGpuHadAreUsedAgainBehindItsReset) {
  for (const bool taken_before : {true, false}) {
    SCOPED_TRACE(taken_before);
    client_.reset();
    service_.reset();
    gpus_.clear();
    make(1);
    service_->device(0).work(true);
    const std::uint32_t slots = queue_->shape().slots;
    const JobClientHandle other = queue_->open(slots);
    const auto free_slots = [&] {
      std::uint32_t count = 0;
      while (other->submit(count, never, [](std::byte* job) { AddingKind::of(job) = {.is_for_cores = true}; }) ==
             JobRefusal::none)
        ++count;
      while (service_->cores().round() != 0) {
      }
      other->poll([](const JobAnswer&) {});
      return count;
    };
    submit(0);
    be_lost_in_silence();
    if (taken_before) EXPECT_EQ(take().size(), 1U);
    EXPECT_EQ(free_slots(), slots - 1);
    service_->device(0).detach();
    ASSERT_TRUE(service_->device(0).attach());
    EXPECT_EQ(free_slots(), taken_before ? slots : slots - 1);
    if (!taken_before) EXPECT_EQ(take().size(), 1U);
    EXPECT_EQ(free_slots(), slots);
  }
}

TEST_F(JobsTest, OfTwoGpusOneGoesOnWithoutTheOther) {
  make(2);
  for (std::uint64_t tag = 0; tag < 6; ++tag) submit(tag);
  gpu(0).is_slow = gpu(1).is_slow = true;
  EXPECT_EQ(work(0), 1U);
  EXPECT_EQ(work(1), 1U);
  ASSERT_EQ(kind_->launched.size(), 2U);
  EXPECT_NE(kind_->launched[0].device, kind_->launched[1].device);
  gpu(0).lose("for a test");
  EXPECT_FALSE(service_->device(0).work(true));
  service_->device(0).leave(now);
  EXPECT_EQ(service_->cores().round(), 1U) << "what the one had, and no more: the other takes the rest";
  gpu(1).is_slow = false;
  for (int i = 0; i < 20; ++i) {
    now += us(161);
    work(1);
    now += us(1);
    work(1);
  }
  EXPECT_EQ(take().size(), 6U);
  EXPECT_EQ(queue_->counters().jobs_gpu, 5U);
  EXPECT_EQ(queue_->counters().handed_over, 1U);
}

TEST_F(JobsTest, WhatWaitsWhenTheEngineEndsComesBack) {
  make(1);
  for (std::uint64_t tag = 0; tag < 3; ++tag) submit(tag);
  submit(3, never, true);
  EXPECT_EQ(work(), 1U);
  EXPECT_FALSE(queue_->stop()) << "one is on the GPU";
  EXPECT_EQ(submit(4), JobRefusal::stopped);
  EXPECT_EQ(work(), 1U);
  EXPECT_TRUE(queue_->stop());
  const auto back = take();
  EXPECT_EQ(back.at(0), JobOutcome::done);
  for (const std::uint64_t tag : {1, 2, 3}) EXPECT_EQ(back.at(tag), JobOutcome::stopped);
  EXPECT_EQ(queue_->counters().failed_stopped, 3U);
  EXPECT_EQ(queue_->counters().refused_stopped, 1U);
}

TEST_F(JobsTest, AClientThatSleepsIsWoken) {
  make(0);
  pollfd ready{client_->fd(), POLLIN, 0};
  client_->arm();
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  submit(1);
  submit(2);
  service_->cores().round();
  EXPECT_EQ(poll(&ready, 1, 1'000), 1);
  client_->disarm();
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  EXPECT_EQ(take().size(), 2U);
  // One that polls is not.
  submit(3);
  service_->cores().round();
  EXPECT_EQ(poll(&ready, 1, 0), 0);
}

TEST_F(JobsTest, AClosedClientTakesBackWhatIsUnderWayAndIsOpenedAgain) {
  make(0);
  service_->start();
  const JobClient* const first = client_.get();
  for (std::uint64_t tag = 0; tag < 10; ++tag) submit(tag);
  client_.reset();
  EXPECT_EQ(queue_->counters().completed, 10U);
  client_ = queue_->open(32);
  EXPECT_EQ(client_.get(), first);
  EXPECT_NE(queue_->open(16).get(), first);
  service_->refuse();
  service_->stop();
}

TEST_F(JobsTest, ManyThreadsSubmitAndEachGetsItsOwn) {
  make(0);
  service_->start();
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> accepted{0};
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const JobClientHandle mine = queue_->open(16);
      std::uint64_t expected = 0, got = 0;
      const auto poll = [&] {
        mine->poll([&](const JobAnswer& answer) {
          EXPECT_EQ(answer.tag % 3, t);
          EXPECT_EQ(AddingKind::of(answer.job).sum, answer.tag + 5);
          ++got;
        });
      };
      for (std::uint64_t i = 0; i < 5'000; ++i) {
        const std::uint64_t tag = 3 * i + t;
        const auto refusal = mine->submit(tag, never, [&](std::byte* job) {
          AddingKind::of(job) = {tag, 5, 0, false};
        });
        expected += refusal == JobRefusal::none ? 1 : 0;
        poll();
        if (refusal != JobRefusal::none) std::this_thread::yield();
      }
      while (got < expected) poll();
      accepted += expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  service_->refuse();
  service_->stop();
  EXPECT_EQ(queue_->counters().completed, accepted.load());
}

TEST(JobKinds, AreFoundByName) {
  static const bool registered = register_job_kind(adding_kind());
  EXPECT_TRUE(registered);
  ASSERT_NE(find_job_kind("adding"), nullptr);
  EXPECT_EQ(find_job_kind("adding")->text, "adds two numbers");
  EXPECT_EQ(find_job_kind("nothing"), nullptr);
  EXPECT_DEATH(register_job_kind(adding_kind()), "job kind 'adding' is registered twice");
}

TEST(JobKinds, AShapeThatCannotBeIsRefused) {
  class Shapeless : public AddingKind {
    Shape shape() const override { return {.bytes = 8, .most = 64, .slots = 32}; }
  };
  const auto made = JobQueue::create(
      "shapeless", std::make_unique<Shapeless>(),
      [](std::size_t) -> Expected<void*> { return make_error("not asked"); }, {}, [] { return now; });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message,
            "jobs of the kind 'shapeless' have 8 bytes, 64 to a batch, and there are 32 slots for them: none may be 0, "
            "and a batch has to fit");
}

}  // namespace
}  // namespace sluice::engine
