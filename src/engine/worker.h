// The thread that drives one GPU: at each time point P_k it notifies the lanes, submits the batches that they seal, and
// hands back what the device has finished. Time points are absolute (time_points.h), so they do not drift.
// A pass that can (traits.h, Together) has what is sealed when the worker looks launched together, of all lanes or of
// one, while streams have few launches to do: what would wait for the device waits for company, so that
// under load launches are large and few. While the device keeps up, no batch waits.
//
// Between batches it looks after the jobs of its GPU (job_service.h), if the chain submits some; they have a stream of
// their own.
//
// When polling is adaptive it sleeps between time points, and through them while no lane sends to the device.
//
// When the device fails (docs/device-failure.md), device_up falls, later batches are handed back as failed (their lanes
// compute them), and what is on the device is handed back as its marks answer. When they do not for the limit of
// silence, lanes take back what they have there, and the worker only waits for the marks, so that memory that was put
// aside can be used again. It goes on notifying lanes of time points, so that nothing waits. A worker that hangs in a
// call of the driver itself is seen by the lanes (lane.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "device/gpu.h"
#include "engine/bound.h"
#include "engine/histogram.h"
#include "engine/job_service.h"
#include "engine/lane.h"
#include "engine/pipeline.h"
#include "engine/silence.h"
#include "engine/time_points.h"

namespace sluice::engine {

struct WorkerCounters {
  Counter cycles;       // time points of the first lane
  Counter late_cycles;  // time points, of one lane or of several at once, that were passed more than half a cycle late
  Counter overruns;     // batches that took longer than Timing::on_device() from sealing to being handed back
  Counter slow_launches;    // calls of the driver that took longer than stall_gap_us
  Counter launches;         // of one batch or several
  Counter batches, frames;  // handed back done
  Counter busy;             // time-stamp counter ticks of rounds that launched or handed back
};

// One line of the log for a loss, whoever sees it first.
void log_loss(const device::Gpu& gpu, LossReport& loss);

class Worker {
 public:
  struct Parts {
    device::Gpu* gpu;
    std::uint32_t device;  // DevicePlan::device
    Pipeline* pipeline;
    std::vector<Lane*> lanes;  // at least one; those are served whose device() it is
    Clock* clock;
    Timing timing;
    Mode mode;
    int core;
    bool busy;
    Scheduling scheduling;
    JobDevice* jobs = nullptr;            // null: the chain submits none. Else the GPU's last stream is theirs.
    std::chrono::nanoseconds silence{0};  // for which the device may not answer; 0: as docs/device-failure.md says
  };
  explicit Worker(Parts parts);
  ~Worker() { stop(); }

  void start();
  // Ends after every batch that is on the device has come back, or is given up. False: the worker hangs in a call of
  // the driver. It is left behind, and all that its Parts name has to stay.
  bool stop();
  // Whether the thread has ended; waits for it for as long as stop() does.
  bool has_ended();
  // Whether it has given up its device and all that waits for it.
  bool has_left() const { return left_.load(std::memory_order_acquire); }
  // These two behind stop(), on the same thread.
  // Hands back what lanes have sealed, or what the device has answered for, since the thread ended. False: it has not
  // answered for all.
  bool settle();
  // start() may follow: what it knows of its device stays.
  void resume();
  // The same, when its device is as new (Gpu::reset()) and nothing is left (settle()): only the counters stay.
  void begin_again();

  const WorkerCounters& counters() const { return counters_; }
  // Time from sealing a batch to handing it back, in time-stamp counter ticks: T_S of the running
  // configuration.
  const Histogram& device_time() const { return device_time_; }

 private:
  // Batches that the device works on together.
  struct Launch {
    std::array<Batch*, most_together> batch{};
    std::size_t count = 0;
    std::uint64_t tsc = 0;    // when it was submitted
    std::uint64_t bytes = 0;  // of its frames
    bool refused = false;     // a part of it may be on the device
    std::span<Batch* const> batches() const { return {batch.data(), count}; }
  };
  struct Stream {
    std::vector<Launch> pending;  // a ring of GpuStream::max_marks
    unsigned head = 0;
    unsigned count = 0;
    std::uint64_t bytes = 0;  // under way
    SilenceWatch silence;
    const Launch& oldest() const { return pending[head]; }
    Launch& next() { return pending[(head + count) % pending.size()]; }
    void push() {
      bytes += next().bytes;
      ++count;
    }
    void pop() {
      bytes -= oldest().bytes;
      head = (head + 1) % pending.size();
      --count;
    }
  };
  void run();
  unsigned submit();
  unsigned idlest_stream() const;
  void gather(Launch& launch);
  void gather(unsigned pass, Launch& launch);
  void gather_of_one_lane(unsigned pass, Launch& launch);
  void take(Batch* batch, Launch& launch) const;
  void submit(unsigned s);
  unsigned reap();
  unsigned reap(unsigned s);
  void hand_back(const Launch& launch);
  void count_done(const Batch& batch);
  void pass_time_points(TimePoints& points, std::uint64_t now);
  void begin_cycle();
  void lose_device(const std::string& why, Loss how = Loss::failed);
  void reap_lost();
  void leave_device();
  unsigned fail_sealed();
  bool serves(const Lane& lane) const { return lane.device() == parts_.device; }
  bool has_pending() const;
  // What counts of the time between two looks at a silent device, at most.
  std::uint64_t step() const { return silence_limit_.get() / steps_of_silence; }
  std::uint64_t longest_call() const;
  static void finish(Batch& batch, BatchState state);
  static void finish(const Launch& launch, BatchState state);
  // Until the time point, or longer when nobody waits for it; whether it was longer.
  bool sleep_until(std::uint64_t point);
  unsigned work_on_jobs();

  Parts parts_;
  WorkerCounters counters_;
  Histogram device_time_;
  std::vector<Stream> streams_;
  unsigned next_look_ = 0;  // the stream that is asked for what it has done out of turn
  // Of each pass: whose sealed batch is looked for first, and batches in a launch.
  struct Pass {
    std::size_t next_lane = 0;
    std::size_t together = 1;
    bool of_one_lane = false;
  };
  std::vector<Pass> passes_;
  unsigned next_pass_ = 0;
  std::uint64_t overrun_tsc_ = 0;
  std::uint64_t slow_launch_tsc_ = 0;
  SilenceLimit silence_limit_, call_limit_;
  SilenceWatch lost_silence_;      // of the device, since it was given up
  bool given_up_ = false;          // on the device: it gets no more
  std::atomic<bool> left_{false};  // and its tables, jobs and what it has not answered for are given up, too
  // Launches that a stream may have under way.
  unsigned depth_ = device::GpuStream::max_marks;
  std::atomic<bool> stopping_{false}, ended_{false};
  bool left_behind_ = false;  // the thread hangs, and is detached
  std::thread thread_;
};

}  // namespace sluice::engine
