// Inspects packets by themselves: their headers and, where it is no part of a stream, their payload.
//
// Thread-safety: none, of one lane.
#pragma once

#include "function/inspect/payload_search.h"
#include "function/inspect/rule_confirmation.h"

namespace sluice::function {

class PacketInspector {
 public:
  PacketInspector(InspectionEnvironment& env, PayloadSearch& search, RuleConfirmation& confirmation)
      : env_(env), search_(search), confirmation_(confirmation) {}

  // `flow`: null where the packet has none. `in_stream`: its payload is inspected as part of a stream, too.
  void inspect(PacketContext& context, flow::Flow* flow, bool in_stream);
  // Of PacketRules::as_flow_says: whether a rule may hold for the packet by itself, as its ports, sizes and flow say.
  bool may_hold(const PacketContext& context, const flow::Flow* flow, bool in_stream) const;

 private:
  InspectionEnvironment& env_;
  PayloadSearch& search_;
  RuleConfirmation& confirmation_;
};

}  // namespace sluice::function
