#include "match/rules/lexer.h"

#include <algorithm>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

// Of the option's text after its name and colon: the semicolon that ends it, or text.size().
std::size_t end_of_value(std::string_view text) {
  std::size_t begin = text.find_first_not_of(" \t!");
  const bool quoted = begin != std::string_view::npos && text[begin] == '"';
  bool escaped = false;
  bool after_quote = false;  // the last character but blanks was a quote, other than the first
  for (std::size_t i = quoted ? begin + 1 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ';' && !escaped && (!quoted || after_quote)) return i;
    if (c != ' ' && c != '\t') after_quote = c == '"' && !escaped;
    escaped = c == '\\' && !escaped;
  }
  return text.size();
}

// Of a value in quotes: with one that a quote is missing in front of, the options behind it would be part of its text.
bool has_bare_semicolon(std::string_view value) {
  for (std::size_t at = value.find(';'); at != std::string_view::npos; at = value.find(';', at + 1)) {
    std::size_t backslashes = 0;
    while (backslashes < at && value[at - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return true;
  }
  return false;
}

}  // namespace

Expected<RuleText> split_rule(std::string_view text) {
  text = trimmed(text);
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return make_error("it has no options in parentheses");
  if (!text.ends_with(')')) return make_error("it does not end with a closing parenthesis");
  RuleText rule;
  std::string_view header = text.substr(0, open);
  for (std::string_view& word : rule.header) word = take_word(header);
  if (rule.header.back().empty() || !trimmed(header).empty()) {
    return make_error("its header is not ACTION PROTOCOL SOURCE PORT -> DESTINATION PORT");
  }
  rule.options = text.substr(open + 1, text.size() - open - 2);
  return rule;
}

Expected<OptionText> take_option(std::string_view& text) {
  OptionText option;
  const std::size_t colon = text.find_first_of(":;");
  option.name = trimmed(text.substr(0, colon));
  if (colon == std::string_view::npos) return make_error("its last option does not end with a semicolon");
  if (option.name.empty()) return make_error("it has an option without a name");
  std::size_t end = colon;
  if (text[colon] == ':') {
    const std::string_view rest = text.substr(colon + 1);
    const std::size_t length = end_of_value(rest);
    if (length == rest.size()) return make_error(in_quotes(option.name) + " does not end with a semicolon");
    if (has_bare_semicolon(rest.substr(0, length))) {
      return make_error(in_quotes(option.name) +
                        " has a semicolon within quotes: write \\; there, or close the quotes before it");
    }
    option.value = trimmed(rest.substr(0, length));
    option.has_value = true;
    end = colon + 1 + length;
  }
  text.remove_prefix(end + 1);
  return option;
}

bool looks_like_rule(std::string_view text) {
  constexpr std::array<std::string_view, 12> actions{"alert",     "drop",      "reject",     "pass",
                                                     "log",       "sdrop",     "activate",   "dynamic",
                                                     "rejectsrc", "rejectdst", "rejectboth", "block"};
  text = trimmed(text);
  if (!text.ends_with(')') || text.find('(') == std::string_view::npos) return false;
  const std::string action = lower_case(take_word(text));
  return std::find(actions.begin(), actions.end(), action) != actions.end() &&
         (text.find("->") != std::string_view::npos || text.find("<>") != std::string_view::npos);
}

}  // namespace sluice::match
