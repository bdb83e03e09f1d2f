// Inspects HTTP messages: where a buffer is whole, and bodies as they grow (match/detect/detector.h, Point).
//
// HTTP that comes when its batch is late is not parsed. Where frames pass, that is a gap to the parser. Where they are
// dropped, the frame is dropped before its stream takes it (drops_unseen()), and inspected when it is sent again.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstdint>
#include <string>

#include "function/inspect/flow_context.h"
#include "function/inspect/http_search.h"
#include "function/inspect/payload_search.h"
#include "function/inspect/rule_confirmation.h"
#include "function/inspect/waiting_rules.h"

namespace sluice::function {

class HttpInspector {
 public:
  HttpInspector(InspectionEnvironment& env, EventContexts& contexts, PayloadSearch& search,
                RuleConfirmation& confirmation)
      : env_(env),
        contexts_(contexts),
        payload_search_(search),
        search_(env, search),
        confirmation_(confirmation),
        waiting_(env, contexts, confirmation) {}

  // As flow::ConversationSink::http(), decodes(), decoded() and http_limited().
  void inspect(flow::Flow& flow, flow::Extra& extra, flow::http::Event event, flow::http::Transaction& transaction);
  bool decodes(flow::Flow& flow, std::uint64_t bytes);
  void decoded(flow::Flow& flow, std::uint64_t bytes);
  void limited(flow::Flow& flow);
  // As http_goes_by(), for a batch that is late.
  bool goes_by(flow::Flow& flow, bool released);
  // Whether the packet of a stream is dropped before its stream takes it, for its batch is late.
  bool drops_unseen(PacketContext& context, const flow::Flow& flow);

  // At the end of a frame: what waits for the rest of a message is settled.
  void settle() { waiting_.settle(); }
  void flow_ended(const flow::Flow& flow) { waiting_.flow_ended(flow); }

 private:
  void inspect_event(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                     flow::http::Transaction& transaction);
  struct Place;
  void inspect_message(FlowContext& context, flow::Flow& flow, flow::Extra& extra, const Place& place,
                       flow::http::Transaction& transaction);

  InspectionEnvironment& env_;
  EventContexts& contexts_;
  PayloadSearch& payload_search_;
  HttpSearch search_;
  RuleConfirmation& confirmation_;
  WaitingRules waiting_;
  std::string text_;  // buffers that are put together
};

}  // namespace sluice::function
