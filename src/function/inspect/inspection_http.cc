// What is inspected of HTTP, and what the core searches in its buffers.
#include <rte_cycles.h>

#include <algorithm>
#include <bit>

#include "function/inspect/http_buffers.h"
#include "function/inspect/inspection_as_if.h"

namespace sluice::function {

using flow::Direction;
using match::Buffer;
using match::Buffers;
using match::BufferSet;
using match::Point;

namespace {

constexpr BufferSet bodies = match::http_bodies;
// Those of a request wherever a rule looks at them; others are of the message that the point is of.
constexpr BufferSet of_request{Buffer::http_uri,          Buffer::http_raw_uri,      Buffer::http_method,
                               Buffer::http_request_line, Buffer::http_request_body, Buffer::http_user_agent,
                               Buffer::http_host,         Buffer::http_raw_host,     Buffer::http_referer,
                               Buffer::http_accept,       Buffer::http_accept_enc,   Buffer::http_accept_lang};
constexpr std::size_t slice = 16384;  // of a body, searched in one go

// Where an event of HTTP is inspected, if at all. `grows`: a body that has more bytes now; `again`: headers that have
// been, and have trailers now.
struct HttpPlace {
  Point point;
  bool grows = false;
  bool again = false;
};

std::optional<HttpPlace> place_of(flow::http::Event event) {
  switch (event) {
    case flow::http::Event::request_line:
      return HttpPlace{Point::request_line};
    case flow::http::Event::request_headers:
      return HttpPlace{Point::request_headers};
    case flow::http::Event::request_body:
      return HttpPlace{Point::request_body, true};
    case flow::http::Event::request_complete:
      return HttpPlace{Point::request_body};
    case flow::http::Event::response_headers:
      return HttpPlace{Point::response_headers};
    case flow::http::Event::response_body:
      return HttpPlace{Point::response_body, true};
    case flow::http::Event::response_complete:
      return HttpPlace{Point::response_body};
    case flow::http::Event::request_trailers:
      return HttpPlace{Point::request_headers, false, true};
    case flow::http::Event::response_trailers:
      return HttpPlace{Point::response_headers, false, true};
    default:
      return std::nullopt;
  }
}

}  // namespace

void Inspection::http(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                      flow::http::Transaction& transaction) {
  inspect_http(flow, extra, event, transaction);
  if (waiting_.rules.empty()) [[likely]] {
    return;
  }
  if (event == flow::http::Event::request_complete || event == flow::http::Event::response_complete) {
    settle(&transaction);
  }
}

void Inspection::inspect_http(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                              flow::http::Transaction& transaction) {
  tell_held();
  flow.user |= FlowMark::http;
  const auto place = place_of(event);
  if (!place) return;
  const auto [point, grows, again] = *place;
  if (again) {
    search_again(point >= Point::response_headers ? transaction.response : transaction.request);
    transaction.request.marks.confirmed = transaction.response.marks.confirmed = 0;
  }
  const match::Detector& detector = rules().detector();
  if (detector.is_empty(point)) return;
  const Direction direction = point >= Point::response_headers ? Direction::to_client : Direction::to_server;
  const Direction frame_direction = subject_.direction;
  const AsIf as_if(*this, flow, direction);
  if ((flow.user & (FlowMark::dropped | FlowMark::passed)) != 0 || subject_.passed) return;
  if (!drops_left_ && is_late()) {
    ++counters_.left;
    overload();
    return;
  }
  flow::http::Message& message = direction == Direction::to_client ? transaction.response : transaction.request;
  flow::http::Marks& marks = marks_of(message);
  const bool is_body = point == Point::request_body || point == Point::response_body;
  Buffers buffers;
  const std::uint64_t left = counters_.left;
  const std::size_t count = search_http(point, grows, transaction, buffers);
  const bool searched = counters_.left == left;
  keep_dropping(flow);
  const std::string_view window = conversations_.window(flow, direction);
  match::Detector::Found what;
  what.patterns = {search_->found.data(), count};
  what.growing = grows && !message.flags.body_truncated;
  // What was left, and a body that begins anew, is looked at as if nothing had been.
  const std::size_t before = std::exchange(marks.confirmed, 0);
  const auto note_confirmed = [&] {
    if (is_body && searched) marks.confirmed = static_cast<std::uint32_t>(message.body_view().size());
  };
  if (is_body && what.growing && !marks.lost && before <= message.body_shown) {
    what.body = message.body_view();
    what.body_before = before;
  }
  what.payload_is_ordinary =
      extra.carried[static_cast<unsigned>(direction)].is_ordinary(rules().generation(), window.size());
  if (!detector.collect(point, subject_.packet, what, search_->detector) ||
      (is_body && !detector.leave_out({marks.held.data(), marks.held_count}, search_->detector))) {
    note_confirmed();
    return;
  }
  set_http_buffers(buffers, point, transaction, detector.looked_at(), text_);
  set_headers(buffers, subject_.packet);
  if (!window.empty()) buffers.set(Buffer::payload, window);
  const match::FlowFacts facts = stream_facts_of(flow, direction);
  transaction_ = &transaction;
  holds_alerts_ = point == Point::request_line && &flow == flow_ && frame_direction == direction;
  // A rule of established waits for the handshake, and not for the body.
  if (inspect(facts, &flow, &extra, buffers, {}) && facts.established) note_confirmed();
  holds_alerts_ = false;
  transaction_ = nullptr;
  for (std::size_t m = 0; is_body && m < search_->matched.size() && marks.held_count < marks.room; ++m) {
    marks.held[marks.held_count++] = search_->matched[m];
  }
  keep_dropping(flow);
  note_waiting(flow, direction, transaction);
}

flow::http::Marks& Inspection::marks_of(flow::http::Message& message) {
  flow::http::Marks& marks = message.marks;
  const bool is_other = marks.rules != rules().generation();
  if (is_other) marks.clear(conversations_.http_pool());
  if (marks.lost) marks.searched = marks.body = marks.confirmed = 0;
  marks.rules = rules().generation();
  return marks;
}

// All but the body, which is as it was.
void Inspection::search_again(flow::http::Message& message) {
  flow::http::Marks& marks = marks_of(message);
  marks.searched = (BufferSet(marks.searched) & bodies).bits();
}

// The patterns that the buffers of a point's rules hold, into search_->found. Each buffer is searched once, for the
// rules of all points, and of a body what is new; what was found is in the messages' marks. `buffers` are set where
// something had to be searched but bodies.
std::size_t Inspection::search_http(Point point, bool grows, flow::http::Transaction& transaction, Buffers& buffers) {
  search_->candidates.clear();
  const BufferSet searched = rules().detector().searched(point);
  const bool response = point >= Point::response_headers;
  flow::http::Message& own = response ? transaction.response : transaction.request;
  const auto search_in = [&](BufferSet wanted, flow::http::Message& message) {
    if (wanted.empty()) return;
    flow::http::Marks& marks = marks_of(message);
    const BufferSet left = wanted.without(bodies).without(BufferSet(marks.searched));
    if (!left.empty()) set_http_buffers(buffers, point, transaction, left, text_);
    left.for_each([&](Buffer buffer) {
      const auto bytes = buffers[buffer];
      const bool is_done = bytes ? search_buffer(buffer, *bytes, marks) : message.headers_done;
      if (is_done) marks.searched |= BufferSet{buffer}.bits();
    });
    search_body(wanted & bodies, grows && &message == &own, message);
    add_found(marks);
  };
  search_in(searched & of_request, transaction.request);
  search_in(searched.without(of_request), own);
  std::vector<std::uint32_t>& all = search_->candidates;
  by_keys_ = false;
  for (const std::uint32_t number : all) search_->listed[number / 8] = 0;
  std::sort(all.begin(), all.end());
  std::copy(all.begin(), all.end(), search_->found.begin());
  return all.size();
}

// Where frames are dropped, one goes before its stream takes it (drops_unseen()); but what has waited for it has been
// sent on: its flow ends there.
bool Inspection::http_goes_by(flow::Flow& flow, bool released) {
  constexpr std::uint16_t parsed = FlowMark::http, of_interest = FlowMark::http | FlowMark::passed;
  if ((drops_left_ && !released) || (flow.user & of_interest) != parsed || !is_late()) return false;
  ++counters_.http_left;
  overload();
  keep_dropping(flow);
  return true;
}

// What is sent again is inspected then. Its first bytes are found to be HTTP behind this. Of what was HTTP and is
// parsed no further nothing is missed: a frame of it would be dropped, and sent again, for nothing.
bool Inspection::drops_unseen(const flow::Flow& flow) {
  if (!is_late()) return false;
  if (leaves_hits()) return true;
  if (quiet_) read_facts();
  if (subject_.packet.payload.empty() || !conversations_.may_parse_http(flow, subject_.direction)) return false;
  if ((flow.user & FlowMark::http) == 0 && !looks_like_http(subject_.packet.payload)) return false;
  ++counters_.http_left;
  overload();
  return true;
}

// What was inspected of it has come before: a rule that holds there is told.
void Inspection::http_limited(flow::Flow& flow, flow::http::Limit) {
  tell_held();
  if (!drops_limited_) return;
  const AsIf as_if(*this, flow, subject_.direction);
  if (is_passed(flow)) return;
  subject_.judgement.drop = subject_.judgement.http_limit = true;
  flow.user |= FlowMark::dropped;
}

namespace {

constexpr std::uint64_t ticks_for_decoded = 4;  // 1.6 ns a byte

}  // namespace

// What is more than a frame may ever have is as a body beyond its limit; less is for want of time.
bool Inspection::decodes(flow::Flow& flow, std::uint64_t bytes) {
  if (!share_.time.limited()) return true;
  const AsIf as_if(*this, flow, subject_.direction);
  const std::uint64_t ticks = bytes * ticks_for_decoded;
  if (share_.decoding + ticks > most_decoding_) return false;
  if (share_.time.left() < ticks) {
    ++counters_.left;
    overload();
    keep_dropping(flow);
    return false;
  }
  share_.decoding += ticks;
  share_.time.spend(ticks);
  return true;
}

// The frames behind it have less.
void Inspection::decoded(flow::Flow&, std::uint64_t bytes) {
  if (!share_.time.limited()) return;
  const std::uint64_t ticks = bytes * ticks_for_decoded;
  share_.decoding += ticks;
  share_.time.spend(ticks);
}

// What is beyond the frame's allowance is part of what confirming may take. False: there was no time.
bool Inspection::search_buffer(Buffer buffer, std::string_view bytes, flow::http::Marks& marks) {
  const bool is_free = bytes.size() <= share_.allowance && (late_from_ == Lateness::never || rte_rdtsc() < late_from_);
  const auto count = is_free ? search(buffer, bytes) : search_in_time(buffer, bytes);
  if (is_free) share_.allowance -= bytes.size();
  const auto numbers = rules().detector().numbers(buffer);
  for (std::size_t f = 0; f < count.value_or(0); ++f) mark_found(marks, numbers[search_->found[f]]);
  return count.has_value();
}

// What is new of it, with what may belong to it before that.
void Inspection::search_body(BufferSet wanted, bool grows, flow::http::Message& message) {
  const std::string_view body = message.body_view();
  flow::http::Marks& marks = message.marks;
  const std::size_t known =
      std::min<std::size_t>(grows ? std::min(marks.body, message.body_shown) : marks.body, body.size());
  std::size_t done = body.size();
  wanted.for_each([&](Buffer buffer) {
    const std::size_t before = rules().detector().longest_pattern(buffer);
    std::size_t at = BufferSet(marks.searched).has(buffer) ? known : 0;
    while (at < body.size()) {
      const std::size_t begin = at - std::min(at, before);
      if (!search_buffer(buffer, body.substr(begin, at - begin + slice), marks)) break;
      at = std::min(at + slice, body.size());
    }
    done = std::min(done, at);
  });
  if (wanted.empty()) return;
  marks.searched |= wanted.bits();
  marks.body = static_cast<std::uint32_t>(done);
}

// Once each: a body may hold a pattern in every slice, and there is room for all of them.
void Inspection::list(std::uint32_t number) {
  char& bits = search_->listed[number / 8];
  const auto bit = static_cast<char>(1U << number % 8);
  if ((bits & bit) != 0) return;
  bits = static_cast<char>(bits | bit);
  search_->candidates.push_back(number);
}

void Inspection::mark_found(flow::http::Marks& marks, std::uint32_t number) {
  list(number);
  if (marks.lost) return;
  flow::Buffer& bits = marks.found_bits;
  if (bits.size() == 0) {
    const auto end = marks.found.begin() + marks.found_count;
    if (std::find(marks.found.begin(), end, number) != end) return;
    if (marks.found_count < marks.room) {
      marks.found[marks.found_count++] = number;
      return;
    }
    search_->no_bits.assign(rules().detector().number_count() / 8 + 1, '\0');
    marks.lost = !bits.append(conversations_.http_pool(), search_->no_bits);
    if (marks.lost) return;
    for (const std::uint32_t earlier : marks.found) bits.data()[earlier / 8] |= 1U << earlier % 8;
  }
  bits.data()[number / 8] |= 1U << number % 8;
}

void Inspection::add_found(const flow::http::Marks& marks) {
  const std::string_view bits = marks.found_bits.view();
  for (std::size_t byte = 0; byte < bits.size(); ++byte) {
    for (unsigned left = static_cast<std::uint8_t>(bits[byte]); left != 0; left &= left - 1) {
      list(static_cast<std::uint32_t>(byte * 8 + static_cast<unsigned>(std::countr_zero(left))));
    }
  }
  if (bits.empty()) std::for_each_n(marks.found.begin(), marks.found_count, [&](std::uint32_t one) { list(one); });
}

// The one that is inspected; of a piece of the stream, which the parser does not have yet, the one that it goes on
// with: the request that is not whole, or the only one that has no whole answer.
const flow::http::Transaction* Inspection::transaction_of(const flow::Extra* extra) const {
  if (transaction_ != nullptr || extra == nullptr || extra->http == nullptr) return transaction_;
  const flow::http::Connection& connection = *extra->http;
  if (subject_.direction == flow::Direction::to_server) return connection.sides[0].current;
  return connection.waiting == 1 ? connection.first : nullptr;
}

// Those that are held came first.
void Inspection::tell(const Alert& alert) {
  if (holds_alerts_ && held_alerts_.size() < held_alerts_.capacity()) {
    held_alerts_.push_back(alert);
  } else {
    tell_held();
    sink_.alert(alert);
  }
}

void Inspection::tell_all_held() {
  for (const Alert& alert : held_alerts_) sink_.alert(alert);
  held_alerts_.clear();
}

}  // namespace sluice::function
