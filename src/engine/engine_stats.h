// What an engine has done so far. Plain data, read while it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device_choice.h"
#include "engine/histogram.h"
#include "engine/host_path.h"
#include "engine/jobs.h"
#include "engine/stall.h"
#include "port/port.h"

namespace sluice::engine {

class Lane;
class Worker;
class ComputeHelper;

struct EngineStats {
  struct Port {
    std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
    port::PortStats device;
    HostLosses host;
    std::vector<std::uint64_t> drops;  // of what it received, by packet::Reason
  };
  struct Lane {
    std::optional<DeviceChoice::View> choice;  // of a lane that may choose; not a sum
    std::uint32_t port = 0, queue = 0;
    int core = -1;
    std::uint32_t device = 0;  // index of the GPU that its batches go to, where there is one
    bool on_device = false;    // they do at present
    std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0, injected = 0, emitted = 0, cloned = 0,
                  consumed = 0, punted = 0, dropped = 0, in_flight = 0;
    std::uint64_t batches_cpu = 0, frames_cpu = 0, batches_gpu = 0, frames_gpu = 0, batches_rescued = 0,
                  frames_rescued = 0;
    std::uint64_t frames_aside = 0;    // now: buffers that a GPU which does not answer may still write to
    std::uint64_t longest_rescue = 0;  // ticks, of a batch from its sealing until a core had computed it; not a sum
    std::uint64_t sealed_full = 0, receive_stalls = 0, empty_polls = 0, misses = 0, misses_stalled = 0, measured = 0;
    std::uint64_t collecting = 0, forwarding = 0;  // ticks of rounds that moved something
    // What is counted, not where.
    Lane& operator+=(const Lane& other);
  };
  // A thread that computes beside lanes.
  struct Helper {
    int core = -1;
    std::uint64_t spans = 0, jobs = 0, busy = 0;  // busy: ticks
  };
  // How often, and for how many ticks together and at most, threads were kept from their work (stall.h).
  struct Stalls {
    std::uint64_t times = 0, ticks = 0, longest = 0;
    void add(const StallWatch& watch);
  };
  std::vector<Port> ports;
  std::vector<Lane> lanes;
  Lane total;
  std::vector<std::uint64_t> drops;    // by packet::Reason
  std::vector<std::uint64_t> answers;  // frames that elements sent back, by what they answer; transmitted ones too
  HistogramSnapshot latency;           // ticks
  HistogramSnapshot device_time;       // ticks
  std::uint64_t cycles = 0, late_cycles = 0, overruns = 0, slow_launches = 0, launches = 0;
  std::uint64_t launching = 0;  // ticks of the worker's rounds that launched or handed back
  Stalls lanes_stalls, worker_stalls, helpers_stalls;
  std::vector<Helper> helpers;
  std::vector<JobCounters> jobs;  // of each kind that the chain submits
  bool gpu_up = false;            // all of them
  std::vector<bool> gpus_up;      // by their index
  struct Gpu {
    std::uint64_t batches = 0, frames = 0;  // that it has computed
  };
  std::vector<Gpu> gpus;  // likewise

  // A lane that runs on `core`, into its own place, its ports, the drops and the total. `ports`, their `drops`,
  // `drops` and `answers` have their sizes.
  void add(const engine::Lane& lane, int core);
  void add(const Worker& worker);
  void add(const ComputeHelper& helper);
  // rx + injected + emitted + cloned - tx - consumed - punted - dropped - in_flight, and of jobs (JobCounters); 0 while
  // lanes are quiet and nobody submits.
  std::int64_t imbalance() const;
};

}  // namespace sluice::engine
