// The job queue: a device's second entrance, for work that is no frame (private-key operations, seals of records).
// Jobs of a kind are batched like frames, and have deadlines.
//
//   submitter ─submit─► waiting ─► a GPU's worker: gather, launch, poll ─► the client's ring ─poll─► submitter
//                               └► the cores' thread: gather, compute   ─►
//
// A kind of jobs (JobKind) is one operation's code for GPUs and for a core. It is registered by its name, or an
// element brings it. An element that submits jobs says so by the trait JobUser; for each kind that a chain's elements
// name there is one JobQueue. Any thread submits by a JobClient, and takes the answers by polling it.
//
// Where a job is done: by a GPU, if one is there, works, and can do it (JobKind::on_device); else by the cores' thread,
// "sluice-jobs". A GPU's worker takes what has gathered between its batches of frames, one launch of jobs at a time,
// on a stream of its own, and within a slice of each cycle (job_pace.h; bound.h says what that adds to the bound of a
// frame). The cores' thread runs beside the lanes, on cores that they have not. Several GPUs take from the same queue.
//
// What becomes of a job: it is refused (submit() says why), or accepted. An accepted one comes back to its client,
// always, once: done, done late, or not done (expired: its deadline passed before anything began it; stopped: the
// engine ended). A GPU that fails hands the jobs that it had to the cores' thread, which does them from the beginning.
//     submitted = completed (late ones too) + refused + failed (expired, stopped) + in flight
//
// Thread-safety: as each call says. Submitting and polling take no lock and make no system call, but to wake a thread
// that sleeps. Cost: about 0.4 us of a core for a small job, both sides together. Memory: pinned, `slots` of a kind
// times the bytes of a job and 64, allocated at start.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/bell.h"
#include "engine/bounded_queue.h"

namespace sluice::device {
class Gpu;
class GpuStream;
}  // namespace sluice::device

namespace sluice::engine {

// The jobs of a batch, each in its slot: JobKind::Shape::bytes, 64-byte aligned, pinned, and addressed by GPUs as on
// the host.
using JobBatch = std::span<std::byte* const>;

class JobKind {
 public:
  virtual ~JobKind() = default;

  // Constant.
  struct Shape {
    std::uint32_t bytes = 0;     // of a job: what is asked, and capacity for the answer
    std::uint32_t most = 256;    // jobs of a batch
    std::uint32_t slots = 1024;  // jobs under way, of all clients together
  };
  virtual Shape shape() const = 0;

  // The control thread, once for each GPU, before any job: allocates what launch() needs. False: GPUs do none of these
  // jobs.
  virtual Expected<bool> attach(device::Gpu& /*gpu*/, std::uint32_t /*device*/) { return false; }

  // Whether GPUs can do this job; else cores do. Any thread.
  virtual bool on_device(const std::byte* /*job*/) const { return true; }

  // The next three: each GPU's worker for its own device, several at once. ready() sends what the jobs that it has
  // gathered need and the GPU has not, such as keys. False: they have to wait, it is asked again.
  virtual Expected<bool> ready(std::uint32_t /*device*/, device::GpuStream& /*stream*/) { return true; }
  // Enqueues the batch's work and returns without waiting. The stream is the jobs' own: one batch of a kind is under
  // way on a GPU at most. What is asked stays as it is: if the GPU fails, compute() follows. After an error the batch
  // may be worked on in part.
  virtual Expected<void> launch(JobBatch /*jobs*/, std::uint32_t /*device*/, device::GpuStream& /*stream*/) {
    return {};
  }
  // The stream has passed the batch: what else belongs to the answers, such as verdicts, is written to the jobs.
  virtual void finish(JobBatch /*jobs*/, std::uint32_t /*device*/) {}

