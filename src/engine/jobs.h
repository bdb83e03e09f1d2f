// The job queue: work for devices that is not frames (private-key operations, seals of records). Jobs of one kind are
// batched like frames, and have deadlines.
//
//   submitter ─submit─► waiting ─► a GPU's worker: gather, launch, poll ─► the client's ring ─poll─► submitter
//                               └► the cores' thread: gather, compute   ─►
//
// A kind of jobs (JobKind) is the code of one operation, for GPUs and for a core. It is registered by its name, or an
// element brings it. An element that submits jobs has the trait JobUser. For each kind that the elements of a chain
// name there is one JobQueue. Any thread submits by a JobClient, and polls it for the answers.
//
// Where a job is done: by a GPU if one works and can do the job (JobKind::on_device); else by the thread "sluice-jobs"
// on a core. A GPU's worker takes waiting jobs between its batches of frames. It has one launch of jobs under way at a
// time, on a stream of its own, within a slice of each cycle (job_pace.h). bound.h says what that adds to the bound of
// a frame. The thread on a core runs beside the lanes, on cores that they do not use. Several GPUs share one queue.
//
// What becomes of a job: submit() refuses it and says why, or accepts it. Each accepted job comes back to its client
// exactly once: done, done late, or not done (expired: its deadline passed before work on it began; stopped: the engine
// ended). When a GPU fails, the thread on a core does the jobs that the GPU had, from the beginning.
//     submitted = completed (late ones too) + refused + failed (expired, stopped) + in flight
//
// Thread-safety: as each call says. Submitting and polling take no lock; their only system call wakes a sleeping
// thread. Cost: about 0.4 us of a core for a small job, both sides together. Memory: for each kind, `slots` times the
// bytes of a job plus 64, pinned, allocated at start.
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

#include "base/bounded_queue.h"
#include "base/error.h"
#include "engine/bell.h"

namespace sluice::device {
class Gpu;
class GpuStream;
}  // namespace sluice::device

namespace sluice::engine {

// The jobs of a batch: a pointer to each one's slot of JobKind::Shape::bytes bytes, 64-byte aligned and pinned. GPUs
// use the same pointers.
using JobBatch = std::span<std::byte* const>;

class JobKind {
 public:
  virtual ~JobKind() = default;

  // Constant.
  struct Shape {
    std::uint32_t bytes = 0;     // of a job: the request and its answer
    std::uint32_t most = 256;    // jobs in one batch
    std::uint32_t slots = 1024;  // jobs under way at a time, of all clients together
  };
  virtual Shape shape() const = 0;

  // Called by the control thread for each GPU, before any job, and again behind detach(): allocates what launch()
  // needs. False: GPUs do no jobs of this kind.
  virtual Expected<bool> attach(device::Gpu& /*gpu*/, std::uint32_t /*device*/) { return false; }
  // The GPU is lost, and its worker has ended: destroys all that attach() has made on it. attach() may follow for the
  // same device, to begin anew. A kind with attach() has to have this.
  virtual void detach(std::uint32_t /*device*/) {}

  // Whether GPUs can do this job; if not, a core does. Called by any thread.
  virtual bool on_device(const std::byte* /*job*/) const { return true; }

  // The next three are called by each GPU's worker for its own device, so by several threads at once.
  //
  // Sends to the GPU what the next jobs need there, such as keys. False: it is not there yet, and the worker asks
  // again.
  virtual Expected<bool> ready(std::uint32_t /*device*/, device::GpuStream& /*stream*/) { return true; }
  // Enqueues the batch's work and returns without waiting. The stream is for jobs alone; a GPU has at most one batch of
  // a kind under way. launch() must not overwrite the request, because compute() may have to do the job again after the
  // GPU has failed. After an Error the work may have been done in part.
  virtual Expected<void> launch(JobBatch /*jobs*/, std::uint32_t /*device*/, device::GpuStream& /*stream*/) {
    return {};
  }
  // Called when the stream has finished the batch: writes the rest of the answers, such as verdicts, into the jobs.
  virtual void finish(JobBatch /*jobs*/, std::uint32_t /*device*/) {}

