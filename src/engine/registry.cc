#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/function.h"

namespace sluice::engine {
namespace {
std::vector<FunctionType>& types() {
  static std::vector<FunctionType> instance;
  return instance;
}
}  // namespace

bool register_function(FunctionType type) {
  if (find_function(type.name) != nullptr) {
    std::fprintf(stderr, "function '%.*s' is registered twice\n", static_cast<int>(type.name.size()), type.name.data());
    std::abort();
  }
  types().push_back(std::move(type));
  return true;
}

const std::vector<FunctionType>& function_types() {
  return types();
}

const FunctionType* find_function(std::string_view name) {
  for (const FunctionType& type : types()) {
    if (type.name == name) {
      return &type;
    }
  }
  return nullptr;
}

const std::string* find_such(std::span<const std::string> chain, bool FunctionType::*fact) {
  const auto found = std::ranges::find_if(chain, [fact](const std::string& name) {
    const FunctionType* const type = find_function(name);
    return type != nullptr && type->*fact;
  });
  return found == chain.end() ? nullptr : &*found;
}

}  // namespace sluice::engine
