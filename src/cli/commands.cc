#include "cli/commands.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/quote.h"

namespace sluice::cli {
namespace {

bool is(const CLI::Error& error, CLI::ExitCodes code) {
  return error.get_exit_code() == static_cast<int>(code);
}

// What CLI11 says of a mistake, in words of ours where its own say little.
std::string in_our_words(const CLI::Error& error, const std::vector<std::string>& unknown) {
  const auto option = std::find_if(unknown.begin(), unknown.end(), [](const auto& word) { return word[0] == '-'; });
  if (option != unknown.end()) {
    return "there is no option " + in_quotes(*option);
  }
  if (!unknown.empty()) {
    return in_quotes(unknown.front()) + " is too much";
  }
  std::string text = error.what();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  const std::string conversion = "Could not convert: ";
  return text.starts_with(conversion) ? text.substr(conversion.size()) + " is no value that it takes" : text;
}

std::string explain(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app;
  std::string words;
  // What stands before the command is for none; a command that falls through leaves what it does not know there, too.
  const auto is_before = [&](const CLI::App* next) {
    return !command->remaining(false).empty() && !next->get_fallthrough();
  };
  while (!command->get_subcommands().empty() && !is_before(command->get_subcommands().front())) {
    command = command->get_subcommands().front();
    words += command->get_name() + " ";
  }
  std::string known;
  for (const CLI::App* one : command->get_subcommands([](const CLI::App*) { return true; })) {
    known += (known.empty() ? "" : ", ") + one->get_name();
  }
  std::vector<std::string> unknown;
  for (const std::string& word : app->remaining(true)) {
    if (!word.empty()) unknown.push_back(word);
  }
  if (!known.empty() && !unknown.empty() && unknown.front()[0] != '-') {
    return "sluice: there is no command " + in_quotes(words + unknown.front()) + "; there are " + known + "\n";
  }
  if (!known.empty() && unknown.empty() && is(error, CLI::ExitCodes::RequiredError)) {
    return "sluice: which " + words + "command? There are " + known + "\n";
  }
  const std::string name = words.empty() ? "" : words.substr(0, words.size() - 1) + ": ";
  return "sluice: " + name + in_our_words(error, unknown) + ": 'sluice " + words + "--help' lists what there is\n";
}

}  // namespace

void explain_mistakes(CLI::App& app) {
  app.failure_message(explain);
}

void require_file(const std::string& path) {
  if (path.empty()) {
    throw CLI::ValidationError("FILE is empty", CLI::ExitCodes::ValidationError);
  }
}

}  // namespace sluice::cli
