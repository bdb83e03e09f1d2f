#include "function/inspect/conversation_inspector.h"

#include "flow/http/looks.h"

namespace sluice::function {
namespace {

using flow::Direction;

// A SYN where a conversation was dropped that has been silent for its timeout. If the server answers it, the server has
// forgotten that conversation, and another begins.
bool asks_anew(const flow::Flow& flow, const flow::Packet& packet) {
  return flow.state == flow::FlowState::silent && packet.payload.empty() &&
         (packet.tcp_flags & (flow::tcp_syn | flow::tcp_ack)) == flow::tcp_syn;
}

}  // namespace

// The table has refused its flow, or nothing of that is looked at any more.
void ConversationInspector::inspect_not_followed(PacketContext& context, const flow::Packet& packet) {
  if (context.flow == nullptr) {
    ++env_.counters.no_flow;
    inspect_refused(context);
  } else if (asks_anew(*context.flow, packet)) {
    inspect_alone(context);
  } else {
    drop_by_flow(context);
  }
}

void ConversationInspector::inspect_refused(PacketContext& context) {
  if (context.rules == PacketRules::none) return;
  if (context.rules == PacketRules::as_flow_says && !packets_.may_hold(context, nullptr, false)) return;
  inspect_alone(context);
}

// Nothing of the flow is looked at any more: what it holds, others may need. Alerts that are held are of its HTTP.
void ConversationInspector::drop_by_flow(PacketContext& context) {
  Verdict& verdict = context.verdict;
  env_.reporter.report_held();
  env_.conversations.give_back(*context.flow);
  verdict.by_flow = !verdict.judgement.drop;
  verdict.judgement.drop = true;
}

bool ConversationInspector::tracked(flow::Flow& flow, Direction direction, bool streamed) {
  PacketContext& context = *contexts_.frame();
  context.direction = direction;
  context.flow = &flow;
  if ((flow.user & (FlowMark::dropped | FlowMark::passed)) != 0) return (flow.user & FlowMark::dropped) == 0;
  if (context.rules == PacketRules::none && !streamed) return true;
  return inspect_tracked(context, streamed);
}

bool ConversationInspector::inspect_tracked(PacketContext& context, bool streamed) {
  if (env_.drops_left && streamed && http_.drops_unseen(context, *context.flow)) [[unlikely]]
    return false;
  flow::Flow& flow = *context.flow;
  const bool inspects = context.rules == PacketRules::all ||
                        (context.rules == PacketRules::as_flow_says && packets_.may_hold(context, &flow, streamed));
  if (streamed) {
    const match::PacketFacts& packet = context.packet();
    const std::uint32_t begin = packet.tcp_sequence + ((packet.tcp_flags & flow::tcp_syn) != 0 ? 1 : 0);
    const bool is_first = begin == flow.initial[static_cast<unsigned>(context.direction)] + 1;
    if (is_first && flow::http::looks_like_http(packet.payload)) flow.user |= FlowMark::http;
  }
  if (inspects) packets_.inspect(context, &flow, streamed);
  return !context.verdict.judgement.drop;
}

void ConversationInspector::stream_data(flow::Flow& flow, flow::Extra& extra, Direction direction,
                                        const flow::StreamData& data) {
  if ((flow.user & FlowMark::http) == 0 && data.offset == 0 && flow::http::looks_like_http(data.fresh)) {
    flow.user |= FlowMark::http;
  }
  FlowContext context(contexts_, flow, direction);
  streams_.inspect(context, flow, extra, data);
}

bool ConversationInspector::takes_waiting(flow::Flow& flow, Direction direction, std::size_t bytes) {
  if (!env_.limits.time.limited()) return true;
  FlowContext context(contexts_, flow, direction);
  return releases_.takes_waiting(context, flow, bytes);
}

void ConversationInspector::refused(flow::Flow& flow, Direction, flow::Taken why) {
  PacketContext& context = *contexts_.frame();
  if (context.is_passed(flow)) return;
  context.verdict.judgement.drop = true;
  context.verdict.judgement.stream = why;
}

// Its place in the table is the next one's.
void ConversationInspector::flow_ended(flow::Flow& flow, flow::Extra*, flow::FlowEndReason) {
  http_.flow_ended(flow);
  streams_.flow_ended(flow);
  env_.reporter.report_held();
  contexts_.flow_ended();
  if ((flow.user & FlowMark::http) != 0) confirmation_.flow_ended(flow);
}

}  // namespace sluice::function
