#include "engine/jobs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::size_t line = 64;

std::vector<JobKindType>& kinds() {
  static std::vector<JobKindType> instance;
  return instance;
}

void add(std::atomic<std::uint64_t>& count, std::uint64_t n = 1) {
  count.fetch_add(n, std::memory_order_relaxed);
}
std::uint64_t get(const std::atomic<std::uint64_t>& count) {
  return count.load(std::memory_order_acquire);
}

}  // namespace

bool register_job_kind(JobKindType type) {
  if (find_job_kind(type.name) != nullptr) {
    std::fprintf(stderr, "job kind '%.*s' is registered twice\n", static_cast<int>(type.name.size()), type.name.data());
    std::abort();
  }
  kinds().push_back(std::move(type));
  return true;
}

const JobKindType* find_job_kind(std::string_view name) {
  const auto found = std::ranges::find(kinds(), name, &JobKindType::name);
  return found == kinds().end() ? nullptr : &*found;
}

std::string_view refusal_text(JobRefusal refusal) {
  switch (refusal) {
    case JobRefusal::none:
      return "accepted";
    case JobRefusal::full:
      return "too many jobs are under way";
    case JobRefusal::too_late:
      return "it could not be done by its deadline";
    case JobRefusal::stopped:
      return "the engine does not run";
  }
  return "";
}

std::int64_t JobCounters::imbalance() const {
  return static_cast<std::int64_t>(submitted) - static_cast<std::int64_t>(completed + refused() + failed() + in_flight);
}

// -- The submitter's side ---------------------------------------------------------------------------------------------

JobRefusal JobClient::accept(std::uint64_t deadline, std::uint32_t& slot) {
  add(queue_.submitted_);
  if (under_way_.fetch_add(1, std::memory_order_relaxed) >= most_) {
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    add(queue_.full_);
    return JobRefusal::full;
  }
  // Before runs_ is asked: stop() sees this job, or this sees that it was called.
  queue_.accepted_.fetch_add(1);
  const auto refuse = [&](std::atomic<std::uint64_t>& count, JobRefusal why) {
    queue_.returned_.fetch_add(1);
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    add(count);
    return why;
  };
  if (!queue_.runs_.load()) return refuse(queue_.refused_stopped_, JobRefusal::stopped);
  const std::uint64_t now = queue_.now_();
  if (deadline <= now || queue_.expected_ticks() > deadline - now)
    return refuse(queue_.too_late_, JobRefusal::too_late);
  if (!queue_.free_.pop(slot)) return refuse(queue_.full_, JobRefusal::full);
  queue_.slots_[slot].submitted = now;
  return JobRefusal::none;
}

std::byte* JobClient::job(std::uint32_t slot) const {
  return queue_.job(slot);
}

void JobClient::send(std::uint32_t slot, std::uint64_t tag, std::uint64_t deadline) {
  JobQueue::Slot& one = queue_.slots_[slot];
  one.client = this;
  one.tag = tag;
  one.deadline = deadline;
  one.state.store(JobQueue::Slot::State::waiting, std::memory_order_relaxed);
  // The rings have capacity for all slots.
  const bool for_gpu = queue_.has_gpus() && queue_.kind_->on_device(queue_.job(slot));
  (for_gpu ? queue_.for_gpus_ : queue_.for_cores_).push(slot);
  queue_.ring_bells();
}

JobAnswer JobClient::answer(std::uint32_t slot) const {
  const JobQueue::Slot& one = queue_.slots_[slot];
  return {one.tag, one.outcome, one.ended - one.submitted, {queue_.job(slot), queue_.shape_.bytes}};
}

void JobClient::release(std::uint32_t slot) {
  queue_.slots_[slot].state.store(JobQueue::Slot::State::free, std::memory_order_relaxed);
  JobQueue::Slot::Doubt doubt = JobQueue::Slot::Doubt::in_use;
  const bool is_kept = queue_.slots_[slot].doubt.compare_exchange_strong(doubt, JobQueue::Slot::Doubt::released);
  if (!is_kept) queue_.free_.push(slot);
  under_way_.fetch_sub(1, std::memory_order_release);
}

