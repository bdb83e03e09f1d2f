// In which order rules are treated, and which of those that look at HTTP have to wait for, or be tried again with, a
// later part of their message. So a flowbit that one rule sets holds for all others of the same packet or message that
// ask for it, wherever they stand in the files and whatever they look at.
//
// Sources: Suricata's order of signatures (SCSigOrderSignatures: action, flowbits, priority, sid), and for chains of
// flowbits its tickets 1399, 7638 and 7771.
//
// Thread-safety: any thread. Cost: O(n log n) of the rules and the flowbits that they name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "match/rules/rule.h"
#include "match/rules/rule_point.h"

namespace sluice::match {

// What a rule does with flowbits, in the order of treatment.
enum class BitOrder : std::uint8_t { sets, sets_and_asks, asks, none };
BitOrder bit_order_of(const Rule& rule);

// The rules by index: pass, drop, reject, alert; of one action by BitOrder; of those that set and ask for flowbits each
// behind those that set what it asks for, over chains of any length; then by priority, by sid, and as in the files.
// Rules that ask for each other's flowbits stand beside each other, by priority and sid.
std::vector<std::uint32_t> order_of_treatment(std::span<const Rule> rules);

// Where a rule that looks at HTTP is inspected.
struct RulePoints {
  struct OfMessage {
    Point first;  // in the part that brings the last of what it looks at, or later, as below
    // Up to here it is inspected again where a rule has just set a flowbit that it asks for.
    Point last;
  };
  // Of the message that point_of() names, and of the other one where other_point_of() names one.
  OfMessage of;
  std::optional<OfMessage> of_other;
  // Its flowbits are looked at and changed when a piece of the stream has reported all that it holds of the message, in
  // the order of treatment with the others that wait: a later part than the rule's may clear or set one of them, or a
  // rule that waits does.
  bool waits = false;
};

// By rule; Point::packet for those that do not look at HTTP. A rule with `isset` is inspected again with each later
// part of its message in which a rule may set the flowbit. What waits for a flowbit waits for rules whose action is not
// treated behind its own; rules of `pass` wait for none.
std::vector<RulePoints> points_of(std::span<const Rule> rules);

}  // namespace sluice::match
