#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "control/busy_cores.h"
#include "control/config.h"
#include "control/conversation_notes.h"
#include "control/loading.h"
#include "control/pipeline_maker.h"
#include "control/port_notes.h"
#include "control/section_views.h"
#include "control/start_needs.h"
#include "control/stream_demands.h"
#include "device/gpu.h"
#include "device/name.h"
#include "engine/advice.h"
#include "engine/bound.h"
#include "engine/engine.h"
#include "engine/tables.h"
#include "port/eal.h"
#include "port/virtual_device.h"

namespace sluice::cli {
namespace {

// What the chain would run on, on this machine.
std::string devices_text(const engine::Options& options) {
  if (options.device == "cpu") return "the lanes' cores";
  const auto gpus = device::list_gpus();
  if (!gpus || gpus->empty()) return "the lanes' cores: " + (gpus ? "there is no GPU" : gpus.error().message);
  const auto indices = device::gpu_indices(options.device).value_or(std::vector<int>{0});
  std::vector<std::string> names;
  for (const int index : indices) {
    const bool is_here = static_cast<std::size_t>(index) < gpus->size();
    names.push_back(device::gpu_name(index) + (is_here ? " (" + (*gpus)[index].name + ")" : ", which is not here"));
  }
  const std::string named = fmt::format("{}", fmt::join(names, ", "));
  if (engine::may_choose(options)) {
    return "the lanes' cores, and from the load on that these do not carry " + named + ", if that carries more";
  }
  return named + (options.cpu_below == 0 ? "" : "; low loads on the lanes' cores");
}

void print_summary(const control::Config& config) {
  const engine::Options& options = config.engine;
  unsigned lanes = 0;
  for (const port::PortOptions& port : options.ports) lanes += port.lane_count();
  std::printf("%s: ok: %s on %zu port%s, %u lane%s, device %s, deadline %s", config.file().c_str(),
              fmt::format("{}", fmt::join(options.chain, ", ")).c_str(), options.ports.size(),
              options.ports.size() == 1 ? "" : "s", lanes, lanes == 1 ? "" : "s", options.device.c_str(),
              duration_text(options.deadline).c_str());
  const auto print_bound = [&options](const char* where, bool on_gpu) {
    if (const auto timing = engine::plan_timing(options, on_gpu))
      std::printf(", %s: %s", where, bound_text(static_cast<std::uint64_t>(timing->bound.count()), on_gpu).c_str());
  };
  if (options.device != "cpu") print_bound("on a GPU", true);
  if (options.device == "cpu" || options.device == "auto") print_bound("on the CPU", false);
  std::printf("\ncomputes on %s\n", devices_text(options).c_str());
}

// What is wrong with them is in the config's mistakes.
void check_captures(control::Config& config) {
  control::Loading loading(true);
  engine::TableProgress progress;
  if (isatty(STDERR_FILENO) == 1) {
    progress = [&loading](std::string_view what, std::size_t done, std::size_t total) {
      return loading.step(what, done, total);
    };
  }
  (void)config.check_captures(progress);
  loading.done();
}

// The file may be for another machine, and what its device is the profile says: all else has to be as it was measured.
// What is wrong is in the config's mistakes.
void check_streams(control::Config& config) {
  if (!config.profile.profile) return;
  const engine::ProfileSubject& measured = config.profile.profile->subject;
  const auto timing = engine::plan_timing(config.engine, measured.device != "cpu");
  engine::ProfileSubject now = control::profile_subject(config, measured.device);
  now.machine = measured.machine;
  std::vector<std::string> notes;
  const auto admission = timing ? control::make_admission(config, now, *timing, notes) : tl::unexpected(timing.error());
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());
  if (!admission) {
    config.add_problem(config.placed(admission.error().message));
    return;
  }
  auto streams = control::stream_demands(config);
  const bool fit = control::admit_streams(**admission, {}, streams);
  if (!control::check_later_deadlines(**admission, config) || !fit) return;
  std::printf("streams: %s\n", (*admission)->text().c_str());
  if (const std::string note = (*admission)->burst_note(); !note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
}

void say_note(control::Config& config, const std::string& note) {
  std::fprintf(stderr, "%s\n", config.placed(note).c_str());
}

// The file is fine, and may be for another machine.
void say_what_is_lacking(control::Config& config, const Expected<void>& enough) {
  if (enough) return;
  std::fprintf(stderr, "%s; until then 'sluice run' refuses to start on this machine\n",
               config.placed(enough.error().message).c_str());
}

// Likewise: interfaces that are not there, a TAP that another program has, a missing privilege.
void say_what_ports_lack(control::Config& config) {
  for (const port::PortOptions& port : config.engine.ports) {
    const auto usable = port::check_device(port, config.engine.memory);
    say_what_is_lacking(
        config,
        usable ? usable : make_error("[[port]] '" + port.name + "' (" + port.device + "): " + usable.error().message));
    if (const std::string unseen = port::unseen_arrival(port.device); !unseen.empty()) {
      say_note(config, "port '" + port.name + "': " + unseen);
    }
  }
}

// Cores that are not this machine's, or have other work.
void say_what_cores_lack(control::Config& config) {
  const auto placed = engine::check_placement(config.engine);
  say_what_is_lacking(config, placed);
  if (placed && !config.engine.allow_busy_cores && !control::is_running(config)) {
    say_what_is_lacking(config, control::check_cores_are_free(config.engine));
  }
}

int check(const std::string& path) {
  end_on_signals();
  control::Config config = control::Config::from_file(path);
  check_captures(config);
  const auto pipeline = control::make_checked_pipeline(config, control::described_ports(config.engine));
  if (pipeline && config.ok()) check_streams(config);
  if (pipeline && config.ok()) {
    print_summary(config);
    if (const engine::Tables* tables = (*pipeline)->tables()) {
      for (const std::string& note : tables->notes()) std::fprintf(stderr, "%s\n", note.c_str());
    }
    for (const std::string& note : control::conversation_notes(config.engine)) say_note(config, note);
    control::each_of_chain<engine::Advice>(config, [&](const engine::Advice& advice, engine::SectionView& view) {
      for (const std::string& note : advice.notes(view, engine::Advice::Occasion::check)) say_note(config, note);
    });
    for (const std::string& note : control::port_notes(config.engine)) say_note(config, note);
    for (const std::string& lack : control::find_start_lacks(config)) say_what_is_lacking(config, make_error(lack));
    say_what_ports_lack(config);
    say_what_cores_lack(config);
    say_what_is_lacking(config, port::check_memory(config.engine.memory, config.engine.ports));
    say_what_is_lacking(config, (*pipeline)->check_memory(engine::planned_lanes(config.engine)));
    return 0;
  }
  std::fprintf(stderr, "%s\n", config.mistakes().c_str());
  return 2;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("check", "Check a configuration file and do nothing else");
  auto path = std::make_shared<std::string>();
  complete_with_files(command->add_option("FILE", *path, "the configuration (TOML)"), "toml")
      ->required()
      ->type_name("");
  command->footer(
      "Prints one line for each mistake: file, line, key, value and what is allowed.\n"
      "The files of routes and rules and the captures that it names are read too. Ports need not exist.\n"
      "What a start on this machine would refuse is said: memory, interfaces, privileges, cores, files that\n"
      "cannot be written, groups, addresses, and what another program has.\n"
      "Exit status: 0 the file is fine, 2 it is not.");
  command->callback([path, &status] {
    require_file(*path);
    status = check(*path);
  });
}

}  // namespace sluice::cli
