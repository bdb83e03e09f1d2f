// A rule's text in pieces: seven words of a header, and options. Views into the text; no state.
#pragma once

#include <array>
#include <string_view>

#include "base/error.h"

namespace sluice::match {

// action, protocol, source address, source port, direction, destination address, destination port
struct RuleText {
  std::array<std::string_view, 7> header;
  std::string_view options;  // between the parentheses
};

struct OptionText {
  std::string_view name;
  std::string_view value;  // trimmed, with its quotes and backslashes
  bool has_value = false;
};

Expected<RuleText> split_rule(std::string_view text);

// Takes the next option off the front; text that holds blanks only has none more (ask first). It ends at the first
// semicolon without a backslash before it. A value that begins with a quote ends at a semicolon after a quote, and one
// within is an Error: a quote may be missing, and the options behind it would be part of the text.
Expected<OptionText> take_option(std::string_view& text);

// The text of a rule behind a # (without it), as it would be without: it begins with an action, and is whole.
bool looks_like_rule(std::string_view text);

}  // namespace sluice::match
