// sluice-bench: the benches, a program of their own so that the gateway is small. `sluice bench NAME` runs it, and what
// it says to people is that command's.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/commands.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/output_end.h"
#include "cli/signals.h"
#include "engine/engine.h"

int main(int argc, char** argv) {
  sluice::cli::hold_signals();
  signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));

  CLI::App app{"The benches of Sluice", "sluice"};
  sluice::cli::explain_mistakes(app);
  int status = 0;
  sluice::cli::add_benches(app, status);
  if (argc > 2 && std::string_view(argv[1]) == "completion") {  // a shell's question, by way of sluice
    return sluice::cli::print_completion(app, std::vector<std::string>(argv + 2, argv + argc));
  }
  std::vector<std::string> backwards(argv + std::min(argc, 1), argv + argc);  // as CLI11 wants a vector of words
  std::reverse(backwards.begin(), backwards.end());
  backwards.emplace_back("bench");
  try {
    app.parse(std::move(backwards));
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
  }
  status = sluice::cli::end_output(status);
  // A GPU's work never ends: what CUDA does when a process exits would wait for it.
  if (sluice::engine::is_left_behind()) {
    spdlog::shutdown();
    std::_Exit(status);
  }
  return status;
}
