// What is reported to the user of a rule set: of what is not in force, or not as it is written, and why there is no
// rule.
//
// Thread-safety: any thread. Cost: a pass or two over the rules; for a start and a reload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "match/rules/rule_set.h"

namespace sluice::function {

// "1 rule", "2 rules".
std::string count_text(std::size_t count, const std::string& what);

// A sentence for each thing that the files say and that is not in force, or not as it is written. `lanes`: that count
// rates by themselves.
std::vector<std::string> notes_of(const match::RuleSet& set, std::uint32_t lanes);

// For a reload: fewer than half of the rules that served before, as of a file that was cut off. Empty: it is not so.
std::string note_of_fewer(std::size_t now, std::size_t before);

// Why a set that has no rules has none.
std::string why_none(const match::RuleSet& set);

// Of a set with rules that do not load: how many, and the first few with their places.
std::string why_not_all(const match::RuleSet& set);

// Behind a message on files that cannot be read: a relative name that is not there may be there for who starts the
// program elsewhere. Empty: there is no such name.
std::string where_from(const std::vector<std::string>& files);

}  // namespace sluice::function
