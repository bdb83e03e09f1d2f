#include "control/chain_hints.h"

#include <algorithm>

#include "engine/element.h"
#include "engine/options.h"

namespace sluice::control {
namespace {

bool is_stage(std::string_view name) {
  const engine::ElementType* const type = engine::find_element(name);
  return type != nullptr && !type->ends_chain;
}

bool forwards(std::string_view name) {
  return engine::find_element(name) != nullptr && !is_stage(name);
}

// By name, which has acl in front of what looks into packets or changes them, as the examples have it. Those that are
// there stay as they are.
void add_stage(std::vector<std::string>& stages, const std::string& name) {
  if (std::ranges::find(stages, name) != stages.end()) return;
  stages.insert(std::ranges::find_if(stages, [&](const std::string& one) { return one > name; }), name);
}

}  // namespace

std::string names_of_kind(bool stages) {
  std::vector<std::string_view> names;
  for (const engine::ElementType& type : engine::element_types()) {
    if (!type.ends_chain == stages) names.push_back(type.name);
  }
  std::ranges::sort(names);
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  return text;
}

std::string functions_and_places() {
  const std::string stages = names_of_kind(true);
  return "the last function is one of " + names_of_kind(false) +
         (stages.empty() ? "" : ", and in front of it there can be " + stages);
}

std::string chain_text(std::span<const std::string> chain) {
  std::string text;
  for (const std::string& name : chain) text += (text.empty() ? "[\"" : ", \"") + name + "\"";
  return text + "]";
}

std::vector<std::string> chain_with(std::string_view name, std::span<const std::string> chain,
                                    std::span<const std::string> others) {
  std::vector<std::string> made;
  std::string last = engine::Options().chain.back();
  for (const std::string& one : chain) {
    const bool is_there = std::ranges::find(made, one) != made.end();
    if (is_stage(one) && !is_there) made.push_back(one);
    if (forwards(one)) last = one;
  }
  if (is_stage(name)) add_stage(made, std::string(name));
  for (const std::string& one : others) {
    if (is_stage(one)) add_stage(made, one);
  }
  made.push_back(forwards(name) ? std::string(name) : last);
  return made;
}

}  // namespace sluice::control
