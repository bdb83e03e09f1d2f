#include "function/inspect/flow_context.h"

namespace sluice::function {
namespace {

match::PacketEnd end_of(const flow::Flow& flow, flow::Direction direction) {
  const bool client = direction == flow::Direction::to_server;
  return {client ? flow.client.data() : flow.server.data(), client ? flow.client_port : flow.server_port};
}

}  // namespace

void FlowContext::make(EventContexts& contexts, flow::Flow& flow, flow::Direction direction) {
  InspectionEnvironment& env = contexts.env_;
  env.reporter.report_held();
  const match::PacketFacts end =
      match::packet_of(flow.family, flow.protocol, end_of(flow, direction), end_of(flow, opposite(direction)));
  PacketContext* const frame = contexts.frame();
  other_ = frame == nullptr || frame->flow != &flow;
  if (other_) {
    made_.emplace(std::string_view(), env.now, end, flow, direction, nullptr, contexts.budget_of(flow));
  } else {
    made_.emplace(frame->frame, frame->microseconds, end, flow, direction, &frame->verdict, frame->budget);
    made_->context.is_datagram = frame->is_datagram;
    made_->context.tunnel = frame->tunnel;
  }
  context_ = &made_->context;
}

}  // namespace sluice::function
