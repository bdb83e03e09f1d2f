#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/name.h"
#include "base/quote.h"
#include "engine/element.h"
#include "engine/options.h"
#include "port/virtual_device.h"

namespace sluice::engine {
namespace {
std::deque<ElementType>& types() {
  static std::deque<ElementType> instance;
  return instance;
}

}  // namespace

bool register_element(ElementType type) {
  if (find_element(type.name) != nullptr) {
    std::fprintf(stderr, "element '%.*s' is registered twice\n", static_cast<int>(type.name.size()), type.name.data());
    std::abort();
  }
  if (type.has_ports) port::register_virtual_device(type.name);
  types().push_back(std::move(type));
  return true;
}

Expected<void> add_elements(std::vector<ElementType> added) {
  for (auto type = added.begin(); type != added.end(); ++type) {
    const std::string name(type->name);
    if (!is_name(name)) {
      return make_error("function " + in_quotes(name) + ": " + std::string(name_rule));
    }
    if (type->make == nullptr) {
      return make_error("function '" + name + "' cannot be made: set `make` of its ElementType");
    }
    if (const ElementType* const there = find_element(name)) {
      return make_error("function '" + name + "' is there already, " +
                        (there->origin.empty()
                             ? "built in: give it another name"
                             : "from " + there->origin + ": give it another name, or load one of the two"));
    }
    if (std::any_of(added.begin(), type, [&](const ElementType& other) { return other.name == name; })) {
      return make_error("function '" + name +
                        "' is registered twice, both by this plug-in: give one of the two another name");
    }
  }
  for (const ElementType& type : added) {
    if (type.has_ports) port::register_virtual_device(type.name);
  }
  std::ranges::move(added, std::back_inserter(types()));
  return {};
}

const std::deque<ElementType>& element_types() {
  return types();
}

const ElementType* find_element(std::string_view name) {
  for (const ElementType& type : types()) {
    if (type.name == name) {
      return &type;
    }
  }
  return nullptr;
}

std::vector<std::string> usual_chain() {
  const auto usual = std::ranges::find_if(types(), &ElementType::usual);
  return usual == types().end() ? std::vector<std::string>() : std::vector<std::string>{std::string(usual->name)};
}

const std::string* find_such(std::span<const std::string> chain, bool ElementType::*fact) {
  const auto found = std::ranges::find_if(chain, [fact](const std::string& name) {
    const ElementType* const type = find_element(name);
    return type != nullptr && type->*fact;
  });
  return found == chain.end() ? nullptr : &*found;
}

}  // namespace sluice::engine
