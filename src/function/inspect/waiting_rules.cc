#include "function/inspect/waiting_rules.h"

namespace sluice::function {

void WaitingRules::note(flow::Flow& flow, flow::Direction direction, const flow::http::Transaction& transaction) {
  const auto rules = env_.search->detector.waiting();
  if (rules.empty()) return;
  const bool is_same = flow_ == &flow && direction_ == direction && transaction_ == transaction.number;
  if (!is_same) settle();
  flow_ = &flow;
  direction_ = direction;
  transaction_ = transaction.number;
  rules_.insert(rules_.end(), rules.begin(), rules.end());
}

void WaitingRules::settle_all(const flow::http::Transaction* transaction) {
  flow::Flow& flow = *flow_;
  FlowContext context(contexts_, flow, direction_);
  flow::Extra* const extra = env_.conversations.extra_if_any(flow);
  if (extra != nullptr && (flow.user & FlowMark::dropped) == 0 && !context->is_passed(flow)) {
    if (transaction == nullptr && extra->http != nullptr) {
      const auto* const current = extra->http->sides[static_cast<unsigned>(direction_)].current;
      if (current != nullptr && current->number == transaction_) transaction = current;
    }
    RuleSubject subject;
    subject.facts = stream_facts_of(flow, direction_, context->packet());
    subject.flow = &flow;
    subject.extra = extra;
    subject.transaction = transaction;
    if (transaction != nullptr) {
      std::erase_if(rules_, [&](std::uint32_t rule) { return confirmation_.has_held(*context, rule, subject); });
    }
    std::vector<std::uint32_t>& matched = env_.search->matched;
    matched.clear();
    env_.detector().settle(rules_, &env_.conversations.bits_of(*extra), env_.search->detector, matched);
    confirmation_.act(*context, subject);
  }
  rules_.clear();
}

}  // namespace sluice::function
