// What is inspected (PacketContext), and what becomes of it (Verdict). Inspectors hand a context on to each other, by
// reference; who inspects something else makes another one (flow_context.h).
//
//   Verdict verdict;
//   PacketBudget budget(limits.time, most_prefilter_matches);
//   PacketContext context(frame, microseconds, matches, verdict, budget);
//   ... inspect ...
//   if (verdict.judgement.drop) ... verdict.reason() ...
//
// Thread-safety: none, of one lane. Cost: making one some ns, reading its headers (packet()) some 8 ns, once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "flow/flow.h"
#include "flow/packet.h"
#include "function/inspect/flow_facts.h"
#include "function/inspect/judgement.h"
#include "function/inspect/packet_budget.h"
#include "function/inspect/prefilter_matches.h"
#include "match/confirm/packet_facts.h"

namespace sluice::function {

struct Verdict {
  Judgement judgement;
  bool passed = false;              // a rule of `pass` has held
  bool by_flow = false;             // dropped for nothing but that its flow is
  std::uint32_t blocking_rule = 0;  // where judgement.by_rule: the first in the rules' order

  // Why it drops.
  DropReason reason() const;
};

// Whether rules look at a packet by itself.
enum class PacketRules : std::uint8_t {
  all,           // full inspection
  as_flow_says,  // full inspection where its flow lets one of them hold, else as `none`
  none           // flow update only
};

class PacketContext {
 public:
  // Of a frame, from its Ethernet header on, or of a datagram.
  PacketContext(std::string_view of_frame, std::uint64_t when, PrefilterMatches found, Verdict& of_verdict,
                PacketBudget& of_budget, PacketRules which = PacketRules::all)
      : frame(of_frame), microseconds(when), rules(which), matches(found), verdict(of_verdict), budget(of_budget) {}
  // Of one of a flow's ends, without payload.
  PacketContext(std::string_view of_frame, std::uint64_t when, const match::PacketFacts& end, flow::Flow& of_flow,
                flow::Direction in_direction, Verdict& of_verdict, PacketBudget& of_budget)
      : frame(of_frame),
        microseconds(when),
        flow(&of_flow),
        direction(in_direction),
        verdict(of_verdict),
        budget(of_budget),
        packet_(end) {}
  PacketContext(const PacketContext&) = delete;
  PacketContext& operator=(const PacketContext&) = delete;

  // What its headers say: read when it is first asked for.
  const match::PacketFacts& packet() {
    if (!packet_) read_packet();
    return *packet_;
  }
  // Nothing of the flow is inspected any more.
  bool is_passed(const flow::Flow& of) const { return (of.user & FlowMark::passed) != 0 || verdict.passed; }

  const std::string_view frame;         // empty: of none
  const std::uint64_t microseconds;     // since the epoch
  flow::Flow* flow = nullptr;           // null: none, or it is not known yet
  const flow::Packet* plain = nullptr;  // with PacketRules::as_flow_says: what its headers say
  flow::Direction direction = flow::Direction::to_server;
  const PacketRules rules = PacketRules::all;
  bool is_datagram = false;            // put together from fragments
  const TunnelEnds* tunnel = nullptr;  // that it was in; null: none
  const PrefilterMatches matches{};
  Verdict& verdict;
  PacketBudget& budget;

 private:
  // In its place: a copy would wait for what was just written.
  void read_packet() { packet::read_headers(frame, packet_.emplace()); }

  std::optional<match::PacketFacts> packet_;
};

inline DropReason Verdict::reason() const {
  if (by_flow) return DropReason::flow_drop;
  if (judgement.by_rule) return DropReason::rules;
  switch (judgement.stream) {
    case flow::Taken::conflict:
      return DropReason::conflict;
    case flow::Taken::no_capacity:
      return DropReason::no_capacity;
    case flow::Taken::outside:
      return DropReason::outside;
    case flow::Taken::silent:
      return DropReason::silent;
    default:
      break;
  }
  if (judgement.overload) return DropReason::budget;
  if (judgement.http_limit) return DropReason::http_limit;
  return judgement.fragment ? DropReason::fragment : DropReason::rules;
}

}  // namespace sluice::function
