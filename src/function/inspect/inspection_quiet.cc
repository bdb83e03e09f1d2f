// Frames that no rule looks at, which are most: known before the device has found nothing in them, and only their flows
// are brought up to date.
#include "flow/plain_packet.h"
#include "function/inspect/inspection.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

match::PlainFacts plain_facts_of(const flow::Packet& packet) {
  match::PlainFacts facts;
  facts.protocol = packet.protocol;
  facts.tcp_flags = packet.tcp_flags;
  facts.family = packet.family;
  facts.source = packet.source.data();
  facts.destination = packet.destination.data();
  facts.source_port = packet.source_port;
  facts.destination_port = packet.destination_port;
  facts.payload = packet.payload.size();
  if (!packet.payload.empty()) facts.first_byte = static_cast<std::uint8_t>(packet.payload.front());
  return facts;
}

}  // namespace

FrameBrief Inspection::brief_of(std::string_view frame) const {
  const match::Detector& detector = rules().detector();
  const match::TrafficClasses& classes = detector.classes();
  flow::Packet packet;
  FrameBrief brief;
  if (flow::read_plain_packet(frame, packet)) [[likely]] {
    brief.hash = conversations_.table().hash(packet);
    brief.payload = packet.payload;
    brief.klass =
        static_cast<std::uint8_t>(classes.class_of(packet.protocol, packet.source_port, packet.destination_port, true));
    brief.quiet = !detector.has_candidates_without_keys(plain_facts_of(packet));
    return brief;
  }
  const match::PacketFacts facts = match::facts_of(frame);
  if (flow::read_packet(facts, packet)) brief.hash = conversations_.table().hash(packet);
  brief.payload = facts.payload;
  brief.klass = static_cast<std::uint8_t>(classes.class_of(facts));
  return brief;
}

const Judgement& Inspection::quiet_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits) {
  begin_frame(frame, hits);
  quiet_ = true;
  flow::Packet packet;
  flow::read_plain_packet(frame, packet);  // as brief_of() has: it is one
  flow::Flow* const flow = conversations_.packet(packet, hash, now_ / 1000).flow;
  bool by_flow = false;
  if (flow == nullptr) {
    ++counters_.no_flow;
  } else if ((flow->user & FlowMark::dropped) != 0) {
    by_flow = drop_by_flow(*flow);
  }
  if (subject_.judgement.drop && quiet_) read_facts();
  quiet_ = false;
  return end_frame(flow, by_flow);
}

// Keys are in the payload, or rules look at such packets: whether one of them may hold, its ports, sizes and flow say.
// Most do not.
bool Inspection::may_be_quiet(std::string_view frame, const KeyHits& hits) {
  return hits.generation == rules().generation() && hits.count <= match::max_hits &&
         flow::read_plain_packet(frame, plain_);
}

const Judgement& Inspection::plain_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits) {
  begin_frame(frame, hits);
  quiet_ = depends_ = true;
  flow::Flow* const flow = conversations_.packet(plain_, hash, now_ / 1000).flow;
  bool by_flow = false;
  if (flow == nullptr) {
    ++counters_.no_flow;
    if (!is_quiet_in(nullptr, false)) {
      read_facts();
      quiet_ = false;
      inspect_packet(nullptr, false);
    }
  } else if ((flow->user & FlowMark::dropped) != 0) {
    by_flow = drop_by_flow(*flow);
  }
  if (subject_.judgement.drop && quiet_) read_facts();
  quiet_ = depends_ = false;
  return end_frame(flow, by_flow);
}

bool Inspection::is_quiet_in(const flow::Flow* flow, bool streamed) const {
  const match::Detector& detector = rules().detector();
  const match::PlainFacts packet = plain_facts_of(plain_);
  match::FlowFacts facts;
  if (flow != nullptr) facts = facts_of(*flow, subject_.direction);
  if (!subject_.hits.keys.quiet && detector.may_hold_without_keys(packet, facts, addresses_told(flow))) return false;
  const unsigned klass =
      detector.classes().class_of(packet.protocol, packet.source_port, packet.destination_port, true);
  if (streamed && !detector.searches_packets(klass)) return true;
  for (std::uint32_t k = 0; k < subject_.hits.keys.count; ++k) {
    if (detector.may_hold(packet, facts, rules().keys().patterns_of(subject_.hits.keys.key[k]))) return false;
  }
  return true;
}

}  // namespace sluice::function
