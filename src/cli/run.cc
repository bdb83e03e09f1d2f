#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "base/in_use.h"
#include "base/text_output.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "control/config.h"
#include "control/gateway.h"
#include "control/loading.h"
#include "control/log.h"
#include "control/pipeline_maker.h"

namespace sluice::cli {
namespace {

// For one that was killed to be gone.
constexpr std::chrono::seconds patience_for_address(2);

// What another program has is no mistake of the file: a service manager tries again.
int refuse(const std::string& lines) {
  std::fprintf(stderr, "%s\n", lines.c_str());
  return says_in_use(lines) ? 1 : 2;
}

int run(const std::string& path) {
  // Until something is open, a signal just ends it.
  end_on_signals();
  control::Config config = control::Config::from_file(path);
  // The function's own section, and the routes that it names, are checked before anything is opened.
  auto checked = control::make_checked_pipeline(config, control::described_ports(config.engine));
  if (!config.ok()) {
    return refuse(config.mistakes());
  }
  hold_signals();
  if (auto log = control::set_up_log(config.log); !log) {
    return refuse(config.placed(log.error().message));
  }
  if (!control::Api::await_address(config.api, patience_for_address)) {
    if (const auto taken = control::Api::check_address(config.api); !taken) {
      return refuse(config.placed(taken.error().message));
    }
  }
  auto gateway = control::Gateway::open(config, std::move(*checked));
  if (const int signal = control::waiting_end_signal(); !gateway && signal != 0) {
    std::fprintf(stderr, "%s: interrupted while starting; nothing is left behind\n", path.c_str());
    return 128 + signal;
  }
  if (!gateway) {
    return refuse(config.placed(gateway.error().message));
  }
  const Expected<void> result = (*gateway)->run();
  const control::Snapshot last = (*gateway)->snapshot();
  std::FILE* const out = text_output();
  std::fputs(stats_report(last).c_str(), out);
  std::fflush(out);
  const bool left = (*gateway)->left_captures();
  const int signal = (*gateway)->end_signal();
  gateway->reset();
  if (left) {
    std::fprintf(stderr, "%s: ended before the captures were read to their end: what is said is of a part of them\n",
                 path.c_str());
  }
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), result.error().message.c_str());
    return 1;
  }
  if (!last.conserved) return 1;
  if (!left) return 0;
  return signal != 0 ? 128 + signal : 1;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("run", "Run the gateway that a configuration file describes");
  auto path = std::make_shared<std::string>();
  complete_with_files(command->add_option("FILE", *path, "the configuration (TOML)"), "toml")
      ->required()
      ->type_name("");
  command->footer(
      "Ends with Ctrl-C (in-flight frames are sent first, then a summary is printed), or, when all ports replay\n"
      "captures, once those are forwarded. The summary is on standard output, or on standard error where alerts are\n"
      "on standard output (eve or fast = \"-\"). Exit status: 0 ok; 1 failed while running, or alerts of captures "
      "could\n"
      "not be written, or another program has what it needs (an interface, a twin, the API's address or socket, a port "
      "of\n"
      "a function), or the API ended it before they were read to their end; 2 it did not start; 130 (143, 131)\n"
      "interrupted by Ctrl-C (SIGTERM, SIGQUIT) before it ran, or before captures were read to their end.");
  command->callback([path, &status] {
    require_file(*path);
    status = run(*path);
  });
}

}  // namespace sluice::cli
