// The engine: ports, lanes, the devices' workers and the host's twins, made from Options and a pipeline, and run.
//
//   auto engine = Engine::create(options, make_pipeline);   // opens everything or says why not; nothing half-started
//   engine->start();  ...  engine->stop();                  // in-flight batches finish, then ports close
//
// Control thread only, except stats(), which any thread may call while the engine lives.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"
#include "engine/batch_memory.h"
#include "engine/bound.h"
#include "engine/compute_helpers.h"
#include "engine/engine_stats.h"
#include "engine/host_path.h"
#include "engine/job_service.h"
#include "engine/lane.h"
#include "engine/lane_thread.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "engine/placement.h"
#include "engine/port_table.h"
#include "engine/reserved_cores.h"
#include "engine/worker.h"

namespace sluice::engine {

using PipelineMaker = std::function<Expected<std::unique_ptr<Pipeline>>(const PortTable& ports)>;

using GpuOpener = std::function<Expected<std::unique_ptr<device::Gpu>>(int index, unsigned streams)>;

// The lanes of a start, as far as they are known before ports are open: one thread where its cores are not this
// machine's.
Plan planned_lanes(const Options& options);
// An Error when the start would refuse the cores that the options name, or lanes on them (placement.h).
Expected<void> check_placement(const Options& options);
// Whether the lanes' time points are spread over the cycle, on a GPU: as the options say, or as their chain wants it.
bool staggers(const Options& options);

// Whether an engine of this process was stuck (Engine::is_stuck()) when it went. The process is to end by _exit() then:
// what CUDA does when it ends by exit() would wait for the same.
bool is_left_behind();

class Engine {
 public:
  // The EAL must run (port/eal.h). `open_gpu`: where a GPU comes from; a test may give one of its own.
  static Expected<std::unique_ptr<Engine>> create(const Options& options, const PipelineMaker& make_pipeline,
                                                  const GpuOpener& open_gpu = device::Gpu::open);
  ~Engine();

  void start();
  void stop();

  EngineStats stats() const;
  // Whether all GPUs compute, as EngineStats::gpu_up. Any thread; costs next to nothing.
  bool gpu_up() const;
  // The same of one of gpus(). A device that its worker left whole when the engine stopped is up.
  bool gpu_up(std::size_t gpu) const;
  // Why and since when one of gpus() is lost.
  const LossReport& gpu_loss(std::size_t gpu) const { return clocks_[gpu]->loss; }
  const Clock& gpu_clock(std::size_t gpu) const { return *clocks_[gpu]; }
  // Gives up a GPU whose worker hangs: who waits for its tables and jobs waits no more. Cheap when there is none.
  void look_at_devices();
  // Takes a lost GPU again: its context, what the elements and jobs have on it, and its worker begin anew, while lanes
  // compute on their cores; then lanes go back to it. While the first GPU is reset, which has pinned the memory of all,
  // the others pause. An Error says why it cannot be, and changes nothing, or that it failed, and may be repeated. Any
  // thread; stop() waits for it, ten seconds at most, and then leaves it behind. Not beside Pipeline::reload(). Cost:
  // up to some seconds.
  Expected<void> reset_device(std::size_t gpu);
  // Whether a worker, or a GPU's work, is left behind, for stop() does not wait for it. What it may touch stays in
  // memory when the engine goes.
  bool is_stuck() const { return is_stuck_; }
  const Options& options() const { return options_; }
  const PortTable& port_table() const { return port_table_; }
  port::Port& port(std::size_t i) { return *ports_[i]; }
  Pipeline& pipeline() { return *pipeline_; }
  // In the order of their ports.
  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  bool running() const { return running_; }
  const Timing& timing() const { return timing_; }
  // In the order of [engine] device; none on the CPU.
  std::span<const std::unique_ptr<device::Gpu>> gpus() const { return gpus_; }
  // The first one; null on the CPU device.
  device::Gpu* gpu() { return gpus_.empty() ? nullptr : gpus_.front().get(); }
  // What was chosen and why, one line each, for the log: device, placement, memory, bound.
  const std::vector<std::string>& notes() const { return notes_; }
  // Twin interface of each port (empty: none), for the netlink mirror.
  HostPath& host_path() { return *host_path_; }
  double tsc_per_ns() const { return tsc_per_ns_; }
  // For who looks at frames; sessions end before the engine does.
  FrameTap& tap() { return tap_; }
  // Whether its lanes choose between their cores and their GPUs (device_choice.h).
  bool chooses() const { return !gpus_.empty() && may_choose(options_); }
  // Null: no element of the chain submits jobs.
  JobService* jobs() { return jobs_.get(); }

 private:
  Engine() = default;
  Expected<void> open_devices(const GpuOpener& open_gpu);
  Expected<void> check_ports() const;
  // Once it is known which ports can wake a lane.
  Expected<void> plan();
  Expected<void> open_ports();
  PortInfo describe(std::size_t i);
  Expected<void> place_threads(unsigned threads_limit);
  Expected<void> open_host_path();
  Expected<void*> batch_memory(std::size_t bytes);
  DeviceMemory spare_memory();
  void deal_devices();
  Expected<void> build_lanes();
  Expected<void> add_lane(std::uint16_t port, std::uint16_t lane_of_port);
  std::size_t most_lanes_of_a_thread() const;
  std::uint32_t helper_count() const;
  // Of the port whose lanes are those from `first` on: lanes beyond its queues share them.
  void spread_queues(std::size_t first, unsigned queues);
  Plan lane_plan() const;
  Expected<void> pin_frames(device::Gpu& gpu);
  Expected<void> attach_devices();
  Expected<void> attach_device(std::uint32_t device);
  DevicePlan device_plan(std::uint32_t device) const;
  Expected<void> why_not_reset(std::size_t gpu) const;
  Expected<void> pause_device(std::size_t gpu);
  Expected<void> renew_device(std::uint32_t device);
  void resume_device(std::size_t gpu);
  Expected<void> pin_memory(device::Gpu& gpu);
  Expected<void> open_jobs();
  void leave_behind();

  Options options_;
  Timing timing_{};
  Placement placement_;
  PortTable port_table_;
  std::vector<std::string> notes_;
  double tsc_per_ns_ = 1;
  std::unique_ptr<BatchMemory> batch_memory_, spare_memory_;
  std::vector<std::unique_ptr<device::Gpu>> gpus_;
  std::vector<std::unique_ptr<port::Port>> ports_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<HostPath> host_path_;
  std::vector<std::unique_ptr<Clock>> clocks_;  // of each device; at least one
  FrameTap tap_;
  ChoiceTurns turns_;
  std::vector<std::uint32_t> dealt_;  // of each lane, its GPU
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<ComputeHelpers> helpers_;  // null: none
  std::vector<std::unique_ptr<LaneThread>> threads_;
  std::unique_ptr<JobService> jobs_;
  std::vector<std::unique_ptr<Worker>> workers_;  // of each GPU
  std::optional<ReservedCores> reserved_;         // while it runs
  std::atomic<bool> running_{false};
  std::size_t pinned_by_ = 0;  // the GPU that has all memory registered
  std::mutex device_mutex_;    // of a reset, and of stop()
  bool is_stuck_ = false;
};

}  // namespace sluice::engine
