#include "function/inspect/packet_inspector.h"

namespace sluice::function {

using match::Buffer;
using match::Buffers;
using Scope = match::Detector::Scope;

// Rules that need nothing found hold for a frame whose batch is late, too.
void PacketInspector::inspect(PacketContext& context, flow::Flow* flow, bool in_stream) {
  const match::PacketFacts& packet = context.packet();
  const match::Detector& detector = env_.detector();
  const std::uint64_t generation = env_.rules().generation();
  PatternsFound found;
  if (search_.leaves_matches(context)) {
    found.by_keys = context.matches.known();
  } else if (!in_stream || detector.searches_packets(detector.classes().class_of(packet))) {
    found = search_.in_packet(context);
  }
  // A fragment is of a flow without ports: what a rule says of one it does not say of the others.
  flow::Flow* const marked = packet.fragment() ? nullptr : flow;
  const Scope scope = in_stream ? Scope::packets : Scope::all;
  if (!confirmation_.collect(context, scope, found, packet.payload.size(),
                             are_addresses_tried(marked, context.direction, generation))) {  // as most packets
    if (marked != nullptr) mark_addresses_tried(*marked, context.direction, generation);
    return;
  }
  RuleSubject subject;
  if (flow != nullptr) subject.facts = facts_of(*flow, context.direction);
  subject.facts.in_stream = in_stream;
  subject.flow = flow;
  subject.extra = flow == nullptr ? nullptr : env_.conversations.extra_if_any(*flow);
  subject.payload = packet.payload;
  Buffers buffers;
  set_headers(buffers, packet);
  buffers.set(Buffer::payload, packet.payload);
  const bool all = confirmation_.confirm(context, subject, buffers);
  if (marked != nullptr && all && !context.verdict.passed) mark_addresses_tried(*marked, context.direction, generation);
}

bool PacketInspector::may_hold(const PacketContext& context, const flow::Flow* flow, bool in_stream) const {
  const match::Detector& detector = env_.detector();
  const match::PlainFacts packet = plain_facts_of(*context.plain);
  match::FlowFacts facts;
  if (flow != nullptr) facts = facts_of(*flow, context.direction);
  if (!context.matches.updates_flow_only() &&
      detector.may_hold_without_keys(packet, facts,
                                     are_addresses_tried(flow, context.direction, env_.rules().generation()))) {
    return true;
  }
  const unsigned klass =
      detector.classes().class_of(packet.protocol, packet.source_port, packet.destination_port, true);
  if (in_stream && !detector.searches_packets(klass)) return false;
  for (const std::uint32_t key : context.matches.keys()) {
    if (detector.may_hold(packet, facts, env_.rules().keys().patterns_of(key))) return true;
  }
  return false;
}

}  // namespace sluice::function
