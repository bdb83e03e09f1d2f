#include "cli/commands.h"

namespace sluice::cli {
namespace {

std::string explain(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app;
  std::string words;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    words += command->get_name() + " ";
  }
  std::string known;
  for (const CLI::App* one : command->get_subcommands([](const CLI::App*) { return true; })) {
    known += (known.empty() ? "" : ", ") + one->get_name();
  }
  if (known.empty()) return CLI::FailureMessage::simple(app, error);
  for (const std::string& word : app->remaining(true)) {
    if (word.starts_with('-')) continue;
    return "sluice: there is no command \"" + words + word + "\"; there are " + known + "\n";
  }
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::RequiredError)) {
    return CLI::FailureMessage::simple(app, error);
  }
  return "sluice: which " + words + "command? There are " + known + "\n";
}

}  // namespace

void explain_mistakes(CLI::App& app) {
  app.failure_message(explain);
}

}  // namespace sluice::cli
