// Names of functions, reasons and metrics: small letters, digits and '_', a letter first. They are words of the
// configuration, of the API and of Prometheus.
#pragma once

#include <algorithm>
#include <string_view>

namespace sluice {

// What a name has, for messages about one that is none.
inline constexpr std::string_view name_rule = "a name has small letters, digits and '_', and a letter first";

inline bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace sluice
