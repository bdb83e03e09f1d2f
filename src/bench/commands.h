// sluice bench NAME: measures this machine and the gateway on it. The commands of the program sluice-bench, which
// `sluice bench` runs.
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::cli {

// Declares the command "bench" with a command for each bench. One that was given runs during parsing and leaves the
// exit status in `status`: 0 its goals are reached, 1 one is missed or something failed, 2 bad input.
void add_benches(CLI::App& app, int& status);

}  // namespace sluice::cli
