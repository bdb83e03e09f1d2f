// Inspects TCP streams: each new piece with what went before it (the window), and what earlier pieces have left open
// (flow/carried.h).
//
// Rules of the stream may ask for a flowbit that HTTP in the same piece sets. They are tried once more at the end of
// the frame (retry_unset()).
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "function/inspect/flow_context.h"
#include "function/inspect/payload_search.h"
#include "function/inspect/rule_confirmation.h"

namespace sluice::function {

class StreamInspector {
 public:
  StreamInspector(InspectionEnvironment& env, PayloadSearch& search, RuleConfirmation& confirmation)
      : env_(env), search_(search), confirmation_(confirmation) {}

  // A new piece, from flow::ConversationSink::stream_data().
  void inspect(FlowContext& context, flow::Flow& flow, flow::Extra& extra, const flow::StreamData& data);
  // The packet has bytes that its stream does not get.
  void inspect_not_taken(PacketContext& context, flow::Flow& flow, flow::Extra& extra);
  // The packet has bytes that will wait. What is found in them is in the mark that comes back with them.
  std::uint8_t mark_waiting(PacketContext& context, const flow::Flow& flow);
  // At the end of a frame.
  void retry_unset(PacketContext& frame) {
    if (!unset_.rules.empty()) [[unlikely]]
      try_unset(frame);
  }
  void flow_ended(const flow::Flow& flow) {
    if (unset_.flow == &flow) unset_.rules.clear();
  }

 private:
  void inspect_piece(FlowContext& context, flow::Flow& flow, flow::Extra& extra, const flow::StreamData& data);
  PatternsFound find_in(PacketContext& context, const flow::StreamData& data, flow::Carried& carried);
  bool collect(PacketContext& context, flow::Carried& carried, const PatternsFound& found, const flow::StreamData& data,
               bool& all);
  void hold_matched(flow::Carried& carried);
  void try_unset(PacketContext& frame);

  InspectionEnvironment& env_;
  PayloadSearch& search_;
  RuleConfirmation& confirmation_;
  // Of the last piece of the frame's stream, so many bytes: rules that ask for a flowbit that its HTTP may set.
  struct Unset {
    flow::Flow* flow = nullptr;
    std::size_t piece = 0;
    std::vector<std::uint32_t> rules;
  };
  Unset unset_;
};

}  // namespace sluice::function
