// What verbs of several elements have in common: a change and its answer, and printing a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
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

// POSTs `body`.
engine::VerbRequest change_request(std::string path, std::string body);
// A file, which may be a pipe, or "-": the standard input. Keys may be in it, so errors show none of it.
Expected<std::string> read_section_file(const std::string& path);
// "&address=192.0.2.1" of a request, whose characters need no escape; empty for an empty one.
tl::expected<std::string, engine::VerbRefusal> address_query(const std::string& address);
// "2 of 9 SAs; --limit for more" and a line's end, or nothing where all are shown.
std::string more_text(std::size_t shown, std::uint64_t count, const std::string& what);

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
