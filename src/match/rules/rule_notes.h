// What is noteworthy of rules that load: of those that wait for a flowbit that no rule sets, and of those whose class
// type is not known. They are misspelt, or what they need was refused or is not there.
//
// Thread-safety: any thread. Cost: some us for each 1,000 rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "match/rules/rule_set.h"

namespace sluice::match {

struct RuleNote {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t sid = 0;
  std::string message;  // "flowbits: no rule sets 'logged_in'"
};

struct RuleNotes {
  std::string_view name;          // snake_case: "waiting_in_vain"
  std::string_view one, several;  // what follows their number: "rule waits for ..."
  std::vector<RuleNote> rules;    // in the set's order

  // "2 rules wait for flowbits that no rule sets, such as a.rules:3: ..."
  std::string text(const RuleSet& set) const;
};

// Those of which there are rules. A rule waits in vain, too, for a flowbit that only rules set which wait in vain.
std::vector<RuleNotes> notes_on(const RuleSet& set);

}  // namespace sluice::match
