// sluice: a packet gateway that treats the GPU as a real-time processing engine. One binary, one subcommand per use.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/thrown.h"
#include "cli/commands.h"
#include "cli/output_end.h"
#include "cli/signals.h"
#include "engine/engine.h"

int main(int argc, char** argv) {
  sluice::name_last_exception();
  // Before any thread exists: signals go to the control thread, which waits for them.
  sluice::cli::hold_signals();
  signal(SIGPIPE, SIG_IGN);
  // Until `run` sets up its own: stdout is for results.
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));

  CLI::App app{"Sluice: a packet gateway that treats the GPU as a real-time processing engine"};
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.footer("Each command explains itself: sluice COMMAND --help. The manual page is sluice(1).");
  sluice::cli::explain_mistakes(app);
  int status = 0;
  sluice::cli::add_run(app, status);
  sluice::cli::add_check(app, status);
  sluice::cli::add_functions(app, status);
  sluice::cli::add_rules(app, status);
  sluice::cli::add_bench(app, status);
  sluice::cli::add_calibrate(app, status);
  sluice::cli::add_top(app, status);
  sluice::cli::add_ctl(app, status);
  sluice::cli::add_capture(app, status);
  if (argc > 2 && std::string_view(argv[1]) == "completion") {  // a shell's question
    return sluice::cli::complete_line(app, {argv + 2, argv + argc});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
  }
  status = sluice::cli::end_output(status);
  if (sluice::engine::is_left_behind()) {
    spdlog::shutdown();
    std::_Exit(status);
  }
  return status;
}
