#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "control/config.h"
#include "control/config_reference.h"
#include "control/pipeline_maker.h"
#include "control/plugins.h"
#include "engine/element.h"
#include "engine/port_table.h"

namespace sluice::cli {
namespace {

// Of a function that declares none: those that it asks an empty section for. One that only another brings up is not
// among them. `mistakes`: what is wrong with the function itself.
std::vector<std::string> asked_settings(const engine::ElementType& type, std::vector<std::string>& mistakes) {
  Diagnostics unsaid;
  Settings section = Settings::empty("", unsaid);
  Expected<std::unique_ptr<engine::Element>> made;
  std::string broken = control::try_make(type, section, engine::PortTable(), made);
  if (!broken.empty()) mistakes.push_back(std::move(broken));
  return section.asked();
}

void print_settings(const std::string& of, const std::vector<std::string>& keys) {
  std::string settings;
  for (const std::string& key : keys) settings += (settings.empty() ? "" : ", ") + key;
  std::printf("  settings%s: %s\n", of.c_str(), settings.empty() ? "none" : settings.c_str());
}

void print(const engine::ElementType& type, std::vector<std::string>& mistakes) {
  std::printf("%.*s: %.*s\n", static_cast<int>(type.name.size()), type.name.data(), static_cast<int>(type.text.size()),
              type.text.data());
  std::printf("  from: %s\n", type.origin.empty() ? "built in" : type.origin.c_str());
  std::printf("  place: %s\n", type.ends_chain ? "last of the chain" : "in front of the last");
  if (!type.options) print_settings("", asked_settings(type, mistakes));
  const std::string own = "[" + std::string(type.name) + "]";
  for (const OptionSection& section : type.options ? type.options() : std::vector<OptionSection>()) {
    std::vector<std::string> keys;
    for (const OptionFacts& option : section.options) keys.push_back(option.key);
    print_settings(section.title == own ? "" : " of " + section.title, keys);
  }
}

int list(const std::string& file, const std::vector<std::string>& plugins, bool as_reference) {
  std::vector<std::string> mistakes;
  if (!file.empty()) {
    const control::Config config = control::Config::from_file(file);
    if (!config.ok()) mistakes.push_back(config.mistakes());
  }
  for (const std::string& path : plugins) {
    if (const auto loaded = control::load_plugin(path); !loaded) {
      mistakes.push_back(loaded.error().message);
    }
  }
  if (as_reference) {
    std::fputs(control::reference().c_str(), stdout);
  } else {
    std::vector<const engine::ElementType*> types;
    for (const engine::ElementType& type : engine::element_types()) types.push_back(&type);
    std::ranges::sort(types, {}, &engine::ElementType::name);
    for (const engine::ElementType* type : types) print(*type, mistakes);
  }
  if (mistakes.empty()) return 0;
  std::fflush(stdout);
  for (const std::string& mistake : mistakes) std::fprintf(stderr, "%s\n", mistake.c_str());
  return 2;
}

}  // namespace

void add_functions(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("functions", "List the functions that a chain can have");
  auto file = std::make_shared<std::string>();
  auto plugins = std::make_shared<std::vector<std::string>>();
  auto as_reference = std::make_shared<bool>(false);
  CLI::Option* const given = complete_with_files(
      command->add_option("FILE", *file, "a configuration, whose [plugins] are loaded, too"), "toml");
  given->type_name("");
  complete_with_files(command->add_option("--load", *plugins, "a plug-in besides; may be given several times"), "so")
      ->type_name("PATH");
  command->add_flag("--reference", *as_reference,
                    "in place of the list every section and key of a configuration, as tables in Markdown");
  command->footer(
      "Of each function: its name and what it does, where it is from (built in, or a plug-in's path, name and\n"
      "version), its place in a chain, and the keys of its sections. --reference has their values, defaults and\n"
      "meaning. In code a function is called an element. Exit status: 0 ok, 2 a plug-in or the file is refused.");
  command->callback([given, file, plugins, as_reference, &status] {
    if (given->count() != 0) require_file(*file);
    status = list(*file, *plugins, *as_reference);
  });
}

}  // namespace sluice::cli
