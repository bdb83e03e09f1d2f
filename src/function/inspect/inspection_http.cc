// What the core searches in HTTP's buffers.
#include <rte_cycles.h>

#include <algorithm>
#include <bit>

#include "function/inspect/http_buffers.h"
#include "function/inspect/inspection_as_if.h"

namespace sluice::function {

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

}  // namespace

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

// What is more than a frame may ever have is as a body beyond its limit; less is for want of time.
bool Inspection::decodes(flow::Flow& flow, std::uint64_t bytes) {
  constexpr std::uint64_t ticks_for_byte = 4;  // 1.6 ns
  if (!share_.time.limited()) return true;
  const AsIf as_if(*this, flow, subject_.direction);
  const std::uint64_t ticks = bytes * ticks_for_byte;
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
