// A list of rules in force: what decides, and what is to be done. It never changes, but for the buckets of its policed
// rules and its counters; a reload makes another one.
//
// Threads: create() and destruction on the control thread; all else on any thread. Memory: rte_acl's tables in DPDK's
// heap (lookup/acl/classifier.h), 16 bytes a rule, 64 a policed one, and its counters (rule_hits.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/prefetch.h"
#include "function/acl/rule_hits.h"
#include "function/policer.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/classifier.h"

namespace sluice::function {

struct RuleSet {
  // What `mark` and `police` need.
  struct Verdict {
    std::uint8_t dscp = 0;
    Policer* policer = nullptr;
  };

  // `rules` in match order. `generation`: 1 for the first list, one more for each that follows. `hits`: for these
  // rules.
  static Expected<std::unique_ptr<RuleSet>> create(std::span<const lookup::acl::AclRule> rules, bool deny_others,
                                                   std::uint64_t generation, std::shared_ptr<HitCounters> hits);

  // Where the verdict and the counters of a rule, or of no_match, are.
  std::uint32_t place(lookup::acl::RuleIndex rule) const {
    return std::min(rule, static_cast<std::uint32_t>(kinds.size() - 1));
  }
  lookup::acl::ActionKind others() const { return kinds.back(); }
  // What a rule's frame needs, before it is judged.
  void prefetch(lookup::acl::RuleIndex rule, std::uint32_t writer) const {
    sluice::prefetch(&hits->at(writer, place(rule)));
  }

  std::uint64_t generation = 0;
  std::unique_ptr<lookup::acl::Classifier> classifier;
  // What happens to a frame: by rule, and behind them to those that no rule matches. Bytes, which stay in a core's
  // cache.
  std::vector<lookup::acl::ActionKind> kinds;
  std::vector<Verdict> verdicts;  // by rule
  std::shared_ptr<HitCounters> hits;
  std::vector<std::unique_ptr<Policer>> policers;
  // The list that took the place of this one; for the device's thread, which follows later.
  mutable std::atomic<const RuleSet*> next{nullptr};
};

}  // namespace sluice::function
