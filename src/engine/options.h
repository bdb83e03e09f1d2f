// The engine's configuration. Plain data; control/config fills it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "port/options.h"

namespace sluice::engine {

using port::MemoryOptions;
using port::PortOptions;

// The allowed values of a number in Options; Engine::create() refuses others.
struct Range {
  std::int64_t least, most;
  constexpr bool has(std::int64_t value) const { return least <= value && value <= most; }
};
inline constexpr Range overlap_range{1, 8};
inline constexpr Range batch_range{64, 65536};  // a lane writes whole bursts (burst.h)
inline constexpr Range batches_range{2, 32};
inline constexpr Range streams_range{1, 32};

enum class Mode {
  full,            // everything
  zero_load,       // everything but the device's work: results are constant (traits.h, NullDevice)
  collector_only,  // frames are received and collected, then freed
};
// As the configuration names it.
constexpr const char* mode_name(Mode mode) {
  constexpr const char* names[] = {"full", "zero-load", "collector-only"};
  return names[static_cast<int>(mode)];
}

// realtime: no ordinary thread of the machine preempts lanes and workers (SCHED_FIFO).
enum class Scheduling { normal, realtime };

// Which frames are let in: all, or only those that can leave before their deadline (admission.h). automatic: in_time
// with a GPU, else all.
enum class Admit { automatic, in_time, all };
// As the configuration names it.
constexpr const char* admit_name(Admit admit) {
  constexpr const char* names[] = {"auto", "deadline", "all"};
  return names[static_cast<int>(admit)];
}

enum class Poll { automatic, busy, adaptive };

// Whether the lanes' time points are spread over the cycle (time_points.h). automatic: if an element of the chain
// launches the batches of each lane apart (ElementType::launches_alone).
enum class Stagger { automatic, on, off };

// The chain of a configuration that names none: the element with ElementType::usual. Empty: there is no such element.
std::vector<std::string> usual_chain();

struct Options {
  std::string device = "auto";  // auto | cpu | cuda:N | cuda:N,cuda:M...
  bool cores_too = false;       // with GPUs that are named: each lane may choose its core as well, as with "auto"
  std::chrono::nanoseconds deadline{std::chrono::milliseconds(1)};
  std::chrono::nanoseconds cycle{0};  // I; 0: the longest that the deadline allows (bound.h)
  unsigned overlap = 1;               // cycles that a batch may spend on the device
  Stagger stagger = Stagger::automatic;
  unsigned batch = 4096;  // frames
  unsigned batches = 4;   // per lane
  unsigned streams = 4;   // CUDA streams
  // For which a GPU may not answer before it is given up; 0: as docs/device-failure.md says.
  std::chrono::nanoseconds device_silence{0};
  // After which a lost GPU is taken again by itself; 0: never. The gateway's, not the engine's.
  std::chrono::nanoseconds device_return{std::chrono::seconds(10)};
  Poll poll = Poll::automatic;
  Scheduling scheduling = Scheduling::normal;
  Admit admission = Admit::automatic;
  std::vector<int> cores;            // of the lanes; empty: the engine chooses
  std::vector<int> forwarder_cores;  // of the lanes' forwarders; empty: each lane forwards on its own core
  std::vector<int> compute_cores;    // of threads that compute beside the lanes (compute_helpers.h)
  int worker_core = -1;              // -1: the engine chooses
  bool allow_busy_cores = false;     // cores in these lists may have other work
  Mode mode = Mode::full;
  std::chrono::nanoseconds inline_batch{0};  // time of a batch on a core, as measured; 0: an estimate (bound.h)
  std::chrono::nanoseconds collect{0};       // µ; 0: an estimate (bound.h)
  bool collect_measured = false;             // `collect` is from a profile
  bool counts_on_gpu = false;                // streams are let in by what a GPU was measured to do: lanes keep to it
  // With fewer frames per cycle the lane computes itself (load.h). 0: never. -1: where lanes choose (may_choose()) by
  // what both carry (device_choice.h), else 256, also by what frames cost.
  int cpu_below = -1;
  std::vector<std::string> chain = usual_chain();
  // Known once the pipeline is made:
  unsigned passes = 1;  // of the pipeline (pipeline.h)
  bool jobs = false;    // elements of it submit jobs (jobs.h)
  std::vector<PortOptions> ports;
  MemoryOptions memory;
};

// Whether its lanes choose between core and GPU, where there is one.
inline bool may_choose(const Options& options) {
  return (options.device == "auto" || options.cores_too) && options.cpu_below < 0 && options.mode == Mode::full &&
         !options.counts_on_gpu;
}

}  // namespace sluice::engine
