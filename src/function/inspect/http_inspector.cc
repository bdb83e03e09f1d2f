#include "function/inspect/http_inspector.h"

#include <optional>
#include <utility>

#include "function/inspect/http_buffers.h"

namespace sluice::function {

using flow::Direction;
using match::Buffer;
using match::Buffers;
using match::Point;

namespace {

constexpr std::uint64_t ticks_for_decoded = 4;  // 1.6 ns a byte

}  // namespace

// Where an event is inspected. `grows`: a body that has more bytes now; `again`: headers that have been, and have
// trailers now.
struct HttpInspector::Place {
  Point point;
  bool grows = false;
  bool again = false;

  bool is_of_response() const { return point >= Point::response_headers; }
  bool is_of_body() const { return point == Point::request_body || point == Point::response_body; }
  Direction direction() const { return is_of_response() ? Direction::to_client : Direction::to_server; }

  // If at all.
  static std::optional<Place> of(flow::http::Event event) {
    switch (event) {
      case flow::http::Event::request_line:
        return Place{Point::request_line};
      case flow::http::Event::request_headers:
        return Place{Point::request_headers};
      case flow::http::Event::request_body:
        return Place{Point::request_body, true};
      case flow::http::Event::request_complete:
        return Place{Point::request_body};
      case flow::http::Event::response_headers:
        return Place{Point::response_headers};
      case flow::http::Event::response_body:
        return Place{Point::response_body, true};
      case flow::http::Event::response_complete:
        return Place{Point::response_body};
      case flow::http::Event::request_trailers:
        return Place{Point::request_headers, false, true};
      case flow::http::Event::response_trailers:
        return Place{Point::response_headers, false, true};
      default:
        return std::nullopt;
    }
  }
};

void HttpInspector::inspect(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                            flow::http::Transaction& transaction) {
  inspect_event(flow, extra, event, transaction);
  if (event == flow::http::Event::request_complete || event == flow::http::Event::response_complete) {
    waiting_.settle(&transaction);
  }
}

void HttpInspector::inspect_event(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                                  flow::http::Transaction& transaction) {
  env_.reporter.report_held();
  flow.user |= FlowMark::http;
  const auto place = Place::of(event);
  if (!place) return;
  if (place->again) {
    search_.begin_again(place->is_of_response() ? transaction.response : transaction.request);
    transaction.request.marks.confirmed = transaction.response.marks.confirmed = 0;
  }
  if (env_.detector().is_empty(place->point)) return;
  FlowContext context(contexts_, flow, place->direction());
  if ((flow.user & (FlowMark::dropped | FlowMark::passed)) != 0 || context->verdict.passed) return;
  if (!env_.drops_left && env_.is_late()) {
    env_.leave(*context);
    return;
  }
  inspect_message(context, flow, extra, *place, transaction);
}

void HttpInspector::inspect_message(FlowContext& of_flow, flow::Flow& flow, flow::Extra& extra, const Place& place,
                                    flow::http::Transaction& transaction) {
  PacketContext& context = *of_flow;
  const match::Detector& detector = env_.detector();
  match::Detector::Scratch& scratch = env_.search->detector;
  const bool is_body = place.is_of_body();
  flow::http::Message& message = place.is_of_response() ? transaction.response : transaction.request;
  flow::http::Marks& marks = search_.marks_of(message);
  Buffers buffers;
  const std::uint64_t left = env_.counters.left;
  const std::size_t count = search_.search(context, place.point, place.grows, transaction, buffers, text_);
  const bool is_searched = env_.counters.left == left;
  env_.keep_dropping(flow, context);
  const std::string_view window = env_.conversations.window(flow, context.direction);
  match::Detector::Found what;
  what.patterns = {env_.search->found.data(), count};
  what.growing = place.grows && !message.flags.body_truncated;
  // What was left, and a body that begins anew, is looked at as if nothing had been.
  const std::size_t before = std::exchange(marks.confirmed, 0);
  const auto note_confirmed = [&] {
    if (is_body && is_searched) marks.confirmed = static_cast<std::uint32_t>(message.body_view().size());
  };
  if (is_body && what.growing && !marks.lost && before <= message.body_shown) {
    what.body = message.body_view();
    what.body_before = before;
  }
  what.payload_is_ordinary =
      extra.carried[static_cast<unsigned>(context.direction)].is_ordinary(env_.rules().generation(), window.size());
  if (!detector.collect(place.point, context.packet(), what, scratch) ||
      (is_body && !detector.leave_out({marks.held.data(), marks.held_count}, scratch))) {
    note_confirmed();
    return;
  }
  set_http_buffers(buffers, place.point, transaction, detector.looked_at(), text_);
  set_headers(buffers, context.packet());
  if (!window.empty()) buffers.set(Buffer::payload, window);
  RuleSubject subject;
  subject.facts = stream_facts_of(flow, context.direction, context.packet());
  subject.flow = &flow;
  subject.extra = &extra;
  subject.transaction = &transaction;
  subject.holds_alerts = place.point == Point::request_line && of_flow.is_frames();
  // A rule of established waits for the handshake, and not for the body.
  if (confirmation_.confirm(context, subject, buffers) && subject.facts.established) note_confirmed();
  const std::vector<std::uint32_t>& matched = env_.search->matched;
  for (std::size_t m = 0; is_body && m < matched.size() && marks.held_count < marks.capacity; ++m) {
    marks.held[marks.held_count++] = matched[m];
  }
  env_.keep_dropping(flow, context);
  waiting_.note(flow, context.direction, transaction);
}

// Where frames are dropped, one goes before its stream takes it (drops_unseen()); but what has waited for it has been
// sent on: its flow ends there.
bool HttpInspector::goes_by(flow::Flow& flow, bool released) {
  constexpr std::uint16_t parsed = FlowMark::http, of_interest = FlowMark::http | FlowMark::passed;
  if ((env_.drops_left && !released) || (flow.user & of_interest) != parsed || !env_.is_late()) return false;
  FlowContext context(contexts_, flow);
  ++env_.counters.http_left;
  env_.overload(*context);
  env_.keep_dropping(flow, *context);
  return true;
}

// What is sent again is inspected then. Its first bytes are found to be HTTP behind this. Of what was HTTP and is
// parsed no further nothing is missed: a frame of it would be dropped, and sent again, for nothing.
bool HttpInspector::drops_unseen(PacketContext& context, const flow::Flow& flow) {
  if (!env_.is_late()) return false;
  if (payload_search_.leaves_matches(context)) return true;
  const std::string_view payload = context.packet().payload;
  if (payload.empty() || !env_.conversations.may_parse_http(flow, context.direction)) return false;
  if ((flow.user & FlowMark::http) == 0 && !looks_like_http(payload)) return false;
  ++env_.counters.http_left;
  env_.overload(context);
  return true;
}

// What was inspected of it has come before: a rule that holds there is reported.
void HttpInspector::limited(flow::Flow& flow) {
  env_.reporter.report_held();
  if (!env_.drops_limited) return;
  FlowContext context(contexts_, flow);
  if (context->is_passed(flow)) return;
  context->verdict.judgement.drop = context->verdict.judgement.http_limit = true;
  flow.user |= FlowMark::dropped;
}

// What is more than a frame may ever have is as a body beyond its limit; less is for want of time.
bool HttpInspector::decodes(flow::Flow& flow, std::uint64_t bytes) {
  if (!env_.limits.time.limited()) return true;
  FlowContext context(contexts_, flow);
  PacketBudget& budget = context->budget;
  const std::uint64_t ticks = bytes * ticks_for_decoded;
  if (budget.decoding + ticks > env_.limits.most_decoding) return false;
  if (budget.time.left() < ticks) {
    env_.leave(*context);
    env_.keep_dropping(flow, *context);
    return false;
  }
  budget.decoding += ticks;
  budget.time.spend(ticks);
  return true;
}

// The frames behind it have less.
void HttpInspector::decoded(flow::Flow& flow, std::uint64_t bytes) {
  if (!env_.limits.time.limited()) return;
  FlowContext context(contexts_, flow);
  const std::uint64_t ticks = bytes * ticks_for_decoded;
  context->budget.decoding += ticks;
  context->budget.time.spend(ticks);
}

}  // namespace sluice::function
