#include "function/acl/rule_set.h"

#include <rte_cycles.h>

#include <utility>

namespace sluice::function {

using lookup::acl::AclRule;
using lookup::acl::ActionKind;

std::vector<AclRule> RuleSet::without_egress(std::span<const AclRule> rules, const lookup::acl::TagPlan& plan) {
  std::vector<AclRule> all(rules.begin(), rules.end());
  const auto rest = static_cast<std::uint16_t>(~plan.egress_mask());
  for (AclRule& rule : all) {
    if ((rule.tags.mask & plan.egress_mask()) == 0) continue;
    rule.tags.value &= rest;
    rule.tags.mask &= rest;
    rule.action.kind = ActionKind::permit;
  }
  return all;
}

Expected<std::unique_ptr<RuleSet>> RuleSet::create(std::span<const AclRule> rules, bool deny_others,
                                                   std::uint64_t generation, std::shared_ptr<HitCounters> hits,
                                                   const lookup::acl::TagPlan& plan) {
  static_assert(static_cast<std::size_t>(Deed::special) == lookup::acl::action_kinds);
  auto set = std::make_unique<RuleSet>();
  const auto classifier_of = [](std::span<const AclRule> list) { return lookup::acl::Classifier::create({}, list); };
  auto classifier = plan.egress_mask() == 0 ? classifier_of(rules) : classifier_of(without_egress(rules, plan));
  if (!classifier) return tl::unexpected(classifier.error());
  set->generation = generation;
  set->classifier = std::move(*classifier);
  if (plan.egress_mask() != 0) {
    auto by_egress = classifier_of(rules);
    if (!by_egress) return tl::unexpected(by_egress.error());
    set->by_egress = std::move(*by_egress);
  }
  set->plan = plan;
  set->hits = std::move(hits);
  set->verdicts.reserve(rules.size());
  set->deeds.reserve(rules.size() + 1);
  const AclRule* before = nullptr;
  for (const AclRule& rule : rules) {
    Verdict& verdict = set->verdicts.emplace_back();
    verdict.kind = rule.action.kind;
    verdict.asks_egress = (rule.tags.mask & plan.egress_mask()) != 0;
    verdict.dscp = static_cast<std::uint8_t>(rule.action.mark);
    const bool is_special = verdict.asks_egress || rule.action.log;
    set->deeds.push_back(is_special ? Deed::special : static_cast<Deed>(rule.action.kind));
    if (rule.action.kind == ActionKind::police) {
      // What is written as one rule has one bucket.
      const bool is_same = before != nullptr && rule.text != AclRule::no_text && rule.text == before->text;
      if (!is_same) {
        set->policers.push_back(
            std::make_unique<Policer>(rule.action.rate_bits, rule.action.burst_bytes, rte_get_tsc_hz()));
      }
      verdict.policer = set->policers.back().get();
    }
    before = &rule;
  }
  set->deeds.push_back(deny_others ? Deed::deny : Deed::permit);
  return set;
}

}  // namespace sluice::function
