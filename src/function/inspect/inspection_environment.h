// What the inspectors of a lane share: the rules in force and what is searched with them, the policy, the batch's
// limits, conversations, counters, and to whom alerts are reported. What they inspect is not here, but in a
// PacketContext.
//
// Lifetime: made before the conversations that it names, which report to its inspectors at their end; so these go
// first. Thread-safety: none, of one lane.
#pragma once

#include <cstdint>
#include <memory>

#include "flow/conversations.h"
#include "function/inspect/alert_reporter.h"
#include "function/inspect/inspection_rules.h"
#include "function/inspect/inspection_settings.h"
#include "function/inspect/packet_context.h"

namespace sluice::function {

struct InspectionEnvironment {
  InspectionEnvironment(std::shared_ptr<InspectionSearch> of_rules, const InspectionSettings& of_settings,
                        AlertSink& sink, flow::Conversations& of_conversations)
      : search(std::move(of_rules)), settings(of_settings), conversations(of_conversations), reporter(sink) {
    set_policy();
  }

  const InspectionRules& rules() const { return *search->rules; }
  const match::Detector& detector() const { return rules().detector(); }
  // Not within a frame.
  std::shared_ptr<InspectionSearch> exchange(std::shared_ptr<InspectionSearch> next) {
    std::swap(search, next);
    set_policy();
    return next;
  }

  bool is_late() { return limits.lateness.is_late(counters.frames, limits.spent()); }
  // Something of it was not inspected. What is left and not known counts as decisive.
  void overload(PacketContext& context, bool decisive = true) const {
    Judgement& judgement = context.verdict.judgement;
    judgement.overload = true;
    judgement.undecided |= decisive;
    judgement.drop |= decisive && drops_left;
  }
  // Likewise, of prefilter matches or a search.
  void leave(PacketContext& context) {
    ++counters.left;
    overload(context);
  }
  // A stream has taken the bytes of a frame that is dropped because they were not inspected whole: sent again they
  // would be old ones, and pass.
  void keep_dropping(flow::Flow& flow, const PacketContext& context) const {
    if (context.verdict.judgement.undecided && drops_left) flow.user |= FlowMark::dropped;
  }

  std::shared_ptr<InspectionSearch> search;
  const InspectionSettings settings;
  bool drops_left = false;     // drop_on_overload, where a rule drops at all
  bool drops_limited = false;  // drop_on_http_limit, likewise
  flow::Conversations& conversations;
  BatchLimits limits;
  InspectionCounters counters;
  AlertReporter reporter;
  std::uint64_t now = 0;  // microseconds

 private:
  void set_policy() {
    const bool blocks = detector().blocks();
    drops_left = settings.drop_on_overload && blocks;
    drops_limited = settings.drop_on_http_limit && blocks;
  }
};

}  // namespace sluice::function
