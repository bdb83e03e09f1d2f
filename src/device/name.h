// What GPUs are called in the configuration and in what Sluice says: "cuda:0".
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::device {

inline std::string gpu_name(int index) {
  return "cuda:" + std::to_string(index);
}

// Nothing when `name` is no GPU's.
inline std::optional<int> gpu_index(std::string_view name) {
  constexpr std::string_view prefix = "cuda:";
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  int index = -1;
  const auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), index);
  return problem == std::errc() && rest == name.data() + name.size() && index >= 0 ? std::optional(index)
                                                                                   : std::nullopt;
}

// Of one, or of several with commas between them, each once: "cuda:0,cuda:1". Nothing when a part is no GPU's name.
inline std::optional<std::vector<int>> gpu_indices(std::string_view names) {
  std::vector<int> indices;
  for (bool more = true; more;) {
    const std::size_t comma = names.find(',');
    const auto index = gpu_index(names.substr(0, comma));
    if (!index || std::ranges::find(indices, *index) != indices.end()) return std::nullopt;
    indices.push_back(*index);
    more = comma != std::string_view::npos;
    names.remove_prefix(more ? comma + 1 : 0);
  }
  return indices;
}

}  // namespace sluice::device
