// sluice calibrate FILE: what this machine and device carry in time with that configuration's chain
// (docs/real-time.md).
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/machine.h"
#include "base/units.h"
#include "cli/calibrate/acceptance.h"
#include "cli/calibrate/output_file.h"
#include "cli/calibrate/own_traffic.h"
#include "cli/calibrate/replayed_gateway.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/signals.h"
#include "control/config.h"
#include "control/pipeline_maker.h"
#include "control/stream_demands.h"
#include "device/name.h"
#include "engine/bound.h"
#include "port/eal.h"

namespace sluice::cli {
namespace {

using std::chrono::nanoseconds;

constexpr unsigned ethernet = 14;
constexpr std::chrono::seconds between_lines{5};  // of progress that is not shown in place

struct CalibrateOptions {
  std::string file, device, out, csv;
  double seconds = 0.3, hold = 3;
  std::vector<std::string> cycles;
  std::vector<unsigned> streams, packets;
};

int refuse(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 2;
}

// In one line that is written over on a terminal; else a line every few seconds.
CalibrationProgress progress_on_stderr() {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  auto next = std::make_shared<std::chrono::steady_clock::time_point>();
  return [terminal, next](const std::string& what, unsigned done, unsigned total) {
    const auto now = std::chrono::steady_clock::now();
    if (terminal) {
      std::fprintf(stderr, "\r\033[Kcalibrate: %u of %u: %s", done, total, what.c_str());
    } else if (now >= *next) {
      *next = now + between_lines;
      std::fprintf(stderr, "calibrate: %u of %u: %s\n", done, total, what.c_str());
    }
  };
}

bool is_profile(const std::string& path) {
  return engine::Profile::from_file(path).has_value();
}

// By its header.
bool is_table(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line + '\n' == engine::Profile().csv();
}

// Before minutes are spent.
Expected<void> check_outputs(const CalibrateOptions& options) {
  if (!options.out.empty()) {
    if (auto good = check_output("--out " + options.out, options.out, {"profile", is_profile}); !good) return good;
  }
  if (options.csv.empty()) return {};
  const auto whole = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal(); };
  if (!options.out.empty() && whole(options.out) == whole(options.csv)) {
    return make_error("--csv " + options.csv + ": is the file that --out names");
  }
  return check_output("--csv " + options.csv, options.csv, {"table of calibrate's", is_table});
}

// The name of the GPU that the configuration asks for; empty: its chain computes on CPU cores.
Expected<std::string> gpu_of(const control::Config& config) {
  if (config.engine.device == "cpu") return std::string();
  const auto indices = device::gpu_indices(config.engine.device);
  auto gpu = device::Gpu::open(indices ? indices->front() : 0, 1);
  if (gpu) return (*gpu)->info().name;
  if (config.engine.device == "auto") return std::string();
  return make_error("device " + config.engine.device + ": " + gpu.error().message);
}

// A quarter of the configuration's own cycle, or the shortest there is, to four times that. What its cycle is "auto"
// also depends on what is measured of collecting, and a profile without one that is as short says nothing of it.
std::vector<nanoseconds> usual_cycles(const engine::Options& options) {
  const auto timing = engine::plan_timing(options, true);
  const nanoseconds own = timing ? timing->cycle : std::chrono::milliseconds(1);
  std::vector<nanoseconds> cycles;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const nanoseconds cycle(static_cast<std::int64_t>(static_cast<double>(own.count()) * factor));
    cycles.push_back(std::max(cycle, engine::shortest_cycle));
  }
  cycles.erase(std::unique(cycles.begin(), cycles.end()), cycles.end());
  return cycles;
}

