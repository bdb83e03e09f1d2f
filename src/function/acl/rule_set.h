// A list of rules in force: what decides, and what is to be done. It never changes, but for the buckets of its policed
// rules and its counters; a reload makes another one.
//
// Rules that ask for the port that a frame leaves by are looked up in two steps, for that port is known only when the
// frame's route is. `classifier` (and the GPU's tables) take them as if they did not ask. Where such a rule is what it
// finds, `by_egress` says which rule decides; all others are found as if there were none.
//
// Keys have tags where rules ask for any: what `plan` and `sets` say. Sets change while the list is in force.
//
// Threads: create() and destruction on the control thread; all else on any thread. Memory: rte_acl's tables in DPDK's
// heap (lookup/acl/classifier.h), 16 bytes a rule, 64 a policed one, and its counters (rule_hits.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/prefetch.h"
#include "base/published.h"
#include "function/acl/acl_log.h"
#include "function/acl/rule_hits.h"
#include "function/policer.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/classifier.h"
#include "lookup/acl/set_tables.h"
#include "lookup/acl/tag_plan.h"

namespace sluice::function {

struct RuleSet {
  // What `mark` and `police` need.
  struct Verdict {
    std::uint8_t dscp = 0;
    lookup::acl::ActionKind kind{};
    bool asks_egress = false;
    std::uint32_t logged = 0;  // index of `logged_rules` + 1; 0: no line
    Policer* policer = nullptr;
  };
  // What happens to a frame: what the action says, or, of rules that log or ask for the egress, what takes longer.
  enum class Deed : std::uint8_t { permit, deny, mark, police, reject, special };

  // `rules` in match order. `generation`: 1 for the first list, one more for each that follows. `hits`: for these
  // rules.
  static Expected<std::unique_ptr<RuleSet>> create(std::span<const lookup::acl::AclRule> rules, bool deny_others,
                                                   std::uint64_t generation, std::shared_ptr<HitCounters> hits,
                                                   const lookup::acl::TagPlan& plan = {});
  // For GpuClassifier: the rules as `classifier` has them, and none denies that asks for the egress.
  static std::vector<lookup::acl::AclRule> without_egress(std::span<const lookup::acl::AclRule> rules,
                                                          const lookup::acl::TagPlan& plan);

  // Where the verdict and the counters of a rule, or of no_match, are.
  std::uint32_t place(lookup::acl::RuleIndex rule) const {
    return std::min(rule, static_cast<std::uint32_t>(deeds.size() - 1));
  }
  bool denies_others() const { return deeds.back() == Deed::deny; }
  // What a rule's frame needs, before it is judged.
  void prefetch(lookup::acl::RuleIndex rule, std::uint32_t writer) const {
    sluice::prefetch(&hits->at(writer, place(rule)));
  }

  std::uint64_t generation = 0;
  std::unique_ptr<lookup::acl::Classifier> classifier;
  std::unique_ptr<lookup::acl::Classifier> by_egress;  // null: no rule asks
  lookup::acl::TagPlan plan;
  // Readers as the element numbers them; nothing: no rule asks for a set.
  mutable std::optional<Published<const lookup::acl::SetTables>> sets;
  std::shared_ptr<AclLog> log;  // null: no rule logs
  std::vector<std::shared_ptr<LoggedRule>> logged_rules;
  // What happens to a frame: by rule, and behind them to those that no rule matches. Bytes, which stay in a core's
  // cache.
  std::vector<Deed> deeds;
  std::vector<Verdict> verdicts;  // by rule
  std::shared_ptr<HitCounters> hits;
  std::vector<std::unique_ptr<Policer>> policers;
};

}  // namespace sluice::function
