#include "engine/api.h"

#include <charconv>

#include "base/spelling.h"

namespace sluice::engine {

Expected<std::uint32_t> read_limit(const std::string& value) {
  std::uint32_t limit = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), limit);
  if (problem != std::errc{} || end != value.data() + value.size() || limit < 1 || limit > most_rows) {
    return make_error("limit=" + value + ": allowed is a number from 1 to " + std::to_string(most_rows));
  }
  return limit;
}

tl::unexpected<Error> unknown_parameter(const std::string& key, const std::vector<std::string>& known) {
  return make_error("unknown parameter \"" + key + "\"" + spelling_hint(key, known));
}

}  // namespace sluice::engine
