#include "function/inspect/http_search.h"

#include <rte_cycles.h>

#include <algorithm>
#include <bit>

#include "function/inspect/http_buffers.h"

namespace sluice::function {
namespace {

using match::Buffer;
using match::Buffers;
using match::BufferSet;
using match::Point;

constexpr BufferSet bodies = match::http_bodies;
// Those of a request wherever a rule looks at them; others are of the message that the point is of.
constexpr BufferSet of_request{Buffer::http_uri,          Buffer::http_raw_uri,      Buffer::http_method,
                               Buffer::http_request_line, Buffer::http_request_body, Buffer::http_user_agent,
                               Buffer::http_host,         Buffer::http_raw_host,     Buffer::http_referer,
                               Buffer::http_accept,       Buffer::http_accept_enc,   Buffer::http_accept_lang};
constexpr std::size_t slice = 16384;  // of a body, searched in one go

}  // namespace

flow::http::Marks& HttpSearch::marks_of(flow::http::Message& message) {
  flow::http::Marks& marks = message.marks;
  const std::uint64_t generation = env_.rules().generation();
  if (marks.rules != generation) marks.clear(env_.conversations.http_pool());
  if (marks.lost) marks.searched = marks.body = marks.confirmed = 0;
  marks.rules = generation;
  return marks;
}

void HttpSearch::begin_again(flow::http::Message& message) {
  flow::http::Marks& marks = marks_of(message);
  marks.searched = (BufferSet(marks.searched) & bodies).bits();
}

std::size_t HttpSearch::search(PacketContext& context, Point point, bool grows, flow::http::Transaction& transaction,
                               Buffers& buffers, std::string& text) {
  std::vector<std::uint32_t>& all = env_.search->prefilter_matches;
  all.clear();
  const BufferSet searched = env_.detector().searched(point);
  const bool response = point >= Point::response_headers;
  flow::http::Message& own = response ? transaction.response : transaction.request;
  const auto search_in = [&](BufferSet wanted, flow::http::Message& message) {
    if (wanted.empty()) return;
    flow::http::Marks& marks = marks_of(message);
    const BufferSet left = wanted.without(bodies).without(BufferSet(marks.searched));
    if (!left.empty()) set_http_buffers(buffers, point, transaction, left, text);
    left.for_each([&](Buffer buffer) {
      const auto bytes = buffers[buffer];
      const bool is_done = bytes ? search_buffer(context, buffer, *bytes, marks) : message.headers_done;
      if (is_done) marks.searched |= BufferSet{buffer}.bits();
    });
    search_body(context, wanted & bodies, grows && &message == &own, message);
    add_found(marks);
  };
  search_in(searched & of_request, transaction.request);
  search_in(searched.without(of_request), own);
  for (const std::uint32_t number : all) env_.search->listed[number / 8] = 0;
  std::sort(all.begin(), all.end());
  std::copy(all.begin(), all.end(), env_.search->found.begin());
  return all.size();
}

// False: there was no time.
bool HttpSearch::search_buffer(PacketContext& context, Buffer buffer, std::string_view bytes,
                               flow::http::Marks& marks) {
  std::size_t& allowance = context.budget.allowance;
  const std::uint64_t late_from = env_.limits.late_from;
  const bool is_free = bytes.size() <= allowance && (late_from == Lateness::never || rte_rdtsc() < late_from);
  const auto count =
      is_free ? search_.in_buffer(context, buffer, bytes) : search_.in_buffer_in_time(context, buffer, bytes);
  if (is_free) allowance -= bytes.size();
  const auto numbers = env_.detector().numbers(buffer);
  for (std::size_t f = 0; f < count.value_or(0); ++f) mark_found(marks, numbers[env_.search->found[f]]);
  return count.has_value();
}

// What is new of it, with what may belong to it before that.
void HttpSearch::search_body(PacketContext& context, BufferSet wanted, bool grows, flow::http::Message& message) {
  const std::string_view body = message.body_view();
  flow::http::Marks& marks = message.marks;
  const std::size_t known =
      std::min<std::size_t>(grows ? std::min(marks.body, message.body_shown) : marks.body, body.size());
  std::size_t done = body.size();
  wanted.for_each([&](Buffer buffer) {
    const std::size_t before = env_.detector().longest_pattern(buffer);
    std::size_t at = BufferSet(marks.searched).has(buffer) ? known : 0;
    while (at < body.size()) {
      const std::size_t begin = at - std::min(at, before);
      if (!search_buffer(context, buffer, body.substr(begin, at - begin + slice), marks)) break;
      at = std::min(at + slice, body.size());
    }
    done = std::min(done, at);
  });
  if (wanted.empty()) return;
  marks.searched |= wanted.bits();
  marks.body = static_cast<std::uint32_t>(done);
}

// Once each: a body may hold a pattern in every slice, and there is capacity for all of them.
void HttpSearch::list(std::uint32_t number) {
  char& bits = env_.search->listed[number / 8];
  const auto bit = static_cast<char>(1U << number % 8);
  if ((bits & bit) != 0) return;
  bits = static_cast<char>(bits | bit);
  env_.search->prefilter_matches.push_back(number);
}

void HttpSearch::mark_found(flow::http::Marks& marks, std::uint32_t number) {
  list(number);
  if (marks.lost) return;
  flow::Buffer& bits = marks.found_bits;
  if (bits.size() == 0) {
    const auto end = marks.found.begin() + marks.found_count;
    if (std::find(marks.found.begin(), end, number) != end) return;
    if (marks.found_count < marks.capacity) {
      marks.found[marks.found_count++] = number;
      return;
    }
    env_.search->no_bits.assign(env_.detector().number_count() / 8 + 1, '\0');
    marks.lost = !bits.append(env_.conversations.http_pool(), env_.search->no_bits);
    if (marks.lost) return;
    for (const std::uint32_t earlier : marks.found) bits.data()[earlier / 8] |= 1U << earlier % 8;
  }
  bits.data()[number / 8] |= 1U << number % 8;
}

void HttpSearch::add_found(const flow::http::Marks& marks) {
  const std::string_view bits = marks.found_bits.view();
  for (std::size_t byte = 0; byte < bits.size(); ++byte) {
    for (unsigned left = static_cast<std::uint8_t>(bits[byte]); left != 0; left &= left - 1) {
      list(static_cast<std::uint32_t>(byte * 8 + static_cast<unsigned>(std::countr_zero(left))));
    }
  }
  if (bits.empty()) std::for_each_n(marks.found.begin(), marks.found_count, [&](std::uint32_t one) { list(one); });
}

}  // namespace sluice::function
