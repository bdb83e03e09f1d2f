// A family's rules in four groups, by how wide their prefixes are, and for each group the cross-product of its address
// classes. Steps in building tables (tables.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lookup/acl/acl_rule.h"
#include "lookup/acl/partition.h"
#include "lookup/acl/rule_lists.h"
#include "lookup/acl/tables_view.h"

namespace sluice::lookup::acl {

struct RuleGroup {
  std::vector<RuleIndex> rules;
  std::vector<Interval> source_intervals, destination_intervals;  // by rule
  std::optional<Partition> source, destination;
  // The cell of a source and a destination class is in page pages[source * pages_of_row() + destination / page_cells].
  // Page 0 is that of all which no rule matches.
  std::vector<std::uint32_t> pages;
  std::vector<RuleLists::Id> cells;

  std::size_t cell_count() const { return rules.empty() ? 0 : std::size_t{source->classes} * destination->classes; }
  std::size_t pages_of_row() const { return (destination->classes + page_cells - 1) / page_cells; }
  std::size_t page_slots() const { return rules.empty() ? 0 : source->classes * pages_of_row(); }
  RuleLists::Id at(std::size_t source_class, std::size_t destination_class) const {
    const std::size_t page = pages[source_class * pages_of_row() + destination_class / page_cells];
    return cells[page * page_cells + destination_class % page_cells];
  }
};

struct RuleGroups {
  RuleGroups(std::span<const AclRule> rules, int family, unsigned wide_bits);

  // What a bound of wide and narrow costs, known before cells are filled: the words that cells take at least, when
  // groups of more than `most_flat` have pages, and the steps to fill them.
  std::size_t least_words(std::size_t most_flat) const;
  std::size_t steps() const;
  // False when the pages would have more than `most_cells`.
  bool fill(RuleLists& lists, std::size_t most_cells);

  unsigned wide_bits;
  RuleGroup group[group_count];
};

}  // namespace sluice::lookup::acl
