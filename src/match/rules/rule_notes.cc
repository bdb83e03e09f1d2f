#include "match/rules/rule_notes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/quote.h"

namespace sluice::match {
namespace {

using Names = std::set<std::string_view>;

bool is_met(const Flowbits& bits, const Names& settable) {
  if (bits.operation != Flowbits::Operation::isset) return true;
  const auto can_be = [&](const std::string& name) { return settable.contains(name); };
  return bits.any ? std::ranges::any_of(bits.names, can_be) : std::ranges::all_of(bits.names, can_be);
}

void add_what_it_sets(const Rule& rule, Names& names) {
  for (const Flowbits& bits : rule.flowbits) {
    if (bits.operation == Flowbits::Operation::set || bits.operation == Flowbits::Operation::toggle) {
      names.insert(bits.names.begin(), bits.names.end());
    }
  }
}

// What the rule waits for that is not `settable`; `set_by_any`: by rules that wait in vain themselves, too.
std::string missing(const Rule& rule, const Names& settable, const Names& set_by_any) {
  for (const Flowbits& bits : rule.flowbits) {
    if (is_met(bits, settable)) continue;
    const auto name = std::ranges::find_if(bits.names, [&](const std::string& one) { return !settable.contains(one); });
    return "flowbits: " + (set_by_any.contains(*name)
                               ? "only rules set " + in_quotes(*name) + " that wait in vain themselves"
                               : "no rule sets " + in_quotes(*name));
  }
  return {};
}

RuleNotes waiting_in_vain(const RuleSet& set) {
  RuleNotes notes{
      "waiting_in_vain", "rule waits for a flowbit that no rule sets", "rules wait for flowbits that no rule sets", {}};
  std::vector<const Rule*> waiting;
  Names settable, set_by_any;
  for (const Rule& rule : set.rules) {
    add_what_it_sets(rule, set_by_any);
    const bool waits = std::ranges::any_of(
        rule.flowbits, [](const Flowbits& bits) { return bits.operation == Flowbits::Operation::isset; });
    if (waits) waiting.push_back(&rule);
    if (!waits) add_what_it_sets(rule, settable);
  }
  // From what is set in any case on: rules that wait for each other are not among it.
  for (std::size_t before = waiting.size() + 1; waiting.size() < before;) {
    before = waiting.size();
    std::erase_if(waiting, [&](const Rule* rule) {
      const bool met = std::ranges::all_of(rule->flowbits, [&](const auto& bits) { return is_met(bits, settable); });
      if (met) add_what_it_sets(*rule, settable);
      return met;
    });
  }
  for (const Rule* rule : waiting) {
    notes.rules.push_back({rule->file, rule->line, rule->sid, missing(*rule, settable, set_by_any)});
  }
  return notes;
}

RuleNotes of_unknown_class(const RuleSet& set) {
  RuleNotes notes{"of_unknown_class",
                  "rule is of a class type that is not known",
                  "rules are of class types that are not known",
                  {}};
  for (const Rule& rule : set.rules) {
    if (rule.classtype.empty() || set.classification.find(rule.classtype) != nullptr) continue;
    notes.rules.push_back({rule.file, rule.line, rule.sid,
                           "classtype: " + in_quotes(rule.classtype) + " is not known, and the priority is " +
                               std::to_string(rule.priority)});
  }
  return notes;
}

}  // namespace

std::string RuleNotes::text(const RuleSet& set) const {
  const RuleNote& first = rules.front();
  return std::to_string(rules.size()) + " " + std::string(rules.size() == 1 ? one : several) + ", such as " +
         set.place(first.file, first.line) + ": " + first.message;
}

std::vector<RuleNotes> notes_on(const RuleSet& set) {
  std::vector<RuleNotes> notes;
  for (const auto find : {waiting_in_vain, of_unknown_class}) {
    if (RuleNotes found = find(set); !found.rules.empty()) notes.push_back(std::move(found));
  }
  return notes;
}

}  // namespace sluice::match
