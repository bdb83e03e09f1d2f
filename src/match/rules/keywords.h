// Every option of a rule that the reader knows by name: those it honours, with how each is read, and those it refuses,
// with why. The page docs/rules.md shows this table. A rule with an option that is in neither half is refused as well.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "match/rules/draft.h"

namespace sluice::match {

// Reads an option's value into the draft. The answer is what is wrong with it; empty: nothing.
using ParseOption = std::string (*)(Draft& draft, std::string_view value);

enum class Argument : unsigned char { none, required, optional };

struct Keyword {
  std::string_view name;
  ParseOption parse = nullptr;  // nullptr: refused
  Argument argument = Argument::required;
  std::string_view why = {};  // it is refused
};

// Names of buffers are options, too, and not in here: buffer.h.
std::span<const Keyword> keywords();
const Keyword* find_keyword(std::string_view name);

// Why options whose names begin so are refused ("tls.", "dns.", "ssh."); empty: no such family.
std::string_view family_refusal(std::string_view name);

}  // namespace sluice::match
