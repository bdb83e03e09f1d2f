#include "lookup/acl/rule_lists.h"

#include <algorithm>

namespace sluice::lookup::acl {

namespace {

constexpr unsigned most_looks = 512;

}  // namespace

bool contains_rest(const AclRule& a, const AclRule& b) {
  return a.protocol.contains(b.protocol) && a.flags.contains(b.flags) && a.source_port.contains(b.source_port) &&
         a.destination_port.contains(b.destination_port) && a.tags.contains(b.tags);
}

// Leaving a rule out only makes tables smaller, so of a very long list the end is enough.
bool RuleLists::hidden(Id list, const AclRule& rule) const {
  for (unsigned looked = 0; list != empty && looked < most_looks; list = nodes_[list].before, ++looked) {
    if (contains_rest(rules_[nodes_[list].rule], rule)) {
      return true;
    }
  }
  return false;
}

RuleLists::Id RuleLists::append(Id list, RuleIndex rule) {
  if (nodes_[list].complete) {
    return list;
  }
  if (nodes_[list].appended != rule) {
    nodes_[list].appended = rule;
    nodes_[list].answer = list;
    if (!hidden(list, rules_[rule])) {
      nodes_[list].answer = static_cast<Id>(nodes_.size());
      nodes_.push_back({list, rule, nodes_[list].length + 1, contains_rest(rules_[rule], AclRule()), no_match, empty});
    }
  }
  return nodes_[list].answer;
}

std::vector<RuleIndex> RuleLists::rules(Id list) const {
  std::vector<RuleIndex> out;
  for (; list != empty; list = nodes_[list].before) {
    out.push_back(nodes_[list].rule);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace sluice::lookup::acl
