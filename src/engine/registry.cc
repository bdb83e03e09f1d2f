#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/element.h"

namespace sluice::engine {
namespace {
std::vector<ElementType>& types() {
  static std::vector<ElementType> instance;
  return instance;
}
}  // namespace

bool register_element(ElementType type) {
  if (find_element(type.name) != nullptr) {
    std::fprintf(stderr, "element '%.*s' is registered twice\n", static_cast<int>(type.name.size()), type.name.data());
    std::abort();
  }
  types().push_back(std::move(type));
  return true;
}

const std::vector<ElementType>& element_types() {
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

const std::string* find_such(std::span<const std::string> chain, bool ElementType::*fact) {
  const auto found = std::ranges::find_if(chain, [fact](const std::string& name) {
    const ElementType* const type = find_element(name);
    return type != nullptr && type->*fact;
  });
  return found == chain.end() ? nullptr : &*found;
}

}  // namespace sluice::engine
