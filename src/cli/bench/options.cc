#include "engine/options.h"

#include <algorithm>
#include <regex>

#include "base/file.h"
#include "base/machine.h"
#include "base/settings.h"
#include "cli/bench/bench.h"
#include "cli/bench/updates.h"
#include "device/gpu.h"
#include "device/name.h"
#include "packet/frame_mix.h"
#include "port/options.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {
namespace {

constexpr std::size_t most_lanes = 64;

Expected<void> check_mix(const std::string& name) {
  const auto mix = packet::FrameMix::make(name);
  if (!mix) {
    return make_error("--mix " + name + ": " + mix.error().message);
  }
  if (const unsigned most = port::MemoryOptions().frame_bytes; mix->largest() > most) {
    return make_error("--mix " + name + ": frames of " + std::to_string(mix->largest()) +
                      " bytes do not fit into a bench's buffers: up to " + std::to_string(most) + " do");
  }
  return {};
}

Expected<void> check_file(const std::string& option, const std::string& path) {
  if (const auto good = check_regular_file(path); !good) {
    return make_error(option + " " + good.error().message);
  }
  return {};
}

Expected<void> check_numbers(const BenchOptions& options) {
  struct Number {
    const char* option;
    unsigned value;  // 0: the bench's own
    engine::Range allowed;
  };
  for (const Number& number : {Number{"--overlap", options.overlap, engine::overlap_range},
                               Number{"--batch", options.batch, engine::batch_range},
                               Number{"--batches", options.batches, engine::batches_range},
                               Number{"--streams", options.streams, engine::streams_range}}) {
    if (number.value != 0 && !number.allowed.has(number.value)) {
      return make_error(std::string(number.option) + " " + std::to_string(number.value) + ": allowed is from " +
                        std::to_string(number.allowed.least) + " to " + std::to_string(number.allowed.most) +
                        ", or 0 for the bench's own");
    }
  }
  return {};
}

// Before minutes of measuring on the CPU, not after them.
Expected<void> check_gpu(const std::string& device, bool measures_gpu) {
  const auto index = device::gpu_index(device);
  if (!index && !measures_gpu) {
    return {};
  }
  if (device == "cpu") {
    return make_error("--device cpu: this bench measures the GPU: give cuda:N, or auto for cuda:0");
  }
  const auto gpus = device::list_gpus();
  if (!gpus) {
    return make_error("--device " + device + ": " + gpus.error().message +
                      (index ? "" : "; this bench measures the GPU"));
  }
  if (static_cast<std::size_t>(index.value_or(0)) >= gpus->size()) {
    return make_error("--device " + device + ": no such GPU: this machine has " + std::to_string(gpus->size()) +
                      ", from cuda:0");
  }
  return {};
}

Expected<void> check_machine(const BenchOptions& options, bool measures_gpu) {
  const std::size_t cores = std::min<std::size_t>(most_lanes, allowed_cores().size());
  if (options.lanes > cores) {
    return make_error("--lanes " + std::to_string(options.lanes) +
                      ": each has a core of its own, and this machine has " + std::to_string(cores) +
                      (cores == most_lanes ? " for them at most" : ""));
  }
  if (options.frames != 0 && options.frames < port::ReplayOptions::least_frames) {
    return make_error("--frames " + std::to_string(options.frames) + ": " +
                      std::to_string(port::ReplayOptions::least_frames) + " is the least");
  }
  return check_gpu(options.device, measures_gpu);
}

}  // namespace

std::string no_gpu_line(const Error& error) {
  return error.message.starts_with("no GPU") ? error.message : "no GPU: " + error.message;
}

Expected<void> check_options(const BenchOptions& options, bool measures_gpu) {
  if (!std::regex_match(options.device, std::regex("auto|cpu|cuda:[0-9]{1,3}"))) {
    return make_error("--device " + options.device + ": the devices are auto, cpu and cuda:N");
  }
  if (!(options.seconds > 0 && options.hold > 0)) {
    return make_error("--seconds and --hold are lengths of time above 0");
  }
  if (options.at < 0 || options.at > 1) {
    return make_error("--at is a share, above 0 and at most 1, such as 0.75");
  }
  if (options.deadline_ms < 0 || options.cycle_us < 0) {
    return make_error("--deadline-ms and --cycle-us are times above 0");
  }
  if (auto good = check_numbers(options); !good) {
    return good;
  }
  if (!options.mix.empty()) {
    if (auto good = check_mix(options.mix); !good) {
      return good;
    }
  }
  if (!options.table.empty()) {
    if (auto good = check_file("--table", options.table); !good) {
      return good;
    }
  }
  if (!options.updates.empty()) {
    if (auto good = check_file("--updates", options.updates); !good) {
      return good;
    }
  }
  if (const auto pace = Pace::parse(options.pace); !pace) {
    return tl::unexpected(pace.error());
  }
  Diagnostics diagnostics;
  if (const auto settings = Settings::from_text(options.function_settings, "--settings", diagnostics); !settings) {
    return tl::unexpected(settings.error());
  }
  return check_machine(options, measures_gpu);
}

}  // namespace sluice::cli::bench
