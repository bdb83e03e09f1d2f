#include "control/chain_hints.h"

#include <algorithm>

#include "engine/element.h"
#include "engine/options.h"

namespace sluice::control {
namespace {

bool goes_in_front(std::string_view name) {
  const engine::ElementType* const type = engine::find_element(name);
  return type != nullptr && !type->ends_chain;
}

bool forwards(std::string_view name) {
  return engine::find_element(name) != nullptr && !goes_in_front(name);
}

bool begins(std::string_view name) {
  const engine::ElementType* const type = engine::find_element(name);
  return type != nullptr && type->begins_chain;
}

// By name, which has acl in front of what looks into packets or changes them, as the examples have it. Those that are
// there stay as they are.
void add_in_front(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) != names.end()) return;
  const auto behind = [&](const std::string& one) { return !begins(one) && (begins(name) || one > name); };
  names.insert(std::ranges::find_if(names, behind), name);
}

}  // namespace

std::string names_of_kind(bool in_front) {
  std::vector<std::string_view> names;
  for (const engine::ElementType& type : engine::element_types()) {
    if (!type.ends_chain == in_front) names.push_back(type.name);
  }
  std::ranges::sort(names);
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  return text;
}

std::string functions_and_places() {
  const std::string in_front = names_of_kind(true);
  return "the last function is one of " + names_of_kind(false) +
         (in_front.empty() ? "" : ", and in front of it there can be " + in_front);
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
    if (goes_in_front(one) && !is_there) made.push_back(one);
    if (forwards(one)) last = one;
  }
  if (goes_in_front(name)) add_in_front(made, std::string(name));
  for (const std::string& one : others) {
    if (goes_in_front(one)) add_in_front(made, one);
    if (forwards(one)) last = one;
  }
  std::stable_partition(made.begin(), made.end(), begins);
  made.push_back(forwards(name) ? std::string(name) : last);
  return made;
}

}  // namespace sluice::control