void CloseJobClient::operator()(JobClient* client) const {
  client->queue_.close(*client);
}

// -- The queue --------------------------------------------------------------------------------------------------------

Expected<std::unique_ptr<JobQueue>> JobQueue::create(std::string_view name, std::unique_ptr<JobKind> kind,
                                                     const JobMemory& memory, std::vector<Bell*> bells, Now now) {
  const JobKind::Shape shape = kind->shape();
  if (shape.bytes == 0 || shape.most == 0 || shape.slots < shape.most) {
    return make_error("jobs of the kind '" + std::string(name) + "' have " + std::to_string(shape.bytes) + " bytes, " +
                      std::to_string(shape.most) + " to a batch, and there are " + std::to_string(shape.slots) +
                      " slots for them: none may be 0, and a batch has to fit");
  }
  std::unique_ptr<JobQueue> queue(new JobQueue(name, std::move(kind), std::move(bells), now));
  auto base = memory(shape.slots * queue->stride_);
  if (!base) return tl::unexpected(base.error());
  queue->memory_ = static_cast<std::byte*>(*base);
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot) queue->free_.push(slot);
  return queue;
}

JobQueue::JobQueue(std::string_view name, std::unique_ptr<JobKind> kind, std::vector<Bell*> bells, Now now)
    : name_(name),
      kind_(std::move(kind)),
      shape_(kind_->shape()),
      bells_(std::move(bells)),
      now_(now),
      stride_((shape_.bytes + line - 1) / line * line),
      slots_(std::make_unique<Slot[]>(shape_.slots)),
      free_(shape_.slots),
      for_gpus_(shape_.slots),
      for_cores_(shape_.slots) {}

JobClientHandle JobQueue::open(std::uint32_t most) {
  const std::lock_guard lock(opening_);
  for (const auto& client : clients_) {
    if (client->open_ || client->most_ != most) continue;
    client->open_ = true;
    return JobClientHandle(client.get());
  }
  clients_.emplace_back(new JobClient(*this, most));
  return JobClientHandle(clients_.back().get());
}

