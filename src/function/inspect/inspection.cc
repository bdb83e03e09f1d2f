#include "function/inspect/inspection.h"

#include <optional>
#include <utility>

#include "flow/plain_packet.h"

namespace sluice::function {

Inspection::Inspection(std::shared_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertSink& sink)
    : env_(std::move(search), settings, sink, conversations_),
      events_(env_),
      fragments_(env_, settings.fragments, events_),
      tunnels_(env_),
      conversations_(settings.conversations, events_) {}

Inspection::~Inspection() = default;

std::shared_ptr<InspectionSearch> Inspection::exchange(std::shared_ptr<InspectionSearch> search) {
  events_.forget_rules();
  search->rates.take_over(env_.search->rates);
  search->alerts.take_over(env_.search->alerts);
  const match::FlowBits renamed = search->rules->detector().renamed(env_.detector());
  if (match::has_any(renamed, renamed)) conversations_.clear_bits(renamed);
  return env_.exchange(std::move(search));
}

FrameBrief Inspection::brief_of(std::string_view frame) const {
  const match::Detector& detector = env_.detector();
  const match::TrafficClasses& classes = detector.classes();
  flow::Packet packet;
  FrameBrief brief;
  if (flow::read_plain_packet(frame, packet)) [[likely]] {
    brief.hash = conversations_.table().hash(packet);
    brief.payload = packet.payload;
    brief.klass =
        static_cast<std::uint8_t>(classes.class_of(packet.protocol, packet.source_port, packet.destination_port, true));
    brief.updates_flow_only = !tunnels_.may_hold(packet.protocol, packet.destination_port) &&
                              !detector.has_matches_without_keys(plain_facts_of(packet));
    return brief;
  }
  const match::PacketFacts facts = match::facts_of(frame);
  if (flow::read_packet(facts, packet)) brief.hash = conversations_.table().hash(packet);
  brief.payload = facts.payload;
  brief.klass = static_cast<std::uint8_t>(classes.class_of(facts));
  return brief;
}

inline Inspection::FrameContext::FrameContext(InspectionEnvironment& env, std::string_view frame,
                                              PrefilterMatches matches, PacketRules rules)
    : budget(env.limits.time, env.settings.budget), context(frame, env.now, matches, verdict, budget, rules) {
  InspectionCounters& counters = env.counters;
  counters.by_device += matches.known() || matches.too_many() ? 1 : 0;
  counters.many_keys += matches.too_many() ? 1 : 0;
  ++counters.frames;
}

const Judgement& Inspection::inspect(std::string_view frame, std::uint32_t hash, const KeyHits& hits) {
  const PrefilterMatches matches(hits, rules().generation());
  if (matches.known()) {
    flow::Packet packet;
    if (flow::read_plain_packet(frame, packet)) return inspect_plain(packet, frame, hash, matches);
  }
  return inspect_full(frame, hash, matches);
}

// Nothing was found in it, and no rule looks at such packets: flow update only.
const Judgement& Inspection::update_flow(std::string_view frame, std::uint32_t hash, const KeyHits& hits) {
  FrameContext of(env_, frame, PrefilterMatches::of_searched(hits), PacketRules::none);
  flow::Packet packet;
  flow::read_plain_packet(frame, packet);  // as brief_of() has: it is one
  events_.follow(of.context, packet, hash);
  return end_frame(of.context);
}

// Keys are in the payload, or rules look at such packets: whether one of them may hold, its ports, sizes and flow say.
// Most do not.
const Judgement& Inspection::inspect_plain(const flow::Packet& packet, std::string_view frame, std::uint32_t hash,
                                           PrefilterMatches matches) {
  FrameContext of(env_, frame, matches, PacketRules::as_flow_says);
  of.context.plain = &packet;
  events_.follow(of.context, packet, hash);
  if (tunnels_.may_hold(packet.protocol, packet.destination_port)) [[unlikely]]
    return inspect_in_tunnel(of.context);
  return end_frame(of.context);
}

const Judgement& Inspection::inspect_full(std::string_view frame, std::uint32_t hash, PrefilterMatches matches) {
  FrameContext of(env_, frame, matches);
  PacketContext& context = of.context;
  if (context.packet().family == 0) {
    if (tunnels_.may_hold_without_ip()) return inspect_in_tunnel(context);
    ++env_.counters.not_ip;
    return last_ = of.verdict.judgement;
  }
  flow::Packet packet;
  if (flow::read_packet(context.packet(), packet)) {
    events_.follow(context, packet, hash);
  } else {
    events_.inspect_alone(context);
  }
  if (packet.fragment) [[unlikely]]
    return inspect_fragment(context);
  if (tunnels_.may_hold(context.packet().protocol, context.packet().destination_port)) [[unlikely]]
    return inspect_in_tunnel(context);
  return end_frame(context);
}

// Apart: an optional datagram is dear to have on the stack of each frame.
[[gnu::noinline]] const Judgement& Inspection::inspect_fragment(PacketContext& fragment, unsigned tunnels) {
  std::optional<PacketContext> datagram;
  fragments_.inspect(fragment, datagram);
  if (tunnels != 0) fragment.verdict.judgement.reject = false;
  if (!datagram) return end_frame(fragment);
  const match::PacketFacts& packet = datagram->packet();
  if (!tunnels_.may_hold(packet.protocol, packet.destination_port)) return end_frame(*datagram);
  return inspect_in_tunnel(*datagram, tunnels);
}

// `outer` is in so many tunnels itself. To answer a packet's ends in a tunnel nobody knows the way.
[[gnu::noinline]] const Judgement& Inspection::inspect_in_tunnel(PacketContext& outer, unsigned tunnels) {
  const bool is_ip = outer.packet().family != 0;
  std::optional<PacketContext> inner;
  if (outer.verdict.judgement.drop || !tunnels_.find(outer, inner)) {
    if (is_ip) return end_frame(outer);
    ++env_.counters.not_ip;
    return last_ = outer.verdict.judgement;
  }
  flow::Packet packet;
  if (flow::read_packet(inner->packet(), packet)) {
    events_.follow(*inner, packet, conversations_.table().hash(packet));
  } else {
    events_.inspect_alone(*inner);
  }
  outer.verdict.judgement.reject = false;
  if (packet.fragment) return inspect_fragment(*inner, tunnels + 1);
  if (!tunnels_.may_hold(inner->packet().protocol, inner->packet().destination_port)) return end_frame(*inner);
  if (tunnels + 1 == TunnelInspector::most) {
    env_.leave(*inner);
    return end_frame(*inner);
  }
  return inspect_in_tunnel(*inner, tunnels + 1);
}

inline const Judgement& Inspection::end_frame(PacketContext& context) {
  events_.end(context);
  const Judgement& judgement = context.verdict.judgement;
  if (judgement.overload) [[unlikely]] {
    ++env_.counters.overloaded;
    if (!judgement.drop) env_.reporter.sink().unseen();
  }
  if (judgement.drop) [[unlikely]]
    report_dropped(context);
  return last_ = judgement;
}

void Inspection::report_dropped(PacketContext& context) {
  Verdict& verdict = context.verdict;
  verdict.judgement.why = verdict.reason();
  const bool by_rule = verdict.judgement.why == DropReason::rules && verdict.judgement.by_rule;
  env_.reporter.sink().dropped({context.microseconds, context.frame, &context.packet(), context.direction, context.flow,
                                verdict.judgement.why, by_rule ? &rules() : nullptr,
                                by_rule ? verdict.blocking_rule : 0, context.tunnel});
}

void Inspection::finish() {
  conversations_.flush();
  env_.reporter.report_held();
}

}  // namespace sluice::function
