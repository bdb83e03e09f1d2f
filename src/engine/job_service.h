// Who does the jobs (jobs.h): for each GPU a JobDevice, which its worker asks between batches of frames, and for the
// cores one thread. And the queues of the kinds that a chain's elements name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"
#include "engine/bell.h"
#include "engine/bound.h"
#include "engine/inline_pace.h"
#include "engine/job_pace.h"
#include "engine/jobs.h"
#include "engine/pipeline.h"

namespace sluice::engine {

// Deadlines are of `now`, which has so many ticks in a second.
struct JobClock {
  JobQueue::Now now;
  std::uint64_t hz;
  std::uint64_t ticks(std::chrono::nanoseconds time) const;
  std::chrono::microseconds time(std::uint64_t ticks) const;
};

// Of one GPU. The thread of its worker, but the constructor and add().
class JobDevice {
 public:
  // `stream`: the jobs' own.
  struct Parts {
    device::Gpu* gpu;
    std::uint32_t device;
    unsigned stream;
    Timing timing;
    JobClock clock;
  };
  explicit JobDevice(const Parts& parts);
  void add(JobQueue& queue);

  // The queues count on it from here on.
  void join();
  // Of a GPU that it has left, while its worker does not run (JobKind::detach(), attach()). Between the two the GPU is
  // reset: it writes to no job any more.
  void detach();
  Expected<void> attach();
  // A look at what is under way, or, when nothing is and the pace allows it, at what waits: how much it moved. An
  // Error: the GPU has failed, and leave() follows. `frames`: whether batches of frames are on the GPU. Where none are,
  // the next launch waits for no cycle: one that comes meets this launch, and then one in each cycle, as any other.
  Expected<unsigned> work(bool frames);
  bool under_way() const { return launched_; }
  bool has_waiting() const;
  // What it has goes to the cores, once the GPU has let go of it or `until` is past; it takes no more. Does nothing
  // when it has left. Jobs that the GPU has not let go of by then are done on a core, but in slots that are not used
  // again before attach().
  void leave(std::uint64_t until);
  // The same for a worker that hangs in a call of the driver. Any other thread.
  void take_away();

 private:
  struct Kind {
    JobQueue* queue;
    JobPace pace;
    JobQueue::Gathered batch;
    unsigned long_ones = 0;  // launches of one job in a row, after which it seemed to take longer than the slice
  };
  Expected<unsigned> look();
  Expected<unsigned> launch(Kind& kind);
  void finish(Kind& kind);
  void give_back_held(bool in_doubt);
  Kind* gather();

  Parts parts_;
  std::uint64_t slice_, cycle_, hang_;  // ticks
  std::vector<Kind> kinds_;
  std::size_t turn_ = 0;
  std::atomic<Kind*> held_{nullptr};  // gathered, and perhaps launched; whoever takes it out gives it back
  bool launched_ = false;
  std::atomic<bool> joined_{false};
  std::uint64_t began_ = 0, next_ = 0;
  bool makes_up_ = false;  // until next_, for a launch that was too long
};

// Of the cores: one thread.
class JobCores {
 public:
  explicit JobCores(const JobClock& clock) : clock_(clock) {}
  ~JobCores() { stop(); }
  void add(JobQueue& queue) { kinds_.emplace_back(queue); }
  Bell& bell() { return bell_; }

  void start();
  // Ends when it has done what it has begun.
  void stop();
  // One batch of each kind, as far as some wait: how many jobs. The thread's, or a test's.
  unsigned round();

 private:
  struct Kind {
    explicit Kind(JobQueue& of) : queue(&of), batch(of.shape().most) {}
    JobQueue* queue;
    FrameCost cost;  // of a job
    JobQueue::Gathered batch;
  };
  void run();
  unsigned round(Kind& kind);
  bool has_waiting() const;

  JobClock clock_;
  std::deque<Kind> kinds_;  // stay where they are
  Bell bell_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class JobService {
 public:
  struct Parts {
    std::span<const std::unique_ptr<device::Gpu>> gpus;
    JobMemory memory;
    std::vector<Bell*> worker_bells;  // of each GPU's worker
    Timing timing;
    JobClock clock;
  };
  // Makes the kinds that the pipeline's elements name, and attaches them to all GPUs.
  static Expected<std::unique_ptr<JobService>> create(Pipeline& pipeline, Parts parts);
  // Gives its queues to each element that submits jobs.
  Expected<void> notify_users(Pipeline& pipeline);

  JobDevice& device(std::size_t i) { return *devices_[i]; }
  JobCores& cores() { return cores_; }
  std::span<const std::unique_ptr<JobQueue>> queues() const { return queues_; }
  JobQueue* find(std::string_view kind) const;
  std::vector<JobCounters> counters() const;

  void start();
  // No job is accepted from here on, and what waits goes back. Before workers stop.
  void refuse();
  // When workers have stopped: everything has gone back.
  void stop();

 private:
  explicit JobService(Parts parts) : parts_(std::move(parts)), cores_(parts_.clock) {}
  Expected<void> add(const JobKindType& type);

  Parts parts_;
  JobCores cores_;
  std::vector<std::unique_ptr<JobDevice>> devices_;
  std::vector<std::unique_ptr<JobQueue>> queues_;
};

}  // namespace sluice::engine
