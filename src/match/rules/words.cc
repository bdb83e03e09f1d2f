#include "match/rules/words.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/quote.h"

namespace sluice::match {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

// The first of `stops` that is outside of brackets, from `begin` on; text.size(): none.
std::size_t find_outside(std::string_view text, std::size_t begin, std::string_view stops) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (depth == 0 && stops.find(text[i]) != std::string_view::npos) return i;
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && depth > 0) --depth;
  }
  return text.size();
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_group(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t end = find_outside(text, begin, ",");
    pieces.push_back(trimmed(text.substr(begin, end - begin)));
    if (end == text.size()) return pieces;
    begin = end + 1;
  }
}

std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t end = find_outside(text, begin, blanks);
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  bool negative = false;
  if (text.starts_with('-') || text.starts_with('+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (text.empty() || error != std::errc() || stop != end ||
      value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

std::string no_number(std::string_view text, std::int64_t min, std::int64_t max) {
  return in_quotes(text) + " is no number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && std::string_view(";:\"\\").find(text[i + 1]) != std::string::npos) {
      ++i;
    }
    plain += text[i];
  }
  return plain;
}

}  // namespace sluice::match
