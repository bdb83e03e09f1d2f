// Values of types that nlohmann/json converts, as a text of JSON and back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// From a text that may be anything.
template <typename T>
Expected<T> from_json_text(std::string_view text) {
  try {
    return nlohmann::json::parse(text).get<T>();
  } catch (const nlohmann::json::exception& problem) {
    return make_error(std::string("not the JSON that was expected: ") + problem.what());
  }
}

// One line; bytes that are not UTF-8 become U+FFFD.
template <typename T>
std::string to_json_text(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice
