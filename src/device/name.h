// What GPUs are called in the configuration and in what Sluice says: "cuda:0".
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace sluice::device
