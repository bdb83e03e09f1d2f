// The subcommands that talk to people. Each add_*() declares its options on `app` and, when its command was given, runs
// it during parsing and leaves the exit status in `status`: 0 ok, 1 failed, 2 bad input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

// A mistake on the command line becomes one line: a word where a command should be, with the commands there are; any
// other with the command whose --help lists what it takes.
void explain_mistakes(CLI::App& app);

// For a command's callback: an empty FILE (a shell variable that is not set, say) is a mistake on the command line.
void require_file(const std::string& path);

// sluice run FILE: the gateway itself.
void add_run(CLI::App& app, int& status);
// sluice bench NAME: becomes the program sluice-bench (src/bench/), which measures this machine and the gateway on it.
void add_bench(CLI::App& app, int& status);
// What can follow these words of a command line (completion.h); those of `bench` are asked of its program.
int complete_line(const CLI::App& app, std::vector<std::string> words);
// sluice calibrate FILE: measures what its chain carries in time on this machine and device.
void add_calibrate(CLI::App& app, int& status);
// sluice check FILE: reads the configuration and does nothing else.
void add_check(CLI::App& app, int& status);
// sluice functions [FILE] [--load PATH]: lists the functions that there are.
void add_functions(CLI::App& app, int& status);
// sluice rules FILE...: says which detection rules load and, for those that do not, why.
void add_rules(CLI::App& app, int& status);
// sluice ctl stats|routes|neighbours|functions|ports|config|metrics|reload|reopen|stop: asks a running gateway.
void add_ctl(CLI::App& app, int& status);
// sluice capture PORT|any|lane:N|drops [FILTER]: frames of a running gateway, as pcapng.
void add_capture(CLI::App& app, int& status);
// sluice top: what a running gateway does, refreshed each second.
void add_top(CLI::App& app, int& status);

}  // namespace sluice::cli
