#include "match/detect/alert_filter.h"

#include <algorithm>
#include <utility>

namespace sluice::match {
namespace {

// How closely a line names a rule that it is about.
unsigned closeness(const AlertLine& line) {
  return (line.gid != 0 ? 1U : 0U) + (line.sid != 0 ? 1U : 0U);
}

std::vector<RuleThreshold> thresholds_of(const RuleSet& rules) {
  std::vector<RuleThreshold> all;
  for (std::uint32_t r = 0; r < rules.rules.size() && !rules.event_filters.empty(); ++r) {
    const EventFilter* best = nullptr;
    for (const EventFilter& one : rules.event_filters) {
      if (one.names(rules.rules[r]) && (best == nullptr || closeness(one) >= closeness(*best))) best = &one;
    }
    if (best != nullptr && best->threshold) all.push_back({r, *best->threshold});
  }
  return all;
}

bool is_about(const Suppression& one, const PacketFacts& packet) {
  const bool source = one.of == Suppression::Of::source || one.of == Suppression::Of::either;
  const bool destination = one.of == Suppression::Of::destination || one.of == Suppression::Of::either;
  return one.of == Suppression::Of::all || (source && one.addresses.contains(packet.source)) ||
         (destination && one.addresses.contains(packet.destination));
}

}  // namespace

AlertFilter::AlertFilter(const RuleSet& rules, const RateSettings& settings)
    : rules_(rules), rates_(rules, thresholds_of(rules), settings) {
  if (rules.suppressions.empty()) return;
  suppressions_of_.resize(rules.rules.size());
  for (std::uint32_t r = 0; r < rules.rules.size(); ++r) {
    for (std::uint32_t s = 0; s < rules.suppressions.size(); ++s) {
      if (rules.suppressions[s].names(rules.rules[r])) suppressions_of_[r].push_back(s);
    }
  }
}

void AlertFilter::take_over(AlertFilter& before) {
  rates_.take_over(before.rates_);
  kept_back_ = before.kept_back_;
}

bool AlertFilter::suppresses(std::uint32_t rule, const PacketFacts& packet) const {
  return std::ranges::any_of(suppressions_of_[rule],
                             [&](std::uint32_t s) { return is_about(rules_.suppressions[s], packet); });
}

}  // namespace sluice::match
