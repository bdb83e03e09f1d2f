#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/rules_report.h"
#include "match/rules/given_variables.h"
#include "match/rules/rule_set.h"

namespace sluice::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::vector<std::string> variables;
  bool all = false;
  bool list = false;
  bool json = false;
};

// True: there are some.
bool says_mistakes(const std::vector<std::string>& mistakes) {
  for (const std::string& mistake : mistakes) std::fprintf(stderr, "sluice rules: --var: %s\n", mistake.c_str());
  return !mistakes.empty();
}

int rules(const Arguments& arguments) {
  match::ReadOptions options;
  options.commented_out = arguments.all;
  if (says_mistakes(match::fix_variables(arguments.variables, options.variables))) return 2;
  const auto set = match::read_rules(arguments.files, options);
  if (!set) {
    std::fprintf(stderr, "%s\n", set.error().message.c_str());
    return 2;
  }
  if (says_mistakes(match::unusable_variables(set->variables))) return 2;  // they may name those of the files
  const std::string text = arguments.json ? rules_json(*set) : rules_text(*set, arguments.list);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return rules_status(*set);
}

}  // namespace

void add_rules(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("rules", "Say which detection rules load and, for those that do not, why");
  auto arguments = std::make_shared<Arguments>();
  complete_with_files(command->add_option("FILE", arguments->files, "rules of Snort 2 or Suricata, or a snort.conf"))
      ->required()
      ->type_name("");
  command->add_flag("--all", arguments->all, "read rules that are commented out, too");
  command->add_flag("--list", arguments->list, "every rule that does not load, with its place and why");
  command->add_flag("--json", arguments->json, "one JSON object, with that list");
  command
      ->add_option("--var", arguments->variables,
                   "a variable of the rules, whatever the files set it to; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->footer(
      "A rule loads only when every option in it is honoured: none is left out of a rule. docs/rules.md has the "
      "table.\n"
      "Exit status: 0 every rule that is not commented out loads, 1 some do not, 2 a file cannot be read, or a "
      "variable is no address and no port.");
  command->callback([arguments, &status] {
    for (const std::string& path : arguments->files) require_file(path);
    status = rules(*arguments);
  });
}

}  // namespace sluice::cli
