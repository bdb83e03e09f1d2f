// Bytes of HTTP messages as libhtp and the browsers it follows see them: what counts as space, names without case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::flow::http {

// isspace() of the C locale.
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
// What stands around a value and does not belong to it.
constexpr bool is_padding(char c) {
  return is_space(c) || c == '\0';
}
// What begins a line that goes on with the header before it.
constexpr bool is_folding(char c) {
  return c == ' ' || c == '\t' || c == '\0';
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
// What methods are made of (RFC 9110 section 5.6.2).
constexpr bool is_token(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
// -1: no hexadecimal digit.
constexpr int hex_value(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

constexpr std::string_view trim_front(std::string_view text) {
  while (!text.empty() && is_padding(text.front())) {
    text.remove_prefix(1);
  }
  return text;
}

constexpr std::string_view trim(std::string_view text) {
  text = trim_front(text);
  while (!text.empty() && is_padding(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// Where `part` is in `whole`.
constexpr void set_piece(std::string_view part, std::string_view whole, std::uint32_t& at, std::uint32_t& size) {
  at = static_cast<std::uint32_t>(part.data() - whole.data());
  size = static_cast<std::uint32_t>(part.size());
}

// Without regard to case and to NULs in `a`, which some servers and clients skip in names.
constexpr bool same_name(std::string_view a, std::string_view b) {
  std::size_t at = 0;
  for (const char c : a) {
    if (c == '\0') {
      continue;
    }
    if (at == b.size() || lower(c) != lower(b[at])) {
      return false;
    }
    ++at;
  }
  return at == b.size();
}

// As that, with NULs skipped in both.
constexpr bool equal_names(std::string_view a, std::string_view b) {
  std::size_t in_a = 0, in_b = 0;
  for (;;) {
    while (in_a < a.size() && a[in_a] == '\0') ++in_a;
    while (in_b < b.size() && b[in_b] == '\0') ++in_b;
    if (in_a == a.size() || in_b == b.size()) {
      return in_a == a.size() && in_b == b.size();
    }
    if (lower(a[in_a++]) != lower(b[in_b++])) {
      return false;
    }
  }
}

// The same for names that are (equal_names()). `seed` is not known to who chooses them.
constexpr std::uint64_t name_hash(std::string_view name, std::uint64_t seed) {
  std::uint64_t hash = seed;
  for (const char c : name) {
    if (c != '\0') {
      hash = (hash ^ static_cast<unsigned char>(lower(c))) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

// Whether `text` has `word`, written small, in it, without regard to case.
constexpr bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at + word.size() <= text.size(); ++at) {
    std::size_t same = 0;
    while (same < word.size() && lower(text[at + same]) == word[same]) {
      ++same;
    }
    if (same == word.size()) {
      return true;
    }
  }
  return false;
}

// The first run of characters up to white space; `text` becomes what follows the white space.
constexpr std::string_view take_word(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && !is_space(text[end])) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  while (end < text.size() && is_space(text[end])) {
    ++end;
  }
  text.remove_prefix(end);
  return word;
}

// The first word of bytes that come piece by piece, and the blanks before it: however often it is asked, each byte is
// looked at once.
struct Word {
  // False: all of `bytes` are blanks.
  template <typename Blank>
  constexpr bool skip(std::string_view bytes, Blank is_blank) {
    while (begin < bytes.size() && is_blank(bytes[begin])) {
      ++begin;
    }
    end = end < begin ? begin : end;
    return begin < bytes.size();
  }
  template <typename Part>
  constexpr void read(std::string_view bytes, Part is_part) {
    while (end < bytes.size() && is_part(bytes[end])) {
      ++end;
    }
  }
  // The line that the word stands in, without its end. False: that has not come.
  constexpr bool read_line(std::string_view bytes, std::string_view& line) {
    const std::size_t lf = bytes.find('\n', searched < begin ? begin : searched);
    searched = static_cast<std::uint32_t>(lf == std::string_view::npos ? bytes.size() : lf);
    line = bytes.substr(begin, searched - begin);
    return lf != std::string_view::npos;
  }

  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t searched = 0;  // no line ends before
};

}  // namespace sluice::flow::http
