// Words and numbers of RTSP's and SDP's texts.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::media {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Equal without regard to the case of ASCII letters.
constexpr bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) {
      return false;
    }
  }
  return true;
}

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// A method or a header's name (RFC 2326 section 15.1), a medium of SDP (RFC 4566 section 9, which has braces as well).
constexpr bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  for (const char c : text) {
    const bool is_letter = lower(c) >= 'a' && lower(c) <= 'z', is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit && others.find(c) == std::string_view::npos) {
      return false;
    }
  }
  return !text.empty();
}

// Without blanks and tabs at both ends.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// What stands before the first `separator`; `text` becomes what follows it, or empty.
constexpr std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

// As take_until(), but not at a separator within double quotes; a backslash there takes the next character with it.
constexpr std::string_view take_unquoted(std::string_view& text, char separator) {
  bool quoted = false;
  std::size_t at = 0;
  for (; at < text.size() && (quoted || text[at] != separator); ++at) {
    if (text[at] == '"') {
      quoted = !quoted;
    } else if (quoted && text[at] == '\\' && at + 1 < text.size()) {
      ++at;
    }
  }
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at < text.size() ? at + 1 : at);
  return taken;
}

// Without the double quotes around it, if both are there.
constexpr std::string_view without_quotes(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

// All of `text` as a number of digits alone, no sign, that fits and is at most `max`.
template <typename T = std::uint64_t>
std::optional<T> number(std::string_view text, T max = static_cast<T>(-1), int base = 10) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > max) {
    return std::nullopt;
  }
  return value;
}

}  // namespace sluice::media
