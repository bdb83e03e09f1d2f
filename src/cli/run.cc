#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/report.h"
#include "control/config.h"
#include "control/function_maker.h"
#include "control/gateway.h"
#include "control/log.h"

namespace sluice::cli {
namespace {

int complain(const control::Config& config) {
  for (const std::string& line : config.diagnostics().lines) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  return 2;
}

int run(const std::string& path) {
  control::Config config = control::Config::from_file(path);
  // The function's own section is checked before anything is opened.
  if (!config.ok() || !control::make_function(config, control::described_ports(config.engine))) {
    return complain(config);
  }
  if (auto log = control::set_up_log(config.log); !log) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), log.error().message.c_str());
    return 2;
  }
  auto gateway = control::Gateway::open(config);
  if (!gateway) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), gateway.error().message.c_str());
    return 2;
  }
  const Expected<void> result = (*gateway)->run();
  const control::Snapshot last = (*gateway)->snapshot();
  std::printf("%s", stats_report(last).c_str());
  std::fflush(stdout);
  gateway->reset();
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), result.error().message.c_str());
    return 1;
  }
  return last.conserved ? 0 : 1;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("run", "Run the gateway that a configuration file describes");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "the configuration (TOML)")->required()->type_name("");
  command->footer(
      "Ends with Ctrl-C (in-flight frames are sent first, then a summary is printed), or, when all ports replay\n"
      "captures, once those are forwarded. Exit status: 0 ok, 1 failed while running, 2 it did not start.");
  command->callback([path, &status] { status = run(*path); });
}

}  // namespace sluice::cli
