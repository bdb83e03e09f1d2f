#include "base/syntax_advice.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/spelling.h"

namespace sluice {
namespace {

constexpr std::string_view blanks = " \t\r";
// Sections of which a configuration may have several.
constexpr std::array<std::string_view, 7> repeated = {
    "port", "acl.rule", "acl.set", "route.connected", "route.neighbour", "srtp.rtsp.server", "srtp.stream"};
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// With underscores, each between two digits.
bool is_digits(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!is_digit(text[i]) && !(text[i] == '_' && between)) return false;
  }
  return !text.empty();
}

// Whether TOML takes it as a decimal number, and 64 bits hold it.
bool is_number(std::string_view value) {
  constexpr std::size_t longest = 18;
  value.remove_prefix(value.starts_with('+') || value.starts_with('-') ? 1 : 0);
  const std::size_t point = std::min(value.find('.'), value.size());
  const std::string_view whole = value.substr(0, point);
  return value.size() <= longest && is_digits(whole) && (whole.size() == 1 || whole.front() != '0') &&
         (point == value.size() || is_digits(value.substr(point + 1)));
}

// Numbers with commas between them.
bool is_list(std::string_view value) {
  std::size_t comma = value.find(',');
  bool numbers = comma != std::string_view::npos;
  while (numbers && comma != std::string_view::npos) {
    numbers = is_number(trimmed(value.substr(0, comma)));
    value.remove_prefix(comma + 1);
    comma = value.find(',');
  }
  return numbers && is_number(trimmed(value));
}

// What somebody writes who means true or false, misspelt or not.
bool is_switch(std::string_view value) {
  constexpr std::size_t longest = 8;
  if (value.size() > longest) return false;
  std::string word(value);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array words = {"yes", "no", "on", "off", "fal"};
  return std::ranges::find(words, word) != words.end() || edit_distance(word, "true") < 2 ||
         edit_distance(word, "false") < 2;
}

// "10ms", "1.5s", "512M"; not "0x5g" and "1e5x", which begin as numbers do.
bool has_unit(std::string_view value) {
  const std::size_t unit = std::min(value.find_first_not_of("0123456789."), value.size());
  return unit < value.size() && is_number(value.substr(0, unit)) &&
         std::ranges::all_of(value.substr(unit), is_letter) && value[unit] != 'e' && value[unit] != 'E' &&
         !(value.front() == '0' && value.size() > 2);
}

// Of IP (with a prefix length or a port), Ethernet or PCI; not a time of day.
bool is_address(std::string_view value) {
  const auto colons = std::ranges::count(value, ':');
  const bool is_time = colons == 2 && value.find(':') == 2;
  return value.find_first_not_of("0123456789abcdefABCDEF.:/") == std::string_view::npos && !is_time &&
         colons + std::ranges::count(value, '.') > 2;
}

// Whether it can only be meant as a text: a number, date or list that is wrong somewhere is none for being in quotes.
bool is_text(std::string_view value, std::string_view description) {
  if (description.find("could not determine value type") != std::string_view::npos) {
    return is_letter(value.front()) || is_digit(value.front()) || value.front() == '/' || value.front() == '.';
  }
  // A word of which toml++ has taken the first letter for that of true, false, inf or nan.
  return is_letter(value.front()) || has_unit(value) || is_address(value);
}

// Of "key = VALUE", as it stands there.
std::string advice_for_value(std::string_view key, std::string_view value, std::string_view description) {
  if (value.empty()) {
    return "a value goes behind the =";
  }
  if (value.front() == '"' || value.front() == '\'') {
    const bool open = std::ranges::count(value, value.front()) == 1;
    return open ? "the text has no " + std::string(1, value.front()) + " at its end" : "";
  }
  const bool ended = value.back() == ';' || value.back() == ',';
  const std::string_view before = ended ? trimmed(value.substr(0, value.size() - 1)) : value;
  if (ended && (is_number(before) || before == "true" || before == "false")) {
    return "nothing goes behind a value: take the " + std::string(1, value.back()) + " away";
  }
  if (is_switch(before)) {
    return "write true or false";
  }
  if (is_list(before)) {
    return "a list goes in [ ]";
  }
  if (before.empty() || !is_text(before, description)) {
    return "";
  }
  return before.size() > longest_value || before.find('"') != std::string_view::npos
             ? "a text goes in quotes"
             : "a text goes in quotes: " + std::string(key) + " = \"" + std::string(before) + "\"";
}

// Of "[name]" and "[[name]]", and whatever is behind it.
std::string_view section_name(std::string_view header) {
  header.remove_prefix(std::min(header.find_first_not_of("[ \t"), header.size()));
  return trimmed(header.substr(0, header.find(']')));
}

}  // namespace

std::string syntax_advice(std::string_view text, unsigned line, unsigned column, std::string_view description) {
  const std::string_view all = line_of(text, line);
  const std::string_view whole = trimmed(all);
  const std::size_t equals = whole.find('=');
  if (description.find("cannot redefine") != std::string_view::npos) {
    if (!whole.starts_with('[')) return "a key is there once: keep one";
    const std::string_view name = section_name(whole);
    return std::ranges::find(repeated, name) == repeated.end()
               ? "a section is there once: put its keys together"
               : "there may be several of it: write [[" + std::string(name) + "]] each time";
  }
  if (whole.starts_with('[') && equals == std::string_view::npos) {
    return whole.find(']') == std::string_view::npos ? "the section's name ends with ]" : "";
  }
  if (description.find("expected '='") != std::string_view::npos) {
    return "write key = value";
  }
  const auto indent = static_cast<std::size_t>(whole.data() - all.data());
  if (equals == std::string_view::npos || equals == 0 || column <= indent + equals + 1) {  // not of the value
    return "";
  }
  const std::string_view value = whole.substr(equals + 1);
  const bool quoted = value.find_first_of("\"'") != std::string_view::npos;
  return advice_for_value(trimmed(whole.substr(0, equals)), trimmed(quoted ? value : value.substr(0, value.find('#'))),
                          description);
}

}  // namespace sluice