  // Computes the same answers on a core. Called by one thread.
  virtual void compute(JobBatch jobs) = 0;
};

struct JobKindType {
  std::string_view name;  // snake_case
  std::string_view text;
  std::function<Expected<std::unique_ptr<JobKind>>()> make;
};
// Allocates zeroed memory that devices can address, 64-byte aligned. It lives as long as the engine.
using JobMemory = std::function<Expected<void*>(std::size_t bytes)>;

// Registers a kind that is built in, as register_element() does an element. A name that is there already ends the
// program. A plug-in's elements bring their kinds by JobUser instead.
bool register_job_kind(JobKindType type);
const JobKindType* find_job_kind(std::string_view name);

enum class JobRefusal : std::uint8_t {
  none,      // accepted
  full,      // the client has as many jobs under way as it may, or all slots of the kind are in use
  too_late,  // the deadline has passed, or will have passed when the jobs before it are done, at the present speed
  stopped,   // the engine does not run
};
std::string_view refusal_text(JobRefusal refusal);

enum class JobOutcome : std::uint8_t {
  done,
  late,     // done, after its deadline
  expired,  // not done: the deadline passed before work on it began
  stopped,  // not done: the engine ended
};

struct JobAnswer {
  std::uint64_t tag;  // as submitted
  JobOutcome outcome;
  std::uint64_t ticks;  // from submit() until it was done
  std::span<const std::byte> job;
  bool done() const { return outcome == JobOutcome::done || outcome == JobOutcome::late; }
};

// Counters of a queue. A reader may see a job that is counted as submitted and not yet as anything else.
struct JobCounters {
  std::string_view kind;
  std::uint64_t submitted = 0, completed = 0, late = 0;
  std::uint64_t full = 0, too_late = 0, refused_stopped = 0;  // refused
  std::uint64_t expired = 0, failed_stopped = 0;              // failed
  std::uint64_t in_flight = 0;                                // accepted, and not back yet
  std::uint64_t batches_gpu = 0, jobs_gpu = 0, batches_cpu = 0, jobs_cpu = 0;
  std::uint64_t handed_over = 0;    // jobs that a GPU had when it failed; the thread on a core has them then
  std::uint64_t long_launches = 0;  // launches that took a GPU longer than the jobs' slice of a cycle
  std::uint64_t refused() const { return full + too_late + refused_stopped; }
  std::uint64_t failed() const { return expired + failed_stopped; }
  // submitted - completed - refused - failed - in flight; 0 while nobody submits.
  std::int64_t imbalance() const;
};

class JobQueue;
struct CloseJobClient;

// Submits jobs and takes their answers. Threads may share a client; then any of them may get any answer.
class JobClient {
 public:
  // `write(std::byte* job)` writes the request into the job's slot, which still has the bytes of the job before it.
  // `deadline`: absolute, by the time-stamp counter. If the job is refused, `write` is not called.
  template <class Write>
  JobRefusal submit(std::uint64_t tag, std::uint64_t deadline, Write&& write) {
    std::uint32_t slot = 0;
    if (const JobRefusal refusal = accept(deadline, slot); refusal != JobRefusal::none) return refusal;
    write(job(slot));
    send(slot, tag, deadline);
    return JobRefusal::none;
  }

  // Calls `take(const JobAnswer&)` for each job that is back, for at most `most`, and returns how many there were. The
  // job's bytes are valid until `take` returns.
  template <class Take>
  unsigned poll(Take&& take, unsigned most = ~0U) {
    unsigned taken = 0;
    for (std::uint32_t slot = 0; taken < most && back_.pop(slot); ++taken) {
      take(static_cast<const JobAnswer&>(answer(slot)));
      release(slot);
    }
    return taken;
  }
  // Jobs that were accepted and not polled yet.
  std::uint32_t under_way() const { return under_way_.load(std::memory_order_acquire); }

