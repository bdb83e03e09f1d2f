#include "lookup/acl/rule_groups.h"

namespace sluice::lookup::acl {

RuleGroups::RuleGroups(std::span<const AclRule> rules, int family, unsigned wide) : wide_bits(wide) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const AclRule& rule = rules[i];
    if (!rule.is_of(family)) {
      continue;
    }
    const unsigned at = (rule.source.length <= wide ? 1U : 0U) + (rule.destination.length <= wide ? 2U : 0U);
    group[at].rules.push_back(static_cast<RuleIndex>(i));
    group[at].source_intervals.push_back(interval_of(rule.source, family));
    group[at].destination_intervals.push_back(interval_of(rule.destination, family));
  }
  const Number last = interval_of(packet::IpPrefix(), family).last;
  for (RuleGroup& one : group) {
    one.source.emplace(one.source_intervals, last);
    one.destination.emplace(one.destination_intervals, last);
  }
}

std::size_t RuleGroups::cells() const {
  std::size_t sum = 0;
  for (const RuleGroup& one : group) {
    sum += one.cell_count();
  }
  return sum;
}

std::size_t RuleGroups::steps() const {
  std::size_t sum = 0;
  for (const RuleGroup& one : group) {
    for (std::size_t i = 0; i < one.rules.size(); ++i) {
      sum += one.source->covered(i).size() * one.destination->covered(i).size();
    }
  }
  return sum;
}

void RuleGroups::fill(RuleLists& lists) {
  for (RuleGroup& one : group) {
    one.cells.assign(one.cell_count(), RuleLists::empty);
    for (std::size_t i = 0; i < one.rules.size(); ++i) {
      for (const std::uint32_t source : one.source->covered(i)) {
        RuleLists::Id* const row = one.cells.data() + std::size_t{source} * one.destination->classes;
        for (const std::uint32_t destination : one.destination->covered(i)) {
          row[destination] = lists.append(row[destination], one.rules[i]);
        }
      }
    }
  }
}

}  // namespace sluice::lookup::acl
