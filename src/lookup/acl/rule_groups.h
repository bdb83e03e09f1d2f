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
  std::vector<RuleLists::Id> cells;  // source class * destination classes + destination class
  std::size_t cell_count() const { return rules.empty() ? 0 : std::size_t{source->classes} * destination->classes; }
};

struct RuleGroups {
  RuleGroups(std::span<const AclRule> rules, int family, unsigned wide_bits);

  // Cells and the steps to fill them, known before they are: what a bound of wide and narrow costs.
  std::size_t cells() const;
  std::size_t steps() const;
  void fill(RuleLists& lists);

  unsigned wide_bits;
  RuleGroup group[group_count];
};

}  // namespace sluice::lookup::acl
