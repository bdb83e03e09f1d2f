#include "function/acl/rule_set.h"

#include <rte_cycles.h>

#include <utility>

namespace sluice::function {

using lookup::acl::ActionKind;

Expected<std::unique_ptr<RuleSet>> RuleSet::create(std::span<const lookup::acl::AclRule> rules, bool deny_others,
                                                   std::uint64_t generation, std::shared_ptr<HitCounters> hits) {
  auto set = std::make_unique<RuleSet>();
  auto classifier = lookup::acl::Classifier::create({}, rules);
  if (!classifier) return tl::unexpected(classifier.error());
  set->generation = generation;
  set->classifier = std::move(*classifier);
  set->hits = std::move(hits);
  set->verdicts.reserve(rules.size());
  set->kinds.reserve(rules.size() + 1);
  for (const lookup::acl::AclRule& rule : rules) {
    Verdict& verdict = set->verdicts.emplace_back();
    set->kinds.push_back(rule.action.kind);
    verdict.dscp = static_cast<std::uint8_t>(rule.action.mark);
    if (rule.action.kind == ActionKind::police) {
      set->policers.push_back(
          std::make_unique<Policer>(rule.action.rate_bits, rule.action.burst_bytes, rte_get_tsc_hz()));
      verdict.policer = set->policers.back().get();
    }
  }
  set->kinds.push_back(deny_others ? ActionKind::deny : ActionKind::permit);
  return set;
}

}  // namespace sluice::function
