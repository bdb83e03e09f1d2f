// What can stand next on a command line, for a shell's completion (packaging/sluice.bash-completion asks
// `sluice completion WORD...`). Commands and options are those of the CLI11 app itself.
//
// Thread-safety: none.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace sluice::cli {

// Of an option's value, or of a word that is no option's. Options that check CLI::IsMember() say theirs by themselves.
CLI::Option* complete_with(CLI::Option* option, std::vector<std::string> words);
// Files whose names end so, "toml"; empty: any.
CLI::Option* complete_with_files(CLI::Option* option, std::string ending = {});

struct Completion {
  std::vector<std::string> words;  // that begin as the one that is being typed
  bool files = false;              // files, too
  std::string ending = {};         // of their names; empty: any
};

// `words`: those behind the program's name; the last one is being typed, and may be empty.
Completion complete(const CLI::App& app, std::span<const std::string> words);

// For the shell: a line for each word, and ":files ENDING" for files. Returns the exit status.
int print_completion(const CLI::App& app, std::span<const std::string> words);

}  // namespace sluice::cli
