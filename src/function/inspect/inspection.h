// One lane's inspection: frames in, the rules that hold out. Puts together the conversations (flow/), what the matcher
// finds (match/automaton/) and what is confirmed of it (match/detect/).
//
//   Inspection inspection(rules, settings, sink);
//   const Judgement judgement = inspection.frame(bytes, microseconds);  // alerts come to the sink from within
//   if (judgement.drop) ...
//
// What is inspected, as Suricata does it:
//   - Each packet, by the rules that look at no payload. Rules about addresses alone are tried with one packet of each
//     direction of a flow, and with another one after exchange().
//   - The payload of TCP as a stream, where the handshake was seen: each new piece with what went before it, the window
//     (stream_inspector.h). All other payloads as packets (packet_inspector.h).
//   - HTTP messages, where a buffer is whole (http_inspector.h).
//   - A fragment as the packet that it is, and with the one that completes its datagram the datagram, too
//     (fragment_inspector.h).
//   - A frame with a tunnel's packet as the packet that it is, and then the packet in the tunnel (tunnel_inspector.h).
//     The frame is dropped where either is.
// Each packet comes before the stream's piece that it brings. No rule looks at most packets: of these only the flow is
// brought up to date (flow update only); all others have a full inspection.
//
// What is dropped: a rule of `drop`, `reject` or `pass` that holds acts on the packet, or on the rest of the flow
// (match/rules/rule_scope.h). Then all further packets of the flow are dropped, or nothing of it is inspected any more.
// What a dropped flow held of streams, HTTP and bits is given back with that packet. Where another flow's frame made it
// report, it is given back with its own next packet. A stream does not get what was dropped before it: that is
// inspected when it comes again. Of a packet that its stream does not take whole (flow/tcp_stream.h, feed()) the
// payload is inspected by itself besides. One that its stream refuses is dropped, unless a rule of `pass` has held.
//
// What other flows report because a frame ends them, or takes their capacity, is not the frame's: neither it nor they
// are dropped for the other (flow_context.h). The same context is that of what a stream reports without a packet of its
// own and its direction: at the end of its flow, or when the other side acknowledges a gap.
//
// A rule whose parts come in several pieces is tried with each of them, as long as its best pattern is in the window
// (flow/carried.h). Once it holds, it is tried only when that pattern comes again. What is open is forgotten at
// exchange(). Where a piece's header or flowbits keep the rule from holding, it waits for that pattern as well.
//
// Prefilter matches: what a device has found in a payload (KeyHits) takes the place of the search on this core, for the
// packet and for the stream's piece that it brings. What lies across pieces is looked for here. A rule whose key is in
// one piece and whose pattern ends in another is tried with that one, whatever kept it from holding before. Without
// matches, and for what came out of order, HTTP's buffers and bodies, the core searches. The rules that hold are the
// same either way.
//
// What has to wait in its stream is looked at when it comes, as far as it says that nothing is in it. The rest, and
// what lies across, is searched when a frame releases it. As much of that as the frame brings itself costs it nothing;
// the rest is part of the batch's time, and so is handing it over (stream_release.h). What there is no time for is
// thrown away as it waits, a gap. With `drop_on_overload` a frame that would release more than there is time for is
// dropped before its stream takes it, unless it is a RST, which nobody sends again.
//
// Bounded: `budget` prefilter matches for a frame (all its inspections together), as many for each other flow that it
// makes report something, and so much time for a batch (begin()). Each frame has a share of that time that those before
// it cannot take (confirm_time.h); other flows have an eighth, shared likewise. Searching HTTP is part of it, but for 8
// KiB and as much as the frame brings of its stream, so that ordinary bodies are not concerned.
//
// What is left over is counted, and the policy is `drop_on_overload`, also of fragments that cannot be put together:
// the frame is dropped, and where a stream or HTTP was left, the rest of its flow. That is for what might have been
// dropped: frames of which rules are left that only alert go on. Where no rule drops, all go on, as without the policy.
// HTTP that goes beyond a limit (flow/http/settings.h, Limit) is dropped from that frame on with `drop_on_http_limit`,
// where a rule drops at all and none of `pass` has held.
//
// Memory: settings.conversations and fragments, taken here. Lifetime: the end of an Inspection ends its flows, and
// inspects what they hold: the sink outlives it, with all that its calls touch. Thread-safety: none, one lane; the
// Rules are shared by all. The sink may not call back. Cost: some 50 ns for a flow update, 300 ns and more for a TCP
// segment in a stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "flow/conversations.h"
#include "flow/fragments.h"
#include "function/inspect/conversation_inspector.h"
#include "function/inspect/fragment_inspector.h"
#include "function/inspect/inspection_environment.h"
#include "function/inspect/inspection_rules.h"
#include "function/inspect/inspection_settings.h"
#include "function/inspect/judgement.h"
#include "function/inspect/packet_context.h"
#include "function/inspect/tunnel_inspector.h"
#include "match/detect/rate_filter.h"

namespace sluice::function {

// What is known of a frame before a device has looked at it.
struct FrameBrief {
  std::uint32_t hash = 0;    // of its flow, for its table; 0 where it has none
  std::string_view payload;  // within the frame
  std::uint8_t klass = 0;    // match/detect/traffic_classes.h
  // Flow update only, unless a key is in its payload: flow/plain_packet.h, and no other rule looks at the packet.
  bool updates_flow_only = false;
};

class Inspection final {
 public:
  // Whoever keeps the search itself may pass a pointer that owns nothing.
  Inspection(std::shared_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertSink& sink);
  ~Inspection();  // inspects