  // The same answers on a core. One thread.
  virtual void compute(JobBatch jobs) = 0;
};

struct JobKindType {
  std::string_view name;  // snake_case
  std::string_view text;
  std::function<Expected<std::unique_ptr<JobKind>>()> make;
};
// Gives zeroed memory that devices can address, 64-byte aligned, alive as long as the engine.
using JobMemory = std::function<Expected<void*>(std::size_t bytes)>;

// A kind of the program's own, as register_element(): a name that is there already ends the program. A plug-in's
// elements bring theirs (JobUser).
bool register_job_kind(JobKindType type);
const JobKindType* find_job_kind(std::string_view name);

enum class JobRefusal : std::uint8_t {
  none,      // accepted
  full,      // the client has as many under way as it may, or all slots of the kind are taken
  too_late,  // the deadline has passed, or will have when those in front of it are done, as it goes now
  stopped,   // the engine does not run
};
std::string_view refusal_text(JobRefusal refusal);

enum class JobOutcome : std::uint8_t {
  done,
  late,     // done, behind its deadline
  expired,  // not done: the deadline passed before anything began it
  stopped,  // not done: the engine ended
};

struct JobAnswer {
  std::uint64_t tag;  // as submitted
  JobOutcome outcome;
  std::uint64_t ticks;  // from submit() until it was done
  std::span<const std::byte> job;
  bool done() const { return outcome == JobOutcome::done || outcome == JobOutcome::late; }
};

// Numbers of a queue. A reader may see a job that is counted as submitted and not yet as anything else.
struct JobCounters {
  std::string_view kind;
  std::uint64_t submitted = 0, completed = 0, late = 0;
  std::uint64_t full = 0, too_late = 0, refused_stopped = 0;  // refused
  std::uint64_t expired = 0, failed_stopped = 0;              // failed
  std::uint64_t in_flight = 0;                                // accepted, and not yet back
  std::uint64_t batches_gpu = 0, jobs_gpu = 0, batches_cpu = 0, jobs_cpu = 0;
  std::uint64_t handed_over = 0;    // jobs that a GPU which failed had, done by the cores' thread or expired there
  std::uint64_t long_launches = 0;  // launches that took a GPU longer than the jobs' slice of a cycle
  std::uint64_t refused() const { return full + too_late + refused_stopped; }
  std::uint64_t failed() const { return expired + failed_stopped; }
  // submitted - completed - refused - failed - in flight; 0 while nobody submits.
  std::int64_t imbalance() const;
};

class JobQueue;
struct CloseJobClient;

// Where jobs are submitted and their answers taken. Any threads may share one, but take answers in any order then.
class JobClient {
 public:
  // `write(std::byte* job)` writes what is asked into the job's slot, which holds what the job before it left there.
  // `deadline`: by the time-stamp counter, absolute. Nothing is called or kept where the job is refused.
  template <class Write>
  JobRefusal submit(std::uint64_t tag, std::uint64_t deadline, Write&& write) {
    std::uint32_t slot = 0;
    if (const JobRefusal refusal = accept(deadline, slot); refusal != JobRefusal::none) return refusal;
    write(job(slot));
    send(slot, tag, deadline);
    return JobRefusal::none;
  }

  // Calls `take(const JobAnswer&)` for those that are back, `most` at most, and returns how many. The job's bytes are
  // there until `take` returns.
  template <class Take>
  unsigned poll(Take&& take, unsigned most = ~0U) {
    unsigned taken = 0;
    for (std::uint32_t slot = 0; taken < most && back_.pop(slot); ++taken) {
      take(static_cast<const JobAnswer&>(answer(slot)));
      release(slot);
    }
    return taken;
  }
  // Accepted, and not yet polled.
  std::uint32_t under_way() const { return under_way_.load(std::memory_order_acquire); }

  // To sleep until answers come: arm(), poll() once more, and if there is none wait until fd() is readable (poll,
  // epoll), then disarm(). One thread. -1: the process has no file descriptor left; then sleep in short steps.
  int fd() const { return bell_.fd(); }
  void arm() { bell_.arm(); }
  void disarm() { bell_.clear(); }

 private:
  friend class JobQueue;
  friend struct CloseJobClient;
  JobClient(JobQueue& queue, std::uint32_t most) : queue_(queue), most_(most), back_(most) {}

  JobRefusal accept(std::uint64_t deadline, std::uint32_t& slot);
  std::byte* job(std::uint32_t slot) const;
  void send(std::uint32_t slot, std::uint64_t tag, std::uint64_t deadline);
  JobAnswer answer(std::uint32_t slot) const;
  void release(std::uint32_t slot);

  JobQueue& queue_;
  std::uint32_t most_;
  bool open_ = true;  // the queue's, under its mutex
  std::atomic<std::uint32_t> under_way_{0};
  BoundedQueue<std::uint32_t> back_;
  Bell bell_;
};

// Ends the use of a client: takes back what is under way, and waits for it. No other thread uses it any more.
struct CloseJobClient {
  void operator()(JobClient* client) const;
};
using JobClientHandle = std::unique_ptr<JobClient, CloseJobClient>;

// The jobs of one kind. It lives as long as the engine; clients end before it.
class JobQueue {
 public:
  using Now = std::uint64_t (*)();  // the time-stamp counter; a test has a clock of its own

