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

// What a number of Options may be; Engine::create() refuses any other.
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
  zero_load,       // everything but the device's work: verdicts are the function's constant
  collector_only,  // receive and collect, then free
};
// As the configuration names it.
constexpr const char* mode_name(Mode mode) {
  constexpr const char* names[] = {"full", "zero-load", "collector-only"};
  return names[static_cast<int>(mode)];
}

// realtime: threads that no ordinary thread of the machine preempts (SCHED_FIFO).
enum class Scheduling { normal, realtime };

// Which frames are let in: all, or those that can leave before their deadline (admission.h). automatic: the latter with
// a GPU.
enum class Admit { automatic, in_time, all };
// As the configuration names it.
constexpr const char* admit_name(Admit admit) {
  constexpr const char* names[] = {"auto", "deadline", "all"};
  return names[static_cast<int>(admit)];
}

enum class Poll { automatic, busy, adaptive };

// Whether the lanes' time points are spread over the cycle (time_points.h). automatic: where a function of the chain
// launches each lane's batches by themselves.
enum class Stagger { automatic, on, off };

// The function that is a chain by itself where a configuration names none (element.h, ElementType::usual); empty: there
// is no such one.
std::vector<std::string> usual_chain();

struct Options {
  std::string device = "auto";  // auto | cpu | cuda:N | cuda:N,cuda:M...
  std::chrono::nanoseconds deadline{std::chrono::milliseconds(1)};
  std::chrono::nanoseconds cycle{0};  // I; 0: the longest that the deadline allows (bound.h)
  unsigned overlap = 1;               // cycles that a batch may spend on the device
  Stagger stagger = Stagger::automatic;
  unsigned batch = 4096;  // frames
  unsigned batches = 4;   // per lane
  unsigned streams = 4;   // CUDA streams
  Poll poll = Poll::automatic;
  Scheduling scheduling = Scheduling::normal;
  Admit admission = Admit::automatic;
  std::vector<int> cores;            // of the lanes; empty: chosen
  std::vector<int> forwarder_cores;  // of their forwarders; empty: each lane forwards on its own core
  int worker_core = -1;              // -1: chosen
  bool allow_busy_cores = false;     // that the lists name
  Mode mode = Mode::full;
  std::chrono::nanoseconds inline_batch{0};  // what one takes a core, as measured; 0: an estimate (bound.h)
  std::chrono::nanoseconds collect{0};       // µ; 0: an estimate (bound.h)
  bool collect_measured = false;             // a profile says it
  int cpu_below = -1;                        // frames per cycle; -1: chosen, by what they cost, too (load.h); 0: never
  std::vector<std::string> chain = usual_chain();
  unsigned passes = 1;  // of the chain's pipeline (pipeline.h), once it is made
  bool jobs = false;    // elements of it submit jobs (jobs.h), once it is made
  std::vector<PortOptions> ports;
  MemoryOptions memory;
};

}  // namespace sluice::engine
