#include "control/config_reference.h"

#include <algorithm>
#include <utility>

#include "control/config_sections.h"

namespace sluice::control {

std::vector<OptionSection> file_sections() {
  return {option::section("[engine]", engine_settings()),
          option::section("[memory]", memory_settings()),
          option::section("[[port]]", port_settings(), "One for each port, at most 32."),
          option::section("[plugins]", plugin_settings()),
          option::section("[api]", api_settings()),
          option::section("[log]", log_settings()),
          option::section("[profile]", profile_settings())};
}

std::vector<OptionSection> sections_of(const engine::ElementType& type) {
  if (type.options) return type.options();
  return {{"[" + std::string(type.name) + "]"}};
}

std::string reference(const OptionSection& section) {
  std::string all = "<!-- settings of " + section.title + " -->\n\n";
  if (!section.text.empty()) all += section.text + "\n\n";
  if (!section.options.empty()) all += "| key | values | default | reload | meaning |\n|---|---|---|---|---|\n";
  for (const OptionFacts& option : section.options) {
    const auto cell = [](const std::string& text) { return text.empty() ? " |" : " " + text + " |"; };
    all += "| `" + option.key + "` |" + cell(option.values) + cell(option.usual) + cell(option.reloads ? "yes" : "") +
           cell(option.text) + "\n";
  }
  return all + (section.options.empty() ? "" : "\n") + "<!-- end of settings -->\n";
}

std::string reference() {
  std::vector<const engine::ElementType*> types;
  for (const engine::ElementType& type : engine::element_types()) types.push_back(&type);
  std::ranges::sort(types, {}, &engine::ElementType::name);
  std::vector<OptionSection> sections = file_sections();
  for (const engine::ElementType* type : types) std::ranges::move(sections_of(*type), std::back_inserter(sections));
  std::string all;
  for (const OptionSection& section : sections) all += (all.empty() ? "" : "\n") + reference(section);
  return all;
}

}  // namespace sluice::control