  // `bells`: of the threads that do jobs, the cores' first.
  static Expected<std::unique_ptr<JobQueue>> create(std::string_view name, std::unique_ptr<JobKind> kind,
                                                    const JobMemory& memory, std::vector<Bell*> bells, Now now);

  // For `most` jobs under way at a time. Any thread; takes a lock, and allocates.
  JobClientHandle open(std::uint32_t most);
  std::string_view name() const { return name_; }
  JobKind& kind() { return *kind_; }
  const JobKind::Shape& shape() const { return shape_; }
  // Any thread. Costs a load for each slot.
  JobCounters counters() const;

  // From here on: of those who do jobs (job_service.h).

  // Slots in the order of submitting.
  struct Gathered {
    std::vector<std::uint32_t> slots;
    std::vector<std::byte*> jobs;
    std::size_t count = 0;
    explicit Gathered(std::uint32_t most) : slots(most), jobs(most) {}
    JobBatch batch() const { return {jobs.data(), count}; }
  };
  enum class By : std::uint8_t { core, gpu };
  // At most so many of those that wait for a GPU, or for the cores; what has expired goes back.
  void gather(By by, std::uint32_t most, Gathered& into);
  bool has_waiting(By by) const { return !(by == By::gpu ? for_gpus_ : for_cores_).empty(); }
  // Gives them back as done.
  void deliver(By by, Gathered& done);
  // A GPU's, to the cores.
  void hand_over(Gathered& lost);
  // A GPU takes part, or does so no more.
  void gpu_joins() { gpus_.fetch_add(1); }
  void gpu_leaves();
  bool has_gpus() const { return gpus_.load() != 0; }
  // How it goes: a batch of so many takes so long.
  void goes(std::uint64_t ticks, std::uint32_t jobs);
  void was_long() { long_launches_.fetch_add(1, std::memory_order_relaxed); }
  // From start() on jobs are accepted. After stop() none is; what waits goes back, and what others still do, they
  // deliver. True: nothing is in flight.
  void start() { runs_.store(true); }
  bool stop();

 private:
  friend class JobClient;
  friend struct CloseJobClient;
  struct alignas(64) Slot {
    enum class State : std::uint8_t { free, waiting, begun, back };
    JobClient* client = nullptr;
    std::uint64_t tag = 0, deadline = 0, submitted = 0, ended = 0;
    JobOutcome outcome = JobOutcome::done;
    std::atomic<State> state{State::free};
  };
  using Count = std::atomic<std::uint64_t>;

  JobQueue(std::string_view name, std::unique_ptr<JobKind> kind, std::vector<Bell*> bells, Now now);
  void close(JobClient& client);
  std::byte* job(std::uint32_t slot) const { return memory_ + std::size_t{slot} * stride_; }
  void give_back(std::uint32_t slot, JobOutcome outcome, std::uint64_t now);
  void ring_bells();
  std::uint64_t expected_ticks() const;
  void fail_waiting(By by);

  const std::string_view name_;
  const std::unique_ptr<JobKind> kind_;
  const JobKind::Shape shape_;
  const std::vector<Bell*> bells_;
  const Now now_;
  const std::size_t stride_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<Slot[]> slots_;
  BoundedQueue<std::uint32_t> free_, for_gpus_, for_cores_;
  std::mutex opening_;
  std::vector<std::unique_ptr<JobClient>> clients_;  // those that were closed are opened again
  std::atomic<unsigned> gpus_{0};
  std::atomic<bool> runs_{false};
  Count batch_ticks_{0}, batch_jobs_{1};
  alignas(64) Count submitted_{0}, accepted_{0};
  Count full_{0}, too_late_{0}, refused_stopped_{0};
  alignas(64) Count returned_{0};
  Count completed_{0}, late_{0}, expired_{0}, failed_stopped_{0};
  Count batches_gpu_{0}, jobs_gpu_{0}, batches_cpu_{0}, jobs_cpu_{0}, handed_over_{0}, long_launches_{0};
};

// The trait of an element that submits jobs (traits.h).
class JobUser {
 public:
  static constexpr std::string_view trait_name = "job_user";
  // The kinds: registered ones (find_job_kind()), or of its own. Of two of the same name in a chain, the first one's.
  virtual std::vector<JobKindType> job_kinds() const = 0;
  // Once, before lanes start, behind attach(): the queues of these kinds, in their order. Clients may be opened; jobs
  // are accepted once the engine runs. The element closes its clients when it ends.
  virtual Expected<void> use_queues(std::span<JobQueue* const> queues) = 0;

 protected:
  ~JobUser() = default;
};

}  // namespace sluice::engine
