#include "function/inspect/stream_inspector.h"

#include <algorithm>
#include <utility>

namespace sluice::function {
namespace {

using match::Buffer;
using match::Buffers;
using match::Point;

// Of bytes that wait, as the mark that comes back with them: no pattern is in them, or, by a device, no key. Both are
// true of the rules that searched; those of other generations may find something.
enum class Waited : std::uint8_t { unknown, without_patterns, without_keys };

std::uint8_t mark_of(Waited what, std::uint64_t generation) {
  if (what == Waited::unknown) return 0;
  return static_cast<std::uint8_t>((generation % 127 + 1) * 2 + (what == Waited::without_keys ? 1 : 0));
}

Waited waited_of(std::uint8_t mark, std::uint64_t generation) {
  for (const Waited what : {Waited::without_patterns, Waited::without_keys}) {
    if (mark == mark_of(what, generation)) return what;
  }
  return Waited::unknown;
}

constexpr std::uint16_t not_inspected = FlowMark::dropped | FlowMark::passed;

}  // namespace

// Now, when it costs no more than the packet's own bytes would if they were next: who releases them pays for what is
// then still to be searched.
std::uint8_t StreamInspector::mark_waiting(PacketContext& context, const flow::Flow& flow) {
  const std::uint64_t generation = env_.rules().generation();
  if ((flow.user & not_inspected) != 0 || context.verdict.passed) return 0;
  if (context.matches.known()) {
    return mark_of(context.matches.keys().empty() ? Waited::without_keys : Waited::unknown, generation);
  }
  if (context.matches.too_many()) return 0;
  const bool is_clean = search_.in_buffer(context, Buffer::payload, context.packet().payload) == 0;
  return mark_of(is_clean ? Waited::without_patterns : Waited::unknown, generation);
}

void StreamInspector::inspect(FlowContext& context, flow::Flow& flow, flow::Extra& extra,
                              const flow::StreamData& data) {
  const bool is_left = (flow.user & not_inspected) != 0 || context->verdict.passed;
  if (is_left || (!env_.drops_left && search_.leaves_matches(*context))) {
    flow::Carried& carried = extra.carried[static_cast<unsigned>(context->direction)];
    carried.pass(0, 0, false);
    carried.by_keys = false;  // what keys there are in it is not known either
    return;
  }
  if (!context->is_datagram) context->budget.allowance += data.fresh.size();
  inspect_piece(context, flow, extra, data);
  env_.keep_dropping(flow, *context);
}

void StreamInspector::inspect_piece(FlowContext& of_flow, flow::Flow& flow, flow::Extra& extra,
                                    const flow::StreamData& data) {
  PacketContext& context = *of_flow;
  match::Detector::Scratch& scratch = env_.search->detector;
  flow::Carried& carried = extra.carried[static_cast<unsigned>(context.direction)];
  carried.use(env_.rules().generation());
  const std::uint64_t left = env_.counters.left;
  const PatternsFound found = find_in(context, data, carried);
  const bool is_searched = env_.counters.left == left;
  carried.pass(data.window.size() - data.fresh.size(), data.fresh.size(),
               is_searched && !env_.detector().calls_for_http({env_.search->found.data(), found.count}));
  bool all = true;
  if (!collect(context, carried, found, data, all)) {
    carried.keep(scratch.open(), scratch.begun(), all);
    return;
  }
  RuleSubject subject;
  subject.facts = stream_facts_of(flow, context.direction, context.packet());
  subject.flow = &flow;
  subject.extra = &extra;
  subject.payload = data.fresh;
  Buffers buffers;
  set_headers(buffers, context.packet());
  buffers.set(Buffer::payload, data.window);
  all &= confirmation_.confirm(context, subject, buffers);
  carried.keep(scratch.open(), scratch.begun(), all);
  hold_matched(carried);
  if (const auto rules = scratch.unset(); !rules.empty() && of_flow.is_frames()) {
    unset_.rules.assign(rules.begin(), rules.end());
    unset_.flow = &flow;
    unset_.piece = data.fresh.size();
  }
}

void StreamInspector::hold_matched(flow::Carried& carried) {
  for (const std::uint32_t rule : env_.search->matched) {
    if (env_.detector().has_pattern(rule)) carried.hold(rule);
  }
}

// By the rules for streams, as a piece without history: those for packets have looked at it. Rules of streams alone see
// what is in the stream and nothing else.
void StreamInspector::inspect_not_taken(PacketContext& context, flow::Flow& flow, flow::Extra& extra) {
  if ((flow.user & not_inspected) != 0 || context.verdict.passed || search_.leaves_matches(context)) return;
  const match::PacketFacts& packet = context.packet();
  const PatternsFound found = search_.in_packet(context);
  if (!confirmation_.collect(context, match::Detector::Scope::streams, found, packet.payload.size())) return;
  RuleSubject subject;
  subject.facts = stream_facts_of(flow, context.direction, packet);
  subject.facts.beside_stream = true;
  subject.flow = &flow;
  subject.extra = &extra;
  subject.payload = packet.payload;
  Buffers buffers;
  set_headers(buffers, packet);
  buffers.set(Buffer::payload, packet.payload);
  confirmation_.confirm(context, subject, buffers);
}

// The patterns that end in the new piece; of a device's keys, also some whose rest is still to come.
PatternsFound StreamInspector::find_in(PacketContext& context, const flow::StreamData& data, flow::Carried& carried) {
  const std::size_t history = data.window.size() - data.fresh.size();
  const std::string_view payload = context.packet().payload;
  const bool of_packet =
      data.origin >= payload.data() && data.origin + data.fresh.size() <= payload.data() + payload.size();
  const Waited waited = waited_of(data.mark, env_.rules().generation());
  if (of_packet && !context.is_datagram) context.budget.waited += data.fresh.size();
  const bool by_keys = of_packet ? context.matches.known() : waited == Waited::without_keys;
  const bool before_by_keys = std::exchange(carried.by_keys, by_keys);
  if (by_keys) {
    return search_.by_matches(context, of_packet ? context.matches.keys() : std::span<const std::uint32_t>(),
                              data.window, history, !before_by_keys || carried.lost());
  }
  const std::size_t longest = env_.rules().longest_pattern(), before = std::min(history, longest);
  std::string_view bytes = data.window.substr(history - before);
  if (of_packet) return search_.by_core(context, bytes, before);
  // Those that begin before it.
  if (waited == Waited::without_patterns) bytes = bytes.substr(0, before == 0 ? 0 : before + longest);
  return search_.in_slices(context, bytes, before, true);
}

// Besides what was found now, what earlier pieces have left open. Where that was too much to be kept, it is all that
// the window holds, but for rules that have held since their pattern came. `all`: what is open now is known from the
// prefilter matches.
bool StreamInspector::collect(PacketContext& context, flow::Carried& carried, const PatternsFound& found,
                              const flow::StreamData& data, bool& all) {
  const match::Detector& detector = env_.detector();
  InspectionSearch& search = *env_.search;
  match::Detector::Found what({search.found.data(), found.count}, found.by_keys, data.window.size(),
                              match::Detector::Scope::streams);
  what.stream = true;
  what.piece = data.fresh;
  what.window = data.window;
  if (carried.empty()) return detector.collect(Point::packet, context.packet(), what, search.detector);
  if (carried.lost()) {
    what.open_unknown = true;
    // Besides, for rules whose pattern's rest is to come, what keys say.
    search.keys.assign(what.patterns.begin(), what.patterns.end());
    const PatternsFound in_window = search_.in_slices(context, data.window, 0, false);
    all = in_window.all;
    std::vector<std::uint32_t>& patterns = search.prefilter_matches;
    patterns.assign(search.found.begin(), search.found.begin() + static_cast<std::ptrdiff_t>(in_window.count));
    patterns.insert(patterns.end(), search.keys.begin(), search.keys.end());
    std::sort(patterns.begin(), patterns.end());
    patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
    what.patterns = patterns;
  }
  std::vector<std::uint32_t>& again = search.matched;
  again.assign(carried.open().begin(), carried.open().end());
  for (std::size_t h = carried.held().size(); h-- > 0;) {
    const std::uint32_t rule = carried.held()[h];
    if (!detector.comes(rule, data.window, data.fresh.size())) continue;
    again.push_back(rule);
    carried.renew(rule);
  }
  what.open = again;
  what.begun = carried.begun();
  what.without = carried.held();
  return detector.collect(Point::packet, context.packet(), what, search.detector);
}

// They are tried in the window again that they were found in.
void StreamInspector::try_unset(PacketContext& frame) {
  flow::Flow& flow = *unset_.flow;
  const std::string_view window = env_.conversations.window(flow, frame.direction);
  flow::Extra* const extra = env_.conversations.extra_if_any(flow);
  if (extra != nullptr && (flow.user & FlowMark::dropped) == 0 && !frame.is_passed(flow) &&
      unset_.piece <= window.size()) {
    const std::string_view piece = window.substr(window.size() - unset_.piece);
    if (env_.detector().collect_unset(unset_.rules, piece, env_.search->detector)) {
      RuleSubject subject;
      subject.facts = stream_facts_of(flow, frame.direction, frame.packet());
      subject.flow = &flow;
      subject.extra = extra;
      subject.payload = piece;
      Buffers buffers;
      set_headers(buffers, frame.packet());
      buffers.set(Buffer::payload, window);
      confirmation_.confirm(frame, subject, buffers);
      env_.keep_dropping(flow, frame);
      hold_matched(extra->carried[static_cast<unsigned>(frame.direction)]);
    }
  }
  unset_.rules.clear();
}

}  // namespace sluice::function