  // Other rules from now on, in all flows; gives back the old ones. Flowbits stay, by name, when the new Detector was
  // made after the old one.
  std::shared_ptr<InspectionSearch> exchange(std::shared_ptr<InspectionSearch> search);
  const InspectionRules& rules() const { return env_.rules(); }

  // From now on prefilter matches are confirmed for so many ticks of the time-stamp counter: what a batch of so many
  // frames brings. Each has what is left, or its share where next() says how many frames are still to come, itself
  // counted. An eighth is set aside for other flows than the frames'. `releases`: one frame, and one other flow, may
  // release all that waits, though there is no time for it.
  void begin(std::uint64_t ticks, std::uint32_t frames = 1, bool releases = true) {
    env_.limits.begin(ticks, frames, releases);
  }
  // So much of it decoding a frame's bodies may take, beyond what comes with their packet (flow::http::Parser): what is
  // behind that in a body is not looked at.
  void set_most_decoding(std::uint64_t ticks) { env_.limits.most_decoding = ticks; }
  // Until the next begin(): with a policy that lets frames pass, from this tick on searches of HTTP's buffers are part
  // of those ticks, too.
  void set_late_from(std::uint64_t tsc) { env_.limits.late_from = env_.drops_left ? Lateness::never : tsc; }
  // Until the next begin(): from this tick on what the device has found in a frame is left, and HTTP is not parsed.
  // Where frames pass, that is a gap to the parser; else the frame is dropped before its stream takes it, and inspected
  // when it is sent again. `now`, `stall`: as Lateness has them.
  void set_looks_until(std::uint64_t tsc, std::uint64_t now = 0, std::uint64_t stall = 0) {
    env_.limits.lateness.set(tsc, now, stall, env_.counters.frames, spent());
  }
  // Of the ticks that begin() was given.
  std::uint64_t spent() const { return env_.limits.spent(); }
  // The same, with what they were exceeded by; and, besides, what whole releases are reckoned to have taken.
  std::uint64_t taken() const { return env_.limits.taken(); }
  std::uint64_t released_beyond() const { return env_.limits.releases.beyond; }
  // ConfirmTime::long_steps(), since the start.
  void set_long_from(std::uint64_t ticks) { env_.limits.set_long_from(ticks); }
  ConfirmTime::LongSteps long_steps() const { return env_.limits.long_steps(); }
  void next(std::uint32_t frames_to_come) { env_.limits.next(frames_to_come); }

  // `frame`: from its Ethernet header on; `microseconds` since the epoch: of a time that is before an earlier frame's,
  // that one's is taken.
  const Judgement& frame(std::string_view frame, std::uint64_t microseconds, const KeyHits& hits = {}) {
    return this->frame(frame, microseconds, hits, brief_of(frame).hash);
  }
  // With what brief_of() said of it.
  const Judgement& frame(std::string_view frame, std::uint64_t microseconds, const KeyHits& hits, std::uint32_t hash) {
    env_.now = std::max(env_.now, microseconds);
    const bool updates_flow_only = hits.updates_flow_only && hits.count == 0 && hits.generation == rules().generation();
    return updates_flow_only ? update_flow(frame, hash, hits) : inspect(frame, hash, hits);
  }
  const Judgement& last() const { return last_; }
  // Some 10 ns.
  FrameBrief brief_of(std::string_view frame) const;
  // At the end of a capture: what conversations still hold is inspected.
  void finish();
  // Takes the pages of all memory that is only touched as it is used.
  void touch_memory() {
    conversations_.touch_memory();
    fragments().touch_memory();
  }

  // Time has gone on to there without a frame.
  void pass_time(std::uint64_t microseconds) { env_.now = std::max(env_.now, microseconds); }
  // Microseconds: of the last frame, or of an earlier one that had a later time, or as pass_time() says.
  std::uint64_t now() const { return env_.now; }
  const InspectionCounters& counters() const { return env_.counters; }
  flow::Conversations& conversations() { return conversations_; }
  flow::Fragments& fragments() { return fragments_.fragments(); }
  const match::RateCounters& rate_counters() const { return env_.search->rates.counters(); }
  // Alerts that lines of suppress and event_filter have kept back, and what these have counted.
  std::uint64_t alerts_filtered() const { return env_.search->alerts.kept_back(); }
  const match::RateCounters& event_filter_counters() const { return env_.search->alerts.rates(); }

 private:
  // A frame's context, with what belongs to it alone.
  struct FrameContext {
    FrameContext(InspectionEnvironment& env, std::string_view frame, PrefilterMatches matches,
                 PacketRules rules = PacketRules::all);
    Verdict verdict;
    PacketBudget budget;
    PacketContext context;
  };
  const Judgement& update_flow(std::string_view frame, std::uint32_t hash, const KeyHits& hits);
  const Judgement& inspect(std::string_view frame, std::uint32_t hash, const KeyHits& hits);
  const Judgement& inspect_plain(const flow::Packet& packet, std::string_view frame, std::uint32_t hash,
                                 PrefilterMatches matches);
  const Judgement& inspect_full(std::string_view frame, std::uint32_t hash, PrefilterMatches matches);
  const Judgement& inspect_fragment(PacketContext& fragment, unsigned tunnels = 0);
  const Judgement& inspect_in_tunnel(PacketContext& outer, unsigned tunnels = 0);
  const Judgement& end_frame(PacketContext& context);
  void report_dropped(PacketContext& context);

  InspectionEnvironment env_;
  ConversationInspector events_;
  FragmentInspector fragments_;
  TunnelInspector tunnels_;
  Judgement last_;
  flow::Conversations conversations_;  // last: its end may still inspect
};

}  // namespace sluice::function
