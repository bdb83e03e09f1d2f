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

std::size_t RuleGroups::least_words(std::size_t most_flat) const {
  std::size_t sum = 0;
  for (const RuleGroup& one : group) {
    sum += one.cell_count() <= most_flat ? one.cell_count() : one.page_slots();
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

bool RuleGroups::fill(RuleLists& lists, std::size_t most_cells) {
  for (RuleGroup& one : group) {
    one.pages.assign(one.page_slots(), 0);
    one.cells.assign(page_cells, RuleLists::empty);
    for (std::size_t i = 0; i < one.rules.size(); ++i) {
      for (const std::uint32_t source : one.source->covered(i)) {
        std::uint32_t* const row = one.pages.data() + source * one.pages_of_row();
        for (const std::uint32_t destination : one.destination->covered(i)) {
          std::uint32_t& page = row[destination / page_cells];
          if (page == 0) {
            page = static_cast<std::uint32_t>(one.cells.size() / page_cells);
            one.cells.resize(one.cells.size() + page_cells, RuleLists::empty);
          }
          RuleLists::Id& cell = one.cells[std::size_t{page} * page_cells + destination % page_cells];
          cell = lists.append(cell, one.rules[i]);
        }
      }
      if (one.cells.size() > most_cells) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace sluice::lookup::acl
