// What `sluice rules` says about a set of rules: as text for people, as JSON for programs.
#pragma once

#include <string>

#include "match/rules/rule_set.h"

namespace sluice::cli {

// Totals by action, the reasons for which rules do not load (the most frequent first), and what the matcher will get:
// contents, rules without a pattern, lengths of patterns. `list`: every rule that does not load, too.
std::string rules_text(const match::RuleSet& set, bool list);

// The same with every rule that does not load; one object, a line break at its end.
std::string rules_json(const match::RuleSet& set);

// 1 when an active rule does not load.
int rules_status(const match::RuleSet& set);

}  // namespace sluice::cli
