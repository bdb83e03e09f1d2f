// sluice bench: hands its words on to sluice-bench, which lies beside this program.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/completion.h"

namespace sluice::cli {
namespace {

// Becomes that program; comes back, with the exit status, only if it cannot.
int run_benches(std::vector<std::string> words) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    std::fprintf(stderr, "sluice: bench: /proc/self/exe: %s: is /proc mounted?\n", error.message().c_str());
    return 1;
  }
  const std::string program = self.parent_path() / "sluice-bench";
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  std::fprintf(
      stderr,
      "sluice: bench: %s: %s: the benches are a program beside this one; it comes with the package sluice, with "
      "'make install', and in a build folder with 'cmake --build build --target sluice-bench'\n",
      program.c_str(), std::strerror(errno));
  return 2;
}

}  // namespace

int complete_line(const CLI::App& app, std::vector<std::string> words) {
  if (words.size() < 2 || words.front() != "bench") return print_completion(app, words);
  words.insert(words.begin(), "completion");
  return run_benches(std::move(words));
}

void add_bench(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("bench", "Measure this machine and the gateway on it");
  command->prefix_command();  // its words, --help among them, are for that program
  command->set_help_flag();
  command->callback([command, &status] { status = run_benches(command->remaining()); });
}

}  // namespace sluice::cli
