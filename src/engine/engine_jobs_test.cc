// Jobs beside frames, in a running engine: on cores, on a GPU, and when GPUs fail.
#include <gtest/gtest.h>

#include <thread>

#include "engine/job_trial_test.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

class PeerWithJobs : public PeerElement, public JobUser {
 public:
  using PeerElement::PeerElement;
  void* find_trait(std::string_view name) override {
    return name == JobUser::trait_name ? offer<JobUser>(name, this) : PeerElement::find_trait(name);
  }
  std::vector<JobKindType> job_kinds() const override { return {adding_kind()}; }
  Expected<void> use_queues(std::span<JobQueue* const> queues) override {
    queue = queues[0];
    return {};
  }
  JobQueue* queue = nullptr;
};

std::unique_ptr<Engine> engine_with_jobs(Options options, std::vector<JitterGpu*>* gpus = nullptr) {
  options.jobs = true;
  auto engine = Engine::create(
      options,
      [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
        return pipeline_of(std::make_unique<PeerWithJobs>(ports));
      },
      [&](int, unsigned streams) -> Expected<std::unique_ptr<device::Gpu>> {
        EXPECT_EQ(streams, options.streams + 1) << "the jobs' own";
        auto gpu = std::make_unique<JitterGpu>(streams);
        gpus->push_back(gpu.get());
        return gpu;
      });
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

// Submits all the time while it lives, and looks at each answer.
class Load {
 public:
  explicit Load(JobQueue& queue) : client_(queue.open(64)), thread_([this] { run(); }) {}
  ~Load() {
    ends_.store(true);
    thread_.join();
    EXPECT_EQ(wrong_, 0U);
  }

 private:
  void run() {
    for (std::uint64_t tag = 0; !ends_.load() || client_->under_way() != 0; ++tag) {
      if (!ends_.load()) {
        client_->submit(tag, rte_rdtsc() + rte_get_tsc_hz(), [tag](std::byte* job) {
          AddingKind::of(job) = {.a = tag, .b = 3, .sum = 0, .is_for_cores = tag % 16 == 0};
        });
      }
      client_->poll([&](const JobAnswer& answer) {
        wrong_ += answer.done() && AddingKind::of(answer.job).sum != answer.tag + 3 ? 1 : 0;
      });
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  JobClientHandle client_;
  std::atomic<bool> ends_{false};
  std::uint64_t wrong_ = 0;
  std::thread thread_;
};

JobQueue& queue_of(Engine& engine) {
  return *static_cast<PeerWithJobs&>(peer_of(engine)).queue;
}

// Until the queue's numbers are so; a loaded machine takes its time.
template <class So>
void expect_soon(JobQueue& queue, So&& so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!so(queue.counters()) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(so(queue.counters()));
}
bool enough(const JobCounters& jobs) {
  return jobs.completed > 100;
}

JobCounters expect_all_back(Engine& engine) {
  const EngineStats stats = engine.stats();
  expect_conserved(stats);
  EXPECT_EQ(stats.jobs.size(), 1U);
  const JobCounters& jobs = stats.jobs.at(0);
  EXPECT_EQ(jobs.imbalance(), 0);
  EXPECT_EQ(jobs.in_flight, 0U);
  EXPECT_GT(jobs.completed, 100U);
  return jobs;
}

TEST(EngineJobs, AreDoneBesideFramesOnTheCpu) {
  Trial run{engine_with_jobs(replay_options("cpu"))};
  ASSERT_TRUE(run.engine);
  run.engine->start();
  {
    const Load one(queue_of(*run.engine)), two(queue_of(*run.engine));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    expect_soon(queue_of(*run.engine), enough);
  }
  run.engine->stop();
  const JobCounters jobs = expect_all_back(*run.engine);
  EXPECT_EQ(jobs.jobs_gpu, 0U);
}

TEST(EngineJobs, AreDoneBesideFramesOnAGpuThatThenFails) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_with_jobs(replay_options("cuda:0"), &gpus)};
  ASSERT_TRUE(run.engine);
  EXPECT_GT(run.engine->timing().jobs.count(), 0);
  watch_order(run, 1);
  run.engine->start();
  {
    const Load one(queue_of(*run.engine)), two(queue_of(*run.engine));
    expect_soon(queue_of(*run.engine), [](const JobCounters& jobs) { return jobs.jobs_gpu > 10 && enough(jobs); });
    gpus[0]->lose("for a test");
    const std::uint64_t then = queue_of(*run.engine).counters().jobs_cpu;
    expect_soon(queue_of(*run.engine), [&](const JobCounters& jobs) { return jobs.jobs_cpu > then + 100; });
  }
  run.engine->stop();
  const JobCounters jobs = expect_all_back(*run.engine);
  EXPECT_GT(jobs.batches_cpu, 0U) << "some are for cores from the beginning";
  EXPECT_EQ(run.out_of_order, 0U);
}

TEST(EngineJobs, OfTwoGpusOneGoesOnWithoutTheOther) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_with_jobs(replay_options("cuda:0,cuda:1"), &gpus)};
  ASSERT_TRUE(run.engine);
  ASSERT_EQ(gpus.size(), 2U);
  run.engine->start();
  {
    const Load one(queue_of(*run.engine)), two(queue_of(*run.engine));
    expect_soon(queue_of(*run.engine), [](const JobCounters& jobs) { return jobs.jobs_gpu > 10; });
    gpus[1]->lose("for a test");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::uint64_t then = queue_of(*run.engine).counters().jobs_gpu;
    expect_soon(queue_of(*run.engine),
                [&](const JobCounters& jobs) { return jobs.jobs_gpu > then + 10 && enough(jobs); });
  }
  run.engine->stop();
  expect_all_back(*run.engine);
}

// A job that waits when the engine ends comes back; none is accepted before it runs or after.
TEST(EngineJobs, ComeBackWhenTheEngineEnds) {
  std::vector<JitterGpu*> gpus;
  Trial run{engine_with_jobs(replay_options("cuda:0"), &gpus)};
  ASSERT_TRUE(run.engine);
  JobQueue& queue = queue_of(*run.engine);
  const auto nothing = [](std::byte*) {};
  {
    const JobClientHandle client = queue.open(32);
    EXPECT_EQ(client->submit(0, ~std::uint64_t{0}, nothing), JobRefusal::stopped);
    run.engine->start();
    for (std::uint64_t tag = 0; tag < 32; ++tag) client->submit(tag, ~std::uint64_t{0}, nothing);
    run.engine->stop();
    EXPECT_EQ(client->poll([](const JobAnswer&) {}), 32U);
    EXPECT_EQ(client->submit(0, ~std::uint64_t{0}, nothing), JobRefusal::stopped);
  }
  const JobCounters jobs = queue.counters();
  EXPECT_EQ(jobs.completed + jobs.failed_stopped, 32U);
  EXPECT_EQ(jobs.refused_stopped, 2U);
  EXPECT_EQ(jobs.imbalance(), 0);
}

TEST(EngineJobs, OptionsSayWhetherTheChainSubmitsSome) {
  Options options = replay_options("cpu");
  options.jobs = true;
  const PipelineMaker plain = [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
    return pipeline_of(std::make_unique<PeerElement>(ports));
  };
  const auto refused = Engine::create(options, plain);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "Options::jobs is set, and no element of the chain submits any");
}

}  // namespace
}  // namespace sluice::engine
