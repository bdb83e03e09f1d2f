// What verbs of several elements have in common: the answer to a change, and printing a list.
#pragma once

#include <string>
#include <vector>

#include "base/json_text.h"
#include "engine/verb.h"

namespace sluice::function {

// {"done": "a sentence", "warnings": [...]}, the warnings as one likes.
inline Expected<engine::VerbText> print_change(const std::string& answer) {
  const auto json = from_json_text<nlohmann::json>(answer);
  if (!json) return tl::unexpected(json.error());
  return engine::VerbText{json->value("done", std::string()) + "\n",
                          json->value("warnings", std::vector<std::string>())};
}

// A printer of answers that are a T.
template <typename T>
std::function<Expected<engine::VerbText>(const std::string&)> printer(std::string (*report)(const T&)) {
  return [report](const std::string& answer) -> Expected<engine::VerbText> {
    const auto value = from_json_text<T>(answer);
    if (!value) return tl::unexpected(value.error());
    return engine::VerbText{report(*value)};
  };
}

}  // namespace sluice::function
