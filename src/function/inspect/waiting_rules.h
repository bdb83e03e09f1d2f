// Rules of one HTTP message that hold but for their flowbits: other parts of the message set or clear these
// (match/detect/detector.h, settle()). They wait until the frame, or the message, has reported all.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/http/message.h"
#include "function/inspect/flow_context.h"
#include "function/inspect/rule_confirmation.h"

namespace sluice::function {

class WaitingRules {
 public:
  WaitingRules(InspectionEnvironment& env, EventContexts& contexts, RuleConfirmation& confirmation)
      : env_(env), contexts_(contexts), confirmation_(confirmation) {}

  // After a confirmation, those of Detector::Scratch::waiting(). Those of another message are settled first.
  void note(flow::Flow& flow, flow::Direction direction, const flow::http::Transaction& transaction);
  // `transaction`: theirs; null: it is the one that its side is parsing, or not there any more.
  void settle(const flow::http::Transaction* transaction = nullptr) {
    if (!rules_.empty()) [[unlikely]]
      settle_all(transaction);
  }
  // What it has not settled by now it settles as it is.
  void flow_ended(const flow::Flow& flow) {
    if (flow_ == &flow) settle();
  }

 private:
  void settle_all(const flow::http::Transaction* transaction);

  InspectionEnvironment& env_;
  EventContexts& contexts_;
  RuleConfirmation& confirmation_;
  flow::Flow* flow_ = nullptr;
  flow::Direction direction_ = flow::Direction::to_server;
  std::uint64_t transaction_ = 0;
  std::vector<std::uint32_t> rules_;
};

}  // namespace sluice::function
