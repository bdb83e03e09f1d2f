#include "function/inspect/rule_confirmation.h"

#include <algorithm>

#include "match/rules/rule_scope.h"

namespace sluice::function {
namespace {

using flow::Direction;

void reject(Judgement& judgement, match::Notified notified) {
  judgement.reject = true;
  judgement.notify_source |= notified != match::Notified::destination;
  judgement.notify_destination |= notified != match::Notified::source;
}

// The one that is inspected. A piece of the stream, which the parser does not have yet, is of the one that it goes on
// with: the request that is not whole, or the only one that has no whole answer.
const flow::http::Transaction* transaction_of(const RuleSubject& subject, Direction direction) {
  if (subject.transaction != nullptr || subject.extra == nullptr || subject.extra->http == nullptr) {
    return subject.transaction;
  }
  const flow::http::Connection& connection = *subject.extra->http;
  if (direction == Direction::to_server) return connection.sides[0].current;
  return connection.waiting == 1 ? connection.first : nullptr;
}

}  // namespace

bool RuleConfirmation::confirm(PacketContext& context, const RuleSubject& subject, const match::Buffers& buffers) {
  InspectionSearch& search = *env_.search;
  PacketBudget& budget = context.budget;
  search.matched.clear();
  // A flow without a record has no bits. It gets a record when a rule sets some.
  match::FlowBits new_bits{};
  match::FlowBits* const bits = subject.extra != nullptr  ? &env_.conversations.bits_of(*subject.extra)
                                : subject.flow != nullptr ? &new_bits
                                                          : nullptr;
  const std::uint32_t most = budget.time.allows(search.detector.prefilter_matches()) ? budget.prefilter_matches : 0;
  const auto outcome = env_.detector().confirm(context.packet(), subject.facts, bits, buffers,
                                               {most, budget.time.left()}, search.detector, search.matched);
  RuleSubject acted_on = subject;
  if (!search.matched.empty() && bits == &new_bits && new_bits != match::FlowBits{}) {
    acted_on.extra = env_.conversations.extra_of(*subject.flow);
    if (acted_on.extra != nullptr) acted_on.extra->bits = new_bits;
  }
  budget.prefilter_matches -= std::min(budget.prefilter_matches, outcome.confirmed);
  budget.time.spend(outcome.ticks);
  env_.counters.confirmed += outcome.confirmed;
  if (outcome.left != 0) {
    env_.counters.left += outcome.left;
    env_.counters.given_up += outcome.given_up;
    env_.overload(context, outcome.decisive);
  }
  act(context, acted_on);
  return outcome.left == 0;
}

void RuleConfirmation::act(PacketContext& context, const RuleSubject& subject) {
  InspectionSearch& search = *env_.search;
  const bool of_stream = subject.facts.reassembled;
  for (const std::uint32_t r : search.matched) {
    const match::Rule& rule = env_.detector().rules().rules[r];
    if (subject.transaction != nullptr && held_before(context, r, subject)) continue;
    const std::uint64_t flow_number = number_of(subject.flow);
    const match::RateVerdict rate = search.rates.judge(r, context.packet(), flow_number, context.microseconds);
    if (rate == match::RateVerdict::nothing) continue;
    const bool whole_flow = subject.flow != nullptr && match::acts_on_flow(rule, of_stream) &&
                            !(context.packet().fragment() && match::names_ports(rule));
    if (match::blocks(rule.action)) {
      block(context, r, rule);
      if (whole_flow) subject.flow->user |= FlowMark::dropped;
    }
    if (rule.action == match::Action::pass) {
      if (whole_flow) subject.flow->user |= FlowMark::passed;
      context.verdict.passed = true;
      break;
    }
    if (rule.noalert || rate == match::RateVerdict::action_only) continue;
    if (!search.alerts.reports(r, context.packet(), flow_number, context.microseconds)) continue;
    ++env_.counters.alerts;
    env_.reporter.report({&env_.rules(), r, context.microseconds, context.frame, &context.packet(), context.direction,
                          subject.flow, subject.payload, context.verdict.judgement.drop, of_stream,
                          of_stream ? transaction_of(subject, context.direction) : nullptr, context.tunnel},
                         subject.holds_alerts);
  }
}

void RuleConfirmation::block(PacketContext& context, std::uint32_t r, const match::Rule& rule) {
  Verdict& verdict = context.verdict;
  if (!verdict.judgement.by_rule) verdict.blocking_rule = r;
  verdict.judgement.drop = verdict.judgement.by_rule = true;
  if (rule.action == match::Action::reject) reject(verdict.judgement, rule.notified);
}

RuleConfirmation::Held RuleConfirmation::held_of(const PacketContext& context, std::uint32_t rule,
                                                 const RuleSubject& subject) const {
  return {env_.conversations.table().index_of(*subject.flow), rule,
          2 * subject.transaction->number + (context.direction == Direction::to_client ? 2 : 1)};
}

bool RuleConfirmation::has_held(const PacketContext& context, std::uint32_t rule, const RuleSubject& subject) const {
  return std::find(held_.begin(), held_.end(), held_of(context, rule, subject)) != held_.end();
}

bool RuleConfirmation::held_before(const PacketContext& context, std::uint32_t rule, const RuleSubject& subject) {
  if (has_held(context, rule, subject)) return true;
  held_[next_held_++ % held_.size()] = held_of(context, rule, subject);
  return false;
}

void RuleConfirmation::flow_ended(const flow::Flow& flow) {
  const std::uint32_t index = env_.conversations.table().index_of(flow);
  for (Held& held : held_) {
    if (held.flow == index) held = {};
  }
}

// As counts of rates know it; 0: none.
std::uint64_t RuleConfirmation::number_of(const flow::Flow* flow) const {
  if (flow == nullptr) return 0;
  return std::uint64_t{flow->began} << 32 | (env_.conversations.table().index_of(*flow) + 1);
}

}  // namespace sluice::function
