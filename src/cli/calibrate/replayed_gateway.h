// A configuration's gateway whose ports are memory replays, one for each measurement place of calibration.h.
#pragma once

#include <memory>
#include <string>

#include "cli/calibrate/calibration.h"
#include "control/config.h"
#include "engine/engine.h"

namespace sluice::cli {

struct ReplayedOptions {
  bool on_gpu = false;
  double seconds = 0.3;  // of each measurement
  double warm_up = 0.1;
  std::chrono::nanoseconds collect{0};  // µ of the bound by which frames are late; 0: the configuration's estimate
  engine::GpuOpener open_gpu = device::Gpu::open;
};

// The [[port]] as a replay of frames of so many bytes; of one that is a replay already, with what else it says.
std::string replay_device(const port::PortOptions& port, unsigned packet, unsigned frames);
// The engine's options for such a gateway: everything is let in and goes to the device, whatever the deadline. On a GPU
// the deadline is the bound of that cycle, (2 + o)·I + µ + sleep, for this is what streams are promised: a frame that
// leaves after it is late, whatever the configuration's deadline would forgive.
engine::Options bench_options(const control::Config& config, const ReplayedOptions& bench,
                              std::chrono::nanoseconds cycle, unsigned streams, unsigned packet);

// The EAL must run. The Config outlives what is opened. Each gateway's µ is by the longest round of those before it,
// and so no more than what the profile will say.
BenchOpener replayed_gateways(control::Config& config, const ReplayedOptions& options);

}  // namespace sluice::cli