  // To sleep until answers come: call arm(), then poll() once more. If there was no answer, wait until fd() is readable
  // (poll, epoll). Then call disarm(). For one thread. fd() is -1 if the process has no file descriptor left: then
  // sleep in short steps.
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

// Closes a client: waits for its jobs under way and drops their answers. No other thread may use the client any more.
struct CloseJobClient {
  void operator()(JobClient* client) const;
};
using JobClientHandle = std::unique_ptr<JobClient, CloseJobClient>;

// The queue of one kind of jobs. It lives as long as the engine; all clients are closed before.
class JobQueue {
 public:
  using Now = std::uint64_t (*)();  // the time-stamp counter; tests have a clock of their own

  // `bells`: of the threads that do jobs; first that of the thread on a core.
  static Expected<std::unique_ptr<JobQueue>> create(std::string_view name, std::unique_ptr<JobKind> kind,
                                                    const JobMemory& memory, std::vector<Bell*> bells, Now now);

  // Opens a client that may have `most` jobs under way. Any thread; takes a lock, and allocates.
  JobClientHandle open(std::uint32_t most);
  std::string_view name() const { return name_; }
  JobKind& kind() { return *kind_; }
  const JobKind::Shape& shape() const { return shape_; }
  // Any thread. Costs a load for each slot.
  JobCounters counters() const;

  // From here on: for the threads that do jobs (job_service.h).

  // Slots in the order of submitting.
  struct Gathered {
    std::vector<std::uint32_t> slots;
    std::vector<std::byte*> jobs;
    std::size_t count = 0;
    explicit Gathered(std::uint32_t most) : slots(most), jobs(most) {}
    JobBatch batch() const { return {jobs.data(), count}; }
  };
  enum class By : std::uint8_t { core, gpu };
  // Takes at most `most` jobs that wait for a GPU, or for a core. Expired ones go back to their clients.
  void gather(By by, std::uint32_t most, Gathered& into);
  bool has_waiting(By by) const { return !(by == By::gpu ? for_gpus_ : for_cores_).empty(); }
  // Gives the jobs back to their clients as done.
  void deliver(By by, Gathered& done);
  // A GPU has failed: the jobs that it had go to the thread on a core.
  void hand_over(Gathered& lost);
  // Likewise, but GPU `device` may still write to them: their slots are not used again before release_doubted(), for
  // when it cannot any more.
  void hand_over_in_doubt(Gathered& lost, std::uint32_t device);
  void release_doubted(std::uint32_t device);
  // A GPU begins to do jobs; a GPU does no more.
  void gpu_joins() { gpus_.fetch_add(1); }
  void gpu_leaves();
  bool has_gpus() const { return gpus_.load() != 0; }
  // Reports that a batch of `jobs` took `ticks`, for the estimate behind too_late.
  void goes(std::uint64_t ticks, std::uint32_t jobs);
  void was_long() { long_launches_.fetch_add(1, std::memory_order_relaxed); }
  // From start() on jobs are accepted. After stop() they are refused. stop() gives waiting jobs back; jobs that are
  // being done are still delivered. It returns true when no job is in flight.
  void start() { runs_.store(true); }
  bool stop();

 private:
  friend class JobClient;
  friend struct CloseJobClient;
  struct alignas(64) Slot {
    enum class State : std::uint8_t { free, waiting, begun, back };
    // A GPU may write to it: while a client has it, and once the client has released it.
    enum class Doubt : std::uint8_t { none, in_use, released };
    JobClient* client = nullptr;
    std::uint64_t tag = 0, deadline = 0, submitted = 0, ended = 0;
    JobOutcome outcome = JobOutcome::done;
    std::atomic<State> state{State::free};
    std::atomic<Doubt> doubt{Doubt::none};
    std::atomic<std::uint32_t> doubted_device{0};  // who may write to it
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
  // The kinds that the element submits: registered ones (find_job_kind()), or its own. If two elements of a chain name
  // the same kind, the first one's is used.
  virtual std::vector<JobKindType> job_kinds() const = 0;
  // Called once, after attach() and before lanes start: the queues of these kinds, in the same order. The element may
  // open clients now. Jobs are accepted once the engine runs. The element closes its clients in its destructor.
  virtual Expected<void> use_queues(std::span<JobQueue* const> queues) = 0;

 protected:
  ~JobUser() = default;
};

}  // namespace sluice::engine