Expected<CalibrationPlan> plan_of(const CalibrateOptions& options, control::Config& config, bool on_gpu) {
  CalibrationPlan plan;
  if (!on_gpu && !(options.cycles.empty() && options.streams.empty())) {
    std::fputs("calibrate: on a CPU core there are no cycles and no streams: --cycles and --streams choose nothing\n",
               stderr);
  }
  plan.cycles = on_gpu ? usual_cycles(config.engine) : std::vector<nanoseconds>{nanoseconds(0)};
  if (on_gpu && !options.cycles.empty()) plan.cycles.clear();
  for (const std::string& text : options.cycles) {
    const auto cycle = parse_duration(text);
    if (!cycle || *cycle < engine::shortest_cycle) {
      return make_error("--cycles " + text + ": allowed are durations from " + duration_text(engine::shortest_cycle));
    }
    if (on_gpu) plan.cycles.push_back(*cycle);
  }
  std::ranges::sort(plan.cycles);
  plan.streams =
      on_gpu ? options.streams.empty() ? std::vector<unsigned>{1, 2, 4, 8} : options.streams : std::vector<unsigned>{0};
  std::ranges::sort(plan.streams);
  for (const unsigned streams : plan.streams) {
    if (on_gpu && !engine::streams_range.has(streams)) {
      return make_error("--streams " + std::to_string(streams) + ": allowed is from " +
                        std::to_string(engine::streams_range.least) + " to " +
                        std::to_string(engine::streams_range.most));
    }
  }
  unsigned largest = 0;
  for (const port::PortOptions& port : config.engine.ports) largest = std::max(largest, port.mtu + ethernet);
  const unsigned media = control::largest_packet(config);
  if (media != 0) largest = media;
  plan.hold = std::chrono::duration<double>(options.hold);
  plan.packets = options.packets.empty() ? usual_packets(largest) : options.packets;
  std::ranges::sort(plan.packets, std::greater<>());
  for (const unsigned packet : plan.packets) {
    if (packet < least_packet || packet > largest) {
      return make_error("--packets " + std::to_string(packet) + ": allowed is from " + std::to_string(least_packet) +
                        " to " + std::to_string(largest) + ", the largest MTU with its Ethernet header" +
                        (media != 0 ? ", less what " + traffic_element(config) + " adds" : ""));
    }
  }
  return plan;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string with_what_to_do(const std::string& refusal, const std::string& profile) {
  return refusal + "\ncalibrate: " + profile + " is not written, for this configuration would refuse it";
}

// `text`: the file's. `own`: as it is there but for limits, and `config` with the streams that `note` speaks of.
int measure(const CalibrateOptions& options, const std::string& text, control::Config& config, control::Config& own,
            const std::string& note) {
  if (const auto good = check_outputs(options); !good) return refuse("calibrate: " + good.error().message);
  const auto gpu = gpu_of(config);
  if (!gpu) return refuse("calibrate: " + gpu.error().message);
  const bool on_gpu = !gpu->empty();
  const auto plan = plan_of(options, config, on_gpu);
  if (!plan) return refuse("calibrate: " + plan.error().message);
  engine::Profile profile;
  profile.subject = control::profile_subject(own, on_gpu ? *gpu : "cpu");
  const std::vector<std::string> kinds = control::stream_kinds(own);
  const auto traffic = own_traffic(config, plan->packets.front(), profile.subject.lanes);
  if (!traffic) return refuse("calibrate: " + traffic.error().message);
  if (*traffic != nullptr) profile.media = (*traffic)->kinds();
  std::string unfit;  // streams of the file
  ProfileCheck accepts;
  if (!options.out.empty()) {
    accepts = [&](const engine::Profile& measured) -> Expected<void> {
      auto accepted = accept_profile(text, options.file, options.device, measured);
      if (!accepted) return make_error(with_what_to_do(accepted.error().message, options.out));
      unfit = std::move(*accepted);
      return {};
    };
    if (const auto good = accepts(planned_profile(*plan, profile)); !good) return refuse(good.error().message);
  }
  profile.date = now_text();
  profile.code = SLUICE_VERSION;
  const ReplayedOptions bench{.on_gpu = on_gpu, .seconds = options.seconds};
  const auto open = replayed_gateways(config, bench);
  const auto first = bench_options(config, bench, plan->cycles.front(), plan->streams.front(), plan->packets.front());
  if (const auto eal = port::start_eal(first.memory, first.ports); !eal) {
    return refuse(config.placed(eal.error().message));
  }
  std::printf("%s, %s, %s, %u lanes\n", fmt::format("{}", fmt::join(config.engine.chain, ", ")).c_str(),
              profile.subject.device.c_str(), profile.subject.machine.c_str(), profile.subject.lanes);
  if (!note.empty()) std::printf("%s\n", note.c_str());
  for (const std::string& one : kinds) {
    if (std::ranges::find(profile.media, one) == profile.media.end()) {
      std::printf(
          "what streams to %s cost is not measured: max_keys has no capacity for a stream that makes its traffic\n",
          one.c_str());
    }
  }
  const auto done = calibrate(*plan, open, progress_on_stderr(), profile, accepts);
  if (isatty(STDERR_FILENO) == 1) std::fputs("\r\033[K", stderr);
  if (!done) {
    std::fprintf(stderr, "calibrate: %s\n", done.error().message.c_str());
    return 1;
  }
  std::fputs(calibration_table(profile, isatty(STDOUT_FILENO) == 1).c_str(), stdout);
  const std::string nothing = nothing_carried_text(profile);
  if (!nothing.empty()) std::fprintf(stderr, "calibrate: %s\n", nothing.c_str());
  for (const auto& [path, output] :
       {std::pair{nothing.empty() ? options.out : "", profile.text()}, {options.csv, profile.csv()}}) {
    if (path.empty()) continue;
    if (const auto written = write_output(path, output); !written) {
      std::fprintf(stderr, "calibrate: %s\n", written.error().message.c_str());
      return 1;
    }
    std::printf("written: %s\n", path.c_str());
  }
  if (!unfit.empty()) {
    std::fprintf(stderr, "calibrate: what was measured has no capacity for all that this configuration has:\n%s\n",
                 unfit.c_str());
  }
  return nothing.empty() ? 0 : 1;
}

int run(const CalibrateOptions& options) {
  end_on_signals(remove_half_written);
  spdlog::set_level(spdlog::level::warn);
  std::error_code ignored;
  std::ifstream file(options.file);
  if (!file || !std::filesystem::is_regular_file(options.file, ignored)) {
    return refuse("calibrate: " + options.file + ": there is no such file, or it cannot be read");
  }
  const std::string& device = options.device;
  if (!device.empty() && device != "auto" && device != "cpu" && !device::gpu_index(device)) {
    return refuse("calibrate: --device " + device + ": the devices are auto, cpu and cuda:N");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string limitless = without_limits(text);
  control::Config own = control::Config::from_text(limitless, options.file, false);
  const engine::Calibration::Made made = own.ok() ? made_streams(own) : engine::Calibration::Made{};
  control::Config config = control::Config::from_text(limitless + made.text, options.file, false);
  if (!options.device.empty()) config.engine.device = options.device;
  if (const auto checked = control::make_checked_pipeline(config, control::described_ports(config.engine));
      !checked || !config.ok()) {
    return refuse(config.mistakes());
  }
  return measure(options, text, config, own, made.note);
}

}  // namespace

void add_calibrate(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure what a configuration's chain carries in time here");
  auto options = std::make_shared<CalibrateOptions>();
  complete_with_files(command->add_option("FILE", options->file, "the configuration (TOML)"), "toml")
      ->required()
      ->type_name("");
  complete_with(command->add_option("--device", options->device, "auto, cpu or cuda:N; default: the configuration's"),
                {"auto", "cpu", "cuda:0"});
  command->add_option("--seconds", options->seconds, "length of each measurement")
      ->check(CLI::Range(0.05, 60.0))
      ->capture_default_str();
  command->add_option("--hold", options->hold, "seconds for which what a cycle carries has to hold; 0: not tried")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  command
      ->add_option("--cycles", options->cycles,
                   "scheduling cycles, such as 100us,200us; default: the "
                   "configuration's, and a quarter to four times that")
      ->delimiter(',');
  command->add_option("--streams", options->streams, "numbers of CUDA streams; default: 1,2,4,8")->delimiter(',');
  command
      ->add_option("--packets", options->packets,
                   "frame sizes; the largest decides what is carried; default: the largest MTU's, half of it, 128")
      ->delimiter(',');
  complete_with_files(command->add_option(
      "--out", options->out, "write the profile here, for [profile] file; a profile that is there is written over"));
  complete_with_files(command->add_option(
      "--csv", options->csv, "write a row for each measurement here; such a table that is there is written over"));
  command->footer(
      "The chain runs with its settings, lanes and batches; its ports are frames from memory, and " + traffic_text() +
      "\n"
      "Takes a minute or two. No other file than an empty one, a profile or a table is written over, and both are\n"
      "written when all is measured, but a profile of nothing that was carried in time. Exit status: 0 measured, 1 it\n"
      "could not be, or nothing was carried in time, 2 bad input.");
  command->callback([options, &status] {
    require_file(options->file);
    status = run(*options);
  });
}

}  // namespace sluice::cli