void JobQueue::close(JobClient& client) {
  while (client.under_way() != 0) {
    if (client.poll([](const JobAnswer&) {}) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  // Whoever has just pushed its last answer may still ring its bell: so its memory stays.
  const std::lock_guard lock(opening_);
  client.open_ = false;
}

// The bells' fences come behind the push. So if no GPU took part any more when the cores' thread last looked for jobs
// of GPUs, it is rung here.
void JobQueue::ring_bells() {
  for (Bell* const bell : bells_) bell->ring();
}

std::uint64_t JobQueue::expected_ticks() const {
  // Without the one that asks.
  const std::uint64_t ahead = get(accepted_) - get(returned_) - 1;
  if (ahead == 0 || ahead > shape_.slots) return 0;
  return (ahead / get(batch_jobs_) + 1) * get(batch_ticks_);
}

void JobQueue::goes(std::uint64_t ticks, std::uint32_t jobs) {
  batch_ticks_.store(ticks, std::memory_order_relaxed);
  batch_jobs_.store(std::max(jobs, 1U), std::memory_order_relaxed);
}

void JobQueue::gather(By by, std::uint32_t most, Gathered& into) {
  BoundedQueue<std::uint32_t>& waiting = by == By::gpu ? for_gpus_ : for_cores_;
  const std::uint64_t now = now_();
  std::uint32_t slot = 0;
  most = std::min<std::uint32_t>(most, static_cast<std::uint32_t>(into.slots.size()));
  while (into.count < most && waiting.pop(slot)) {
    if (slots_[slot].deadline <= now) {
      give_back(slot, JobOutcome::expired, now);
      continue;
    }
    slots_[slot].state.store(Slot::State::begun, std::memory_order_relaxed);
    into.slots[into.count] = slot;
    into.jobs[into.count] = job(slot);
    ++into.count;
  }
}

void JobQueue::deliver(By by, Gathered& done) {
  const std::uint64_t now = now_();
  add(by == By::gpu ? batches_gpu_ : batches_cpu_);
  add(by == By::gpu ? jobs_gpu_ : jobs_cpu_, done.count);
  for (std::size_t i = 0; i < done.count; ++i) {
    give_back(done.slots[i], now > slots_[done.slots[i]].deadline ? JobOutcome::late : JobOutcome::done, now);
  }
  done.count = 0;
}

void JobQueue::give_back(std::uint32_t slot, JobOutcome outcome, std::uint64_t now) {
  Slot& one = slots_[slot];
  JobClient& client = *one.client;
  one.outcome = outcome;
  one.ended = now;
  // First, so that a reader of the counters misses a job rather than sees it twice.
  one.state.store(Slot::State::back, std::memory_order_release);
  add(outcome == JobOutcome::expired ? expired_ : outcome == JobOutcome::stopped ? failed_stopped_ : completed_);
  if (outcome == JobOutcome::late) add(late_);
  returned_.fetch_add(1);
  client.back_.push(slot);
  client.bell_.ring();
}

void JobQueue::hand_over(Gathered& lost) {
  add(handed_over_, lost.count);
  for (std::size_t i = 0; i < lost.count; ++i) {
    slots_[lost.slots[i]].state.store(Slot::State::waiting, std::memory_order_relaxed);
    for_cores_.push(lost.slots[i]);
  }
  lost.count = 0;
  ring_bells();
}

void JobQueue::hand_over_in_doubt(Gathered& lost, std::uint32_t device) {
  for (std::size_t i = 0; i < lost.count; ++i) {
    slots_[lost.slots[i]].doubted_device.store(device);
    slots_[lost.slots[i]].doubt.store(Slot::Doubt::in_use);
  }
  hand_over(lost);
}

void JobQueue::release_doubted(std::uint32_t device) {
  for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
    Slot& one = slots_[slot];
    if (one.doubt.load() == Slot::Doubt::none || one.doubted_device.load() != device) continue;
    if (one.doubt.exchange(Slot::Doubt::none) == Slot::Doubt::released) free_.push(slot);
  }
}

void JobQueue::gpu_leaves() {
  gpus_.fetch_sub(1);
  ring_bells();
}

void JobQueue::fail_waiting(By by) {
  BoundedQueue<std::uint32_t>& waiting = by == By::gpu ? for_gpus_ : for_cores_;
  const std::uint64_t now = now_();
  for (std::uint32_t slot = 0; waiting.pop(slot);) give_back(slot, JobOutcome::stopped, now);
}

bool JobQueue::stop() {
  runs_.store(false);
  fail_waiting(By::gpu);
  fail_waiting(By::core);
  return accepted_.load() == returned_.load();
}

// What can only lack is read first, so that a job that moves meanwhile is at worst not seen.
JobCounters JobQueue::counters() const {
  JobCounters all;
  all.kind = name_;
  all.completed = get(completed_);
  all.late = get(late_);
  all.full = get(full_);
  all.too_late = get(too_late_);
  all.refused_stopped = get(refused_stopped_);
  all.expired = get(expired_);
  all.failed_stopped = get(failed_stopped_);
  for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const Slot::State state = slots_[slot].state.load(std::memory_order_acquire);
    all.in_flight += state == Slot::State::waiting || state == Slot::State::begun ? 1 : 0;
  }
  all.submitted = get(submitted_);
  all.batches_gpu = get(batches_gpu_);
  all.jobs_gpu = get(jobs_gpu_);
  all.batches_cpu = get(batches_cpu_);
  all.jobs_cpu = get(jobs_cpu_);
  all.handed_over = get(handed_over_);
  all.long_launches = get(long_launches_);
  return all;
}

}  // namespace sluice::engine
