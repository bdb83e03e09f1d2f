#include "base/option.h"

#include <array>
#include <cstdio>

namespace sluice::option {

std::string literal(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      all.append({'\\', c});
    } else if (code < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", code);
      all += escaped.data();
    } else {
      all += c;
    }
  }
  return all + '"';
}

std::string list_literal(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + literal(text);
  return "[" + all + "]";
}

std::string size_literal(std::uint64_t bytes) {
  const std::string text = bytes_text(bytes);
  return text.back() <= '9' ? text : literal(text);
}

std::string Sizes::text() const {
  return "`" + size_literal(least) + "` to `" + size_literal(most) + "`" + (or_none ? ", 0: no limit" : "");
}

}  // namespace sluice::option
