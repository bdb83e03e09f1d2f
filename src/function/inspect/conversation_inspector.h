// Brings a packet's conversation up to date, and hands what the conversation says of it to the inspectors: the packet,
// then the pieces of the stream that it brings, then HTTP's messages in them. A packet comes before its stream: what
// passes or drops it does so first.
//
//   events.follow(context, packet, hash);   // alerts come to the sink from within
//   events.end(context);                    // of a frame
//
// Conversations also end between frames, as time goes by. What they report then is inspected, too.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flow/conversations.h"
#include "function/inspect/flow_context.h"
#include "function/inspect/http_inspector.h"
#include "function/inspect/packet_inspector.h"
#include "function/inspect/payload_search.h"
#include "function/inspect/rule_confirmation.h"
#include "function/inspect/stream_inspector.h"
#include "function/inspect/stream_release.h"

namespace sluice::function {

class ConversationInspector final : public flow::ConversationSink {
 public:
  explicit ConversationInspector(InspectionEnvironment& env)
      : env_(env),
        contexts_(env),
        search_(env),
        confirmation_(env),
        packets_(env, search_, confirmation_),
        streams_(env, search_, confirmation_),
        releases_(env),
        http_(env, contexts_, search_, confirmation_) {}

  // The context's packet, as `packet` has it; `hash`: of its flow. A packet that is refused by the flow table, or that
  // begins anew what was dropped, is inspected by itself.
  void follow(PacketContext& context, const flow::Packet& packet, std::uint32_t hash) {
    contexts_.begin(context);
    const flow::Flow* const flow = env_.conversations.packet(packet, hash, context.microseconds / 1000).flow;
    if (flow == nullptr || (flow->user & FlowMark::dropped) != 0) [[unlikely]]
      inspect_not_followed(context, packet);
  }
  // The context's packet belongs to no flow.
  void inspect_alone(PacketContext& context) { packets_.inspect(context, nullptr, false); }
  // Nothing comes of the context's packet any more: what waits for more of it is settled, and what is held is reported.
  void end(PacketContext& context) {
    http_.settle();
    streams_.retry_unset(context);
    env_.reporter.report_held();
    contexts_.end();
  }
  // The rules have changed.
  void forget_rules() { confirmation_.forget(); }

 private:
  bool wants_stream(const flow::Flow& flow) override { return (flow.user & FlowMark::dropped) == 0; }
  bool tracked(flow::Flow& flow, flow::Direction direction, bool streamed) override;
  void stream_data(flow::Flow& flow, flow::Extra& extra, flow::Direction direction,
                   const flow::StreamData& data) override;
  std::uint8_t waits(flow::Flow& flow, flow::Direction) override {
    return streams_.mark_waiting(*contexts_.frame(), flow);
  }
  bool may_release(flow::Flow& flow, flow::Direction, flow::Waiting waiting) override {
    return releases_.may_release(*contexts_.frame(), flow, waiting);
  }
  bool takes_waiting(flow::Flow& flow, flow::Direction direction, std::size_t bytes) override;
  void not_taken(flow::Flow& flow, flow::Extra& extra, flow::Direction) override {
    streams_.inspect_not_taken(*contexts_.frame(), flow, extra);
  }
  void refused(flow::Flow& flow, flow::Direction, flow::Taken why) override;
  void stream_gap(flow::Flow&, flow::Extra& extra, flow::Direction direction, std::uint64_t) override {
    extra.carried[static_cast<unsigned>(direction)] = {};  // the window begins anew
  }
  bool http_goes_by(flow::Flow& flow, bool released) override { return http_.goes_by(flow, released); }
  void http(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
            flow::http::Transaction& transaction) override {
    http_.inspect(flow, extra, event, transaction);
  }
  bool decodes(flow::Flow& flow, std::uint64_t bytes) override { return http_.decodes(flow, bytes); }
  void decoded(flow::Flow& flow, std::uint64_t bytes) override { http_.decoded(flow, bytes); }
  void http_limited(flow::Flow& flow, flow::http::Limit) override { http_.limited(flow); }
  void http_stopped(flow::Flow&, flow::Extra&, flow::http::StopReason) override { env_.reporter.report_held(); }
  void flow_ended(flow::Flow& flow, flow::Extra* extra, flow::FlowEndReason reason) override;

  bool inspect_tracked(PacketContext& context, bool streamed);
  void inspect_not_followed(PacketContext& context, const flow::Packet& packet);
  void inspect_refused(PacketContext& context);
  void drop_by_flow(PacketContext& context);

  InspectionEnvironment& env_;
  EventContexts contexts_;
  PayloadSearch search_;
  RuleConfirmation confirmation_;
  PacketInspector packets_;
  StreamInspector streams_;
  StreamRelease releases_;
  HttpInspector http_;
};

}  // namespace sluice::function
