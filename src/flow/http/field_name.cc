#include "flow/http/field_name.h"

#include <algorithm>
#include <array>

#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::array<std::string_view, known_field_names> texts = {
    "accept", "accept-encoding", "accept-language", "connection", "content-length", "content-type", "cookie",
    "host",   "location",        "referer",         "server",     "set-cookie",     "upgrade",      "user-agent"};
static_assert(std::ranges::is_sorted(texts));
constexpr std::size_t longest =
    std::ranges::max_element(texts, {}, [](std::string_view text) { return text.size(); })->size();

// Of each letter, the first text that begins with it or a later one; at the end, none.
constexpr auto first_of_letter = [] {
  std::array<std::uint8_t, 27> first{};
  for (std::size_t letter = 0; letter < first.size(); ++letter) {
    const auto c = static_cast<char>('a' + letter);
    const auto* const at = std::ranges::find_if(texts, [&](std::string_view text) { return text[0] >= c; });
    first[letter] = static_cast<std::uint8_t>(at - texts.begin());
  }
  return first;
}();

}  // namespace

FieldName field_name_of(std::string_view name) {
  std::array<char, longest> small;
  std::size_t size = 0;
  for (const char c : name) {
    if (c == '\0') continue;
    if (size == longest) return FieldName::other;
    small[size++] = lower(c);
  }
  if (size == 0 || small[0] < 'a' || small[0] > 'z') return FieldName::other;
  const std::string_view plain(small.data(), size);
  const auto letter = static_cast<std::size_t>(small[0] - 'a');
  for (std::size_t i = first_of_letter[letter]; i < first_of_letter[letter + 1]; ++i) {
    if (texts[i] == plain) return static_cast<FieldName>(i);
  }
  return FieldName::other;
}

}  // namespace sluice::flow::http
