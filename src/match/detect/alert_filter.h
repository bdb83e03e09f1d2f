// Which alerts the lines of suppress and event_filter (rules/alert_lines.h) keep back. They are about alerts alone:
// what a rule does besides, it does, with its flowbits.
//
//     AlertFilter filter(rule_set, settings);                        // a lane's
//     if (filter.reports(rule, packet, flow, microseconds)) ...        // for each alert, once
//
// A suppression that is about the packet's addresses keeps it back first, and is not counted. Of event_filters one
// counts for a rule: the one that names it, before one for its gid, before one for all; of equal ones the last. What
// it counts are alerts: matches of which the rule's own `threshold` or `detection_filter` makes some. It counts as
// rate_filter.h says, and what that calls "all" is reported.
//
// Memory: as RateFilter, if there is any event_filter; some bytes a rule, if there is any suppression. Thread-safety:
// none, one lane; `rules` outlives it. Cost: nothing without such lines.
#pragma once

#include <cstdint>
#include <vector>

#include "match/detect/rate_filter.h"

namespace sluice::match {

class AlertFilter {
 public:
  AlertFilter(const RuleSet& rules, const RateSettings& settings);

  // As RateFilter.
  void take_over(AlertFilter& before);
  bool reports(std::uint32_t rule, const PacketFacts& packet, std::uint64_t flow, std::uint64_t microseconds) {
    if (!is_suppressed(rule, packet) && rates_.judge(rule, packet, flow, microseconds) == RateVerdict::all) return true;
    ++kept_back_;
    return false;
  }
  std::uint64_t kept_back() const { return kept_back_; }
  const RateCounters& rates() const { return rates_.counters(); }
  std::uint64_t memory_bytes() const { return rates_.memory_bytes(); }

 private:
  bool is_suppressed(std::uint32_t rule, const PacketFacts& packet) const {
    return rule < suppressions_of_.size() && !suppressions_of_[rule].empty() && suppresses(rule, packet);
  }
  bool suppresses(std::uint32_t rule, const PacketFacts& packet) const;

  const RuleSet& rules_;
  std::vector<std::vector<std::uint32_t>> suppressions_of_;  // by rule, if there are any
  RateFilter rates_;
  std::uint64_t kept_back_ = 0;
};

}  // namespace sluice::match
