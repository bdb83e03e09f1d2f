#include "engine/options.h"

#include <algorithm>
#include <charconv>
#include <regex>

#include "base/file.h"
#include "base/machine.h"
#include "base/settings.h"
#include "bench/bench.h"
#include "bench/rig.h"
#include "bench/updates.h"
#include "device/gpu.h"
#include "device/name.h"
#include "engine/bound.h"
#include "engine/element.h"
#include "packet/frame_mix.h"
#include "port/options.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {
namespace {

constexpr std::size_t most_lanes = 64;
constexpr double longest_seconds = 1e6;
constexpr double longest_deadline_ms = 1e4;

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

}  // namespace

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

namespace {

Expected<void> check_machine(const BenchOptions& options) {
  const std::size_t cores = std::min<std::size_t>(most_lanes, allowed_cores().size());
  if (options.lanes > cores) {
    return make_error("--lanes " + std::to_string(options.lanes) +
                      ": each has a core of its own, and this machine has " + std::to_string(cores) +
                      (cores == most_lanes ? " for them at most" : ""));
  }
  const std::size_t others = std::max(options.lanes, 1U) + 2;  // the worker, and what devices interrupt
  if (options.forwarders != 0 && options.forwarders + others > allowed_cores().size()) {
    return make_error("--forwarders " + std::to_string(options.forwarders) +
                      ": each has a core of its own beside the " + std::to_string(others) +
                      " of lanes, worker and control, and this machine has " + std::to_string(allowed_cores().size()));
  }
  if (options.frames != 0 && options.frames < port::ReplayOptions::least_frames) {
    return make_error("--frames " + std::to_string(options.frames) + ": " +
                      std::to_string(port::ReplayOptions::least_frames) + " is the least");
  }
  if (options.frames != 0 && options.ring > options.frames) {
    return make_error("--ring " + std::to_string(options.ring) + ": is more than the " +
                      std::to_string(options.frames) + " of --frames");
  }
  return {};
}

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Neither do infinity and what is not a number pass.
Expected<void> check_times(const BenchOptions& options) {
  struct Length {
    const char* option;
    double value;
    double most;
    const char* allowed;
    bool own;  // 0: the bench's own
  };
  for (const Length& length :
       {Length{"--seconds", options.seconds, longest_seconds, "is above 0 and at most 1000000", false},
        Length{"--hold", options.hold, longest_seconds, "is above 0 and at most 1000000", false},
        Length{"--at", options.at, 1, "is a share, above 0 and at most 1, such as 0.75", true},
        Length{"--deadline-ms", options.deadline_ms, longest_deadline_ms,
               "is above 0 and at most 10000, or 0 for the bench's own", true},
        Length{"--cycle-us", options.cycle_us, longest_deadline_ms * 1e3,
               "is above 0 and at most 10000000, or 0 for the bench's own", true}}) {
    const bool is_length = length.value > 0 && length.value <= length.most;
    if (!is_length && !(length.own && length.value == 0)) {
      return make_error(std::string(length.option) + " " + number_text(length.value) + ": allowed " + length.allowed);
    }
  }
  return {};
}

// What the engine would refuse once everything else is there.
Expected<void> check_timing(const BenchOptions& options, bool measures_gpu) {
  const bool on_gpu = measures_gpu || device::gpu_index(options.device);
  if (options.deadline_ms <= 0 || (!on_gpu && options.device != "cpu")) {
    return {};
  }
  engine::Options wanted;
  apply(options, wanted);
  const auto timing = on_gpu ? engine::plan_timing(wanted.deadline, wanted.cycle, wanted.overlap)
                             : engine::plan_cpu_timing(wanted.deadline, std::chrono::nanoseconds(0));
  if (!timing) {
    return make_error("--deadline-ms " + number_text(options.deadline_ms) + ": " + timing.error().message);
  }
  return {};
}

}  // namespace

std::string no_gpu_line(const Error& error) {
  return error.message.starts_with("no GPU") ? error.message : "no GPU: " + error.message;
}

Expected<void> check_settings(const std::string& function, const std::string& settings) {
  Diagnostics diagnostics;
  auto section = Settings::from_text(settings, "--settings", diagnostics);
  if (!section) {
    return tl::unexpected(section.error());
  }
  engine::PortInfo port;
  port.name = "replay";
  const auto made = engine::find_element(function)->make(*section, engine::PortTable({port}));
  section->finish();
  if (!diagnostics.ok()) {
    return make_error(diagnostics.lines.front());
  }
  return made ? Expected<void>{} : tl::unexpected(made.error());
}

Expected<void> check_options(const BenchOptions& options, bool measures_gpu) {
  if (!std::regex_match(options.device, std::regex("auto|cpu|cuda:[0-9]{1,3}"))) {
    return make_error("--device " + options.device + ": the devices are auto, cpu and cuda:N");
  }
  if (auto good = check_times(options); !good) {
    return good;
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
  if (!options.profile.empty()) {
    if (options.at > 0) return make_error("--profile: --at says another B_I: give one of the two");
    if (auto good = check_file("--profile", options.profile); !good) {
      return good;
    }
  }
  const bool made_up = options.patterns.find_first_not_of("0123456789") == std::string::npos;
  if (made_up && (options.patterns.size() > 6 || options.patterns == "0")) {
    return make_error("--patterns " + options.patterns + ": from 1 to 999999 can be made up");
  }
  if (!made_up) {
    if (auto good = check_file("--patterns", options.patterns); !good) {
      return good;
    }
  }
  if (!options.payload.empty() && options.payload != "text" && options.payload != "random") {
    if (auto good = check_file("--payload", options.payload); !good) {
      return good;
    }
  }
  if (!options.updates.empty()) {
    if (auto good = check_file("--updates", options.updates); !good) {
      return good;
    }
  }
  if (options.rules.empty() && !options.trace.empty()) {
    return make_error("--trace " + options.trace + ": its headers are of rules: name those with --rules");
  }
  for (const auto& [option, path] :
       {std::pair{"--rules", options.rules}, std::pair{"--trace", options.trace}, std::pair{"--acl", options.acl}}) {
    if (auto good = path.empty() ? Expected<void>() : check_file(option, path); !good) {
      return good;
    }
  }
  if (const auto pace = Pace::parse(options.pace); !pace) {
    return tl::unexpected(pace.error());
  }
  if (auto good = check_timing(options, measures_gpu); !good) {
    return good;
  }
  return check_machine(options);
}

}  // namespace sluice::cli::bench
