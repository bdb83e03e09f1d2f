#include "engine/job_service.h"

#include <poll.h>
#include <pthread.h>
#include <rte_pause.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/units.h"

namespace sluice::engine {
namespace {

constexpr std::chrono::milliseconds core_batch_time(1);  // that one on a core is to take
constexpr std::chrono::milliseconds longest_core_sleep(100);
constexpr unsigned looks_before_sleep = 2000;
constexpr unsigned long_ones_to_warn = 8;           // fewer may have waited for frames
constexpr std::chrono::seconds longest_silence{2};  // of a GPU, as of a batch of frames

}  // namespace

std::uint64_t JobClock::ticks(std::chrono::nanoseconds time) const {
  return static_cast<std::uint64_t>(static_cast<double>(time.count()) * static_cast<double>(hz) / 1e9);
}

std::chrono::microseconds JobClock::time(std::uint64_t ticks) const {
  return std::chrono::microseconds(ticks * 1'000'000 / hz);
}

// --- A GPU ---

JobDevice::JobDevice(const Parts& parts)
    : parts_(parts),
      slice_(parts.clock.ticks(parts.timing.jobs)),
      cycle_(parts.clock.ticks(parts.timing.cycle)),
      hang_(parts.clock.ticks(longest_silence)) {}

void JobDevice::add(JobQueue& queue) {
  const std::uint32_t most = queue.shape().most;
  kinds_.push_back({&queue, JobPace(slice_, cycle_, most), JobQueue::Gathered(most)});
}

void JobDevice::join() {
  joined_ = true;
  for (const Kind& kind : kinds_) kind.queue->gpu_joins();
}

void JobDevice::detach() {
  for (const Kind& kind : kinds_) kind.queue->kind().detach(parts_.device);
}

Expected<void> JobDevice::attach() {
  for (Kind& kind : kinds_) {
    kind.batch.count = 0;  // what was handed over is the cores'
    kind.queue->release_doubted(parts_.device);
    if (auto ok = kind.queue->kind().attach(*parts_.gpu, parts_.device); !ok) return tl::unexpected(ok.error());
  }
  next_ = 0;
  makes_up_ = false;
  return {};
}

bool JobDevice::has_waiting() const {
  return joined_ && (held_ != nullptr || std::ranges::any_of(kinds_, [](const Kind& kind) {
                       return kind.queue->has_waiting(JobQueue::By::gpu);
                     }));
}

Expected<unsigned> JobDevice::work(bool frames) {
  if (!joined_) return 0;
  if (launched_) return look();
  Kind* held = held_.load(std::memory_order_relaxed);
  if (held == nullptr && (frames || makes_up_) && parts_.clock.now() < next_) return 0;
  if (held == nullptr) held_.store(held = gather());
  if (held == nullptr) return 0;
  if (joined_) return launch(*held);
  give_back_held(false);  // they were taken away meanwhile
  return 0;
}

// Of the kinds in turn, the first one that has some.
JobDevice::Kind* JobDevice::gather() {
  for (std::size_t tried = 0; tried < kinds_.size(); ++tried) {
    Kind& kind = kinds_[turn_];
    turn_ = turn_ + 1 == kinds_.size() ? 0 : turn_ + 1;
    if (!kind.queue->has_waiting(JobQueue::By::gpu)) continue;
    began_ = parts_.clock.now();
    kind.queue->gather(JobQueue::By::gpu, kind.pace.size(), kind.batch);
    if (kind.batch.count != 0) return &kind;
  }
  return nullptr;
}

Expected<unsigned> JobDevice::launch(Kind& kind) {
  device::GpuStream& stream = parts_.gpu->stream(parts_.stream);
  auto ready = kind.queue->kind().ready(parts_.device, stream);
  if (!ready) return tl::unexpected(ready.error());
  if (!*ready) {
    began_ = parts_.clock.now();  // of its next try
    return 0;
  }
  // Also where it fails: a part may have been launched.
  launched_ = true;
  if (auto ok = kind.queue->kind().launch(kind.batch.batch(), parts_.device, stream); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = stream.mark(); !ok) return tl::unexpected(ok.error());
  return 1;
}

Expected<unsigned> JobDevice::look() {
  switch (parts_.gpu->stream(parts_.stream).poll()) {
    case device::MarkState::pending:
      if (parts_.clock.now() - began_ > hang_) return make_error("it has not finished a batch of jobs in time");
      return 0;
    case device::MarkState::failed:
      return make_error(parts_.gpu->why());
    case device::MarkState::done:
      break;
  }
  launched_ = false;
  Kind* const held = held_.exchange(nullptr);
  if (held != nullptr) finish(*held);
  return 1;
}

void JobDevice::finish(Kind& kind) {
  const auto jobs = static_cast<std::uint32_t>(kind.batch.count);
  kind.queue->kind().finish(kind.batch.batch(), parts_.device);
  kind.queue->deliver(JobQueue::By::gpu, kind.batch);
  const std::uint64_t took = parts_.clock.now() - began_;
  const std::uint64_t spacing = kind.pace.took(jobs, took);
  next_ = began_ + spacing;
  makes_up_ = spacing > cycle_;
  kind.queue->goes(std::max(took, spacing), kind.pace.size());
  if (kind.pace.is_long(took)) kind.queue->was_long();
  kind.long_ones = jobs == 1 && makes_up_ ? kind.long_ones + 1 : 0;
  if (kind.long_ones == long_ones_to_warn) {
    spdlog::warn("a job of the kind '{}' takes {} {}, and frames leave it {} of a cycle: frames may be late beside it",
                 kind.queue->name(), parts_.gpu->info().name, duration_text(parts_.clock.time(took)),
                 duration_text(parts_.timing.jobs));
  }
}

void JobDevice::leave(std::uint64_t until) {
  if (!joined_.exchange(false)) return;
  device::MarkState state = device::MarkState::done;
  if (std::exchange(launched_, false)) {
    device::GpuStream& stream = parts_.gpu->stream(parts_.stream);
    while ((state = stream.poll()) == device::MarkState::pending && parts_.clock.now() < until) rte_pause();
  }
  give_back_held(state == device::MarkState::pending);
  for (const Kind& kind : kinds_) kind.queue->gpu_leaves();
}

void JobDevice::take_away() {
  if (!joined_.exchange(false)) return;
  give_back_held(true);
  for (const Kind& kind : kinds_) kind.queue->gpu_leaves();
}

void JobDevice::give_back_held(bool in_doubt) {
  const Kind* const kind = held_.exchange(nullptr);
  if (kind == nullptr) return;
  JobQueue::Gathered held = kind->batch;  // a worker that hangs may be reading it
  if (in_doubt) {
    kind->queue->hand_over_in_doubt(held, parts_.device);
  } else {
    kind->queue->hand_over(held);
  }
}

// --- The cores ---

void JobCores::start() {
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
}

void JobCores::stop() {
  stopping_.store(true);
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

bool JobCores::has_waiting() const {
  return std::ranges::any_of(kinds_, [](const Kind& kind) {
    return kind.queue->has_waiting(JobQueue::By::core) ||
           (!kind.queue->has_gpus() && kind.queue->has_waiting(JobQueue::By::gpu));
  });
}

unsigned JobCores::round() {
  unsigned jobs = 0;
  for (Kind& kind : kinds_) jobs += round(kind);
  return jobs;
}

unsigned JobCores::round(Kind& kind) {
  JobQueue& queue = *kind.queue;
  const std::uint64_t cost = std::max<std::uint64_t>(kind.cost.get(), 1);
  const auto most = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(clock_.ticks(core_batch_time) * FrameCost::scale / cost, 1, queue.shape().most));
  queue.gather(JobQueue::By::core, most, kind.batch);
  const bool alone = !queue.has_gpus();
  if (alone) queue.gather(JobQueue::By::gpu, most, kind.batch);
  const auto jobs = static_cast<std::uint32_t>(kind.batch.count);
  if (jobs == 0) return 0;
  const std::uint64_t began = clock_.now();
  queue.kind().compute(kind.batch.batch());
  queue.deliver(JobQueue::By::core, kind.batch);
  const std::uint64_t took = clock_.now() - began;
  kind.cost.took(took, jobs);
  if (alone) queue.goes(took, most);
  return jobs;
}

void JobCores::run() {
  pthread_setname_np(pthread_self(), "sluice-jobs");
  unsigned idle = 0;
  for (;;) {
    const bool stopping = stopping_.load();
    if (round() != 0) {
      idle = 0;
      continue;
    }
    if (stopping) break;
    if (++idle < looks_before_sleep) {
      rte_pause();
      continue;
    }
    bell_.arm();
    if (has_waiting() || stopping_.load()) {
      bell_.disarm();
      continue;
    }
    pollfd scratch{};
    bell_.wait({&scratch, 1}, longest_core_sleep);
  }
}

// --- All of them ---

Expected<std::unique_ptr<JobService>> JobService::create(Pipeline& pipeline, Parts parts) {
  std::unique_ptr<JobService> service(new JobService(std::move(parts)));
  const Parts& of = service->parts_;
  for (std::uint32_t device = 0; device < of.gpus.size(); ++device) {
    service->devices_.push_back(
        std::make_unique<JobDevice>(JobDevice::Parts{.gpu = of.gpus[device].get(),
                                                     .device = device,
                                                     .stream = of.gpus[device]->stream_count() - 1,
                                                     .timing = of.timing,
                                                     .clock = of.clock}));
  }
  for (const JobUser* const user : pipeline.all<JobUser>()) {
    for (const JobKindType& type : user->job_kinds()) {
      if (service->find(type.name) != nullptr) continue;
      if (auto ok = service->add(type); !ok) return tl::unexpected(ok.error());
    }
  }
  return service;
}

Expected<void> JobService::add(const JobKindType& type) {
  auto kind = type.make();
  if (!kind) return make_error("jobs of the kind '" + std::string(type.name) + "': " + kind.error().message);
  std::vector<Bell*> bells{&cores_.bell()};
  bells.insert(bells.end(), parts_.worker_bells.begin(), parts_.worker_bells.end());
  auto queue = JobQueue::create(type.name, std::move(*kind), parts_.memory, std::move(bells), parts_.clock.now);
  if (!queue) return tl::unexpected(queue.error());
  for (std::uint32_t device = 0; device < devices_.size(); ++device) {
    auto attached = (*queue)->kind().attach(*parts_.gpus[device], device);
    if (!attached) return make_error("jobs of the kind '" + std::string(type.name) + "': " + attached.error().message);
    if (*attached) devices_[device]->add(**queue);
  }
  cores_.add(**queue);
  queues_.push_back(std::move(*queue));
  return {};
}

Expected<void> JobService::notify_users(Pipeline& pipeline) {
  for (JobUser* const user : pipeline.all<JobUser>()) {
    std::vector<JobQueue*> queues;
    for (const JobKindType& type : user->job_kinds()) queues.push_back(find(type.name));
    if (auto ok = user->use_queues(queues); !ok) return ok;
  }
  return {};
}

JobQueue* JobService::find(std::string_view kind) const {
  const auto found = std::ranges::find_if(queues_, [kind](const auto& queue) { return queue->name() == kind; });
  return found == queues_.end() ? nullptr : found->get();
}

std::vector<JobCounters> JobService::counters() const {
  std::vector<JobCounters> all;
  for (const auto& queue : queues_) all.push_back(queue->counters());
  return all;
}

void JobService::start() {
  cores_.start();
  for (const auto& queue : queues_) queue->start();
}

void JobService::refuse() {
  for (const auto& queue : queues_) queue->stop();
}

void JobService::stop() {
  cores_.stop();
  for (const auto& queue : queues_) {
    while (!queue->stop()) std::this_thread::yield();
  }
}

}  // namespace sluice::engine
