// What an Inspection says of frames: what becomes of each (Judgement), and to whom it reports the rules that hold and
// what is dropped (AlertSink).
#pragma once

#include <cstdint>
#include <string_view>

#include "flow/flow.h"
#include "flow/tcp_stream.h"
#include "function/inspect/tunnel_ends.h"
#include "match/confirm/packet_facts.h"

namespace sluice::flow::http {
struct Transaction;
}

namespace sluice::function {

class InspectionRules;

// Views and pointers hold during the call; who keeps an alert takes rules->shared_from_this().
struct Alert {
  const InspectionRules* rules;
  std::uint32_t rule;          // of rules->detector().rules().rules
  std::uint64_t microseconds;  // since the epoch: when the frame came
  std::string_view frame;  // from its Ethernet header on, or its datagram; empty: none of this flow, which has ended
  const match::PacketFacts* packet;
  flow::Direction direction;  // of the packet in its flow; to_server where there is none
  const flow::Flow* flow;     // null: none
  std::string_view payload;   // what was inspected: of the packet, the stream's new piece, or empty
  bool blocked;               // the frame is dropped
  bool stream;                // found in a TCP stream or an HTTP message, not in a packet by itself
  const flow::http::Transaction* transaction = nullptr;  // it was found in, or in the stream's bytes of; null: none
  const TunnelEnds* tunnel = nullptr;                    // that the packet was in; null: none
};

// Why a frame is dropped, as an EVE `drop` event says it: "rules", "flow drop", "inspection budget", "stream conflict",
// "stream memcap", "defrag error", "stream error", "stream midstream", "applayer error".
enum class DropReason : std::uint8_t {
  rules,
  flow_drop,
  budget,
  conflict,
  no_capacity,
  fragment,
  outside,
  silent,
  http_limit
};

// Views and pointers hold during the call.
struct DroppedFrame {
  std::uint64_t microseconds;  // since the epoch
  std::string_view frame;
  const match::PacketFacts* packet;
  flow::Direction direction;
  const flow::Flow* flow;  // null: none
  DropReason reason;
  const InspectionRules* rules = nullptr;  // DropReason::rules: of which this one drops, the first in their order
  std::uint32_t rule = 0;
  const TunnelEnds* tunnel = nullptr;  // that the packet was in; null: none
};

class AlertSink {
 public:
  virtual void alert(const Alert& alert) = 0;
  // Once for each frame that is dropped, behind its alerts, of which there may be none. Under an attack these are most
  // of the frames.
  virtual void dropped(const DroppedFrame& /*frame*/) {}
  // Once for each frame that goes on though it was not looked at to the end (Judgement::overload), behind its alerts.
  virtual void unseen() {}

 protected:
  ~AlertSink() = default;
};

struct Judgement {
  bool drop = false;
  bool reject = false;                    // one of the rules that hold is of reject
  bool overload = false;                  // the budget left prefilter matches
  bool undecided = false;                 // some that could have decided what becomes of it (match/detect/detector.h)
  flow::Taken stream = flow::Taken::all;  // but for all and part: its stream refuses it
  bool fragment = false;                  // fragments cannot be put together
  bool http_limit = false;                // HTTP goes beyond a limit, and is inspected no further
  bool by_rule = false;                   // a rule of drop or reject holds
  DropReason why = DropReason::rules;     // of `drop`: a rule before all else
  // With `reject`: whom these rules want to be notified, of the packet's ends.
  bool notify_source = false, notify_destination = false;
};

}  // namespace sluice::function
