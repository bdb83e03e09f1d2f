// Which prefilter matches hold, and what they do: the second half of detection (match/detect/detector.h), with the
// flow's bits and the packet's budget. Rules that hold drop, reject or pass the packet or its flow, and are reported.
//
//   if (!confirmation.collect(context, scope, found, payload.size())) return;
//   const bool all = confirmation.confirm(context, subject, buffers);
//   ...                                    // the rules that hold are in InspectionSearch::matched
//
// Thread-safety: none, of one lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "function/inspect/inspection_environment.h"
#include "function/inspect/payload_search.h"

namespace sluice::function {

// What prefilter matches are confirmed for.
struct RuleSubject {
  match::FlowFacts facts;
  flow::Flow* flow = nullptr;                            // null: none
  flow::Extra* extra = nullptr;                          // of the flow; null: it has none
  std::string_view payload;                              // for alerts
  const flow::http::Transaction* transaction = nullptr;  // that is inspected; null: none
  bool holds_alerts = false;                             // AlertReporter
};

class RuleConfirmation {
 public:
  explicit RuleConfirmation(InspectionEnvironment& env) : env_(env) {}

  // Of Point::packet. `inspected`: bytes of Buffer::payload. False: no rule is left to be confirmed.
  bool collect(PacketContext& context, match::Detector::Scope scope, const PatternsFound& found, std::size_t inspected,
               bool are_addresses_tried = false) {
    match::Detector::Found what({env_.search->found.data(), found.count}, found.by_keys, inspected, scope);
    what.addresses_tried = are_addresses_tried;
    return env_.detector().collect(match::Point::packet, context.packet(), what, env_.search->detector);
  }
  // What was collected. False: prefilter matches are left.
  bool confirm(PacketContext& context, const RuleSubject& subject, const match::Buffers& buffers);
  // What of InspectionSearch::matched the packet and its flow meet with, and alerts.
  void act(PacketContext& context, const RuleSubject& subject);

  // The rule has held for the message of the transaction in the context's direction. Of the last 64.
  bool has_held(const PacketContext& context, std::uint32_t rule, const RuleSubject& subject) const;
  // Its place in the table, and the numbers of its transactions, are the next one's.
  void flow_ended(const flow::Flow& flow);
  // Rules have other numbers now.
  void forget() { held_ = {}; }

 private:
  // A response may be whole a second time, with bytes that came behind its end.
  struct Held {
    std::uint32_t flow, rule;
    std::uint64_t message;
    bool operator==(const Held&) const = default;
  };
  Held held_of(const PacketContext& context, std::uint32_t rule, const RuleSubject& subject) const;
  bool held_before(const PacketContext& context, std::uint32_t rule, const RuleSubject& subject);
  std::uint64_t number_of(const flow::Flow* flow) const;
  static void block(PacketContext& context, std::uint32_t r, const match::Rule& rule);

  InspectionEnvironment& env_;
  std::array<Held, 64> held_{};
  std::size_t next_held_ = 0;
};

}  // namespace sluice::function
