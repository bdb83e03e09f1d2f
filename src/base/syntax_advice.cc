#include "base/syntax_advice.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace sluice {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t longest_value = 40;  // characters of a value that the advice repeats

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string_view line_of(std::string_view text, unsigned line) {
  for (; line > 1; --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool is_number(std::string_view value) {
  return !value.empty() && value.find_first_not_of("+-0123456789._") == std::string_view::npos;
}

bool is_switch(std::string_view value) {
  std::string word(value);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array words = {"true", "false", "yes", "no", "on", "off"};
  return std::ranges::find(words, word) != words.end();
}

// Of "key = VALUE", as it stands there.
std::string advice_for_value(std::string_view key, std::string_view value) {
  if (value.empty()) {
    return "a value goes behind the =";
  }
  if (value.front() == '"' || value.front() == '\'') {
    const bool open = std::ranges::count(value, value.front()) == 1;
    return open ? "the text has no " + std::string(1, value.front()) + " at its end" : "";
  }
  if (const std::string_view before = value.substr(0, value.size() - 1);
      (value.back() == ';' || value.back() == ',') && (is_number(before) || before == "true" || before == "false")) {
    return "nothing goes behind a value: take the " + std::string(1, value.back()) + " away";
  }
  if (is_switch(value)) {
    return "write true or false";
  }
  if (std::isalnum(static_cast<unsigned char>(value.front())) == 0 && value.front() != '/' && value.front() != '.') {
    return "";
  }
  return value.size() > longest_value || value.find('"') != std::string_view::npos
             ? "a text goes in quotes"
             : "a text goes in quotes: " + std::string(key) + " = \"" + std::string(value) + "\"";
}

}  // namespace

std::string syntax_advice(std::string_view text, unsigned line, unsigned column, std::string_view description) {
  const std::string_view whole = trimmed(line_of(text, line));
  const std::size_t equals = whole.find('=');
  if (description.find("cannot redefine") != std::string_view::npos) {
    return whole.starts_with('[') ? "a section is there once: put its keys together" : "a key is there once: keep one";
  }
  if (whole.starts_with('[') && equals == std::string_view::npos) {
    return whole.find(']') == std::string_view::npos ? "the section's name ends with ]" : "";
  }
  if (description.find("expected '='") != std::string_view::npos) {
    return "write key = value";
  }
  if (equals == std::string_view::npos || equals == 0 || column <= equals) {
    return "";
  }
  const std::string_view value = whole.substr(equals + 1);
  const bool quoted = value.find_first_of("\"'") != std::string_view::npos;
  return advice_for_value(trimmed(whole.substr(0, equals)), trimmed(quoted ? value : value.substr(0, value.find('#'))));
}

}  // namespace sluice
