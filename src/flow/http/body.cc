// Bodies: how long they are, chunks, content codings.
#include <algorithm>

#include "flow/http/connection.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::uint64_t largest_chunk = 0x7fffffffffffffff;  // as clients that count in 64 bits

// How many bytes more a body takes whose limit is that; 0: the largest block.
std::size_t capacity_in(const Buffer& body, std::uint32_t limit) {
  const std::size_t most = limit == 0 ? BlockPool::largest : std::min<std::size_t>(limit, BlockPool::largest);
  return most - std::min(most, body.size());
}

}  // namespace

// Appends decoded bytes to a message's body, up to its limit.
class Parser::BodyAppender final : public ContentSink {
 public:
  BodyAppender(Parser& parser, Connection& connection, Direction direction)
      : parser_(parser),
        connection_(connection),
        message_(direction == Direction::to_server
                     ? connection.sides[static_cast<unsigned>(direction)].current->request
                     : connection.sides[static_cast<unsigned>(direction)].current->response),
        limit_(direction == Direction::to_server ? parser.settings_.request_body_limit
                                                 : parser.settings_.response_body_limit) {}
  bool content(std::string_view bytes) override {
    const std::size_t capacity = capacity_in(message_.body, limit_);
    if (!message_.flags.body_lost && !message_.body.append(parser_.pool_, bytes.substr(0, capacity))) {
      message_.flags.body_lost = true;
    }
    message_.flags.body_truncated = message_.flags.body_truncated || bytes.size() > capacity;
    return !message_.flags.body_lost && !message_.flags.body_truncated;
  }
  void again() override {
    message_.body.cut(0);
    message_.body_shown = 0;
    message_.marks.body = 0;  // of what has been searched nothing is left
    began_again_ = true;
  }
  bool affords(std::uint64_t made) override {
    const std::uint64_t free = std::min(made, parser_.free_decoding_);
    parser_.free_decoding_ -= free;
    return free == made || parser_.sink_.decodes(connection_, made - free);
  }
  void wasted(std::uint64_t made) override {
    const std::uint64_t free = std::min(made, parser_.free_decoding_);
    parser_.free_decoding_ -= free;
    if (free != made) parser_.sink_.decoded(connection_, made - free);
  }
  // How much of the body, which had `before` bytes, is as it was.
  std::size_t kept_of(std::size_t before) const { return began_again_ ? 0 : before; }

 private:
  Parser& parser_;
  Connection& connection_;
  Message& message_;
  std::uint32_t limit_;
  bool began_again_ = false;
};

// What the headers say about the body; the phase it begins in, first_line when there is none.
void Parser::begin_body(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  Message& message = request ? side.current->request : side.current->response;
  const Framing& framing = side.framing;
  message.flags.length_invalid = framing.length_invalid;
  message.flags.length_conflict = framing.length_conflict || (framing.chunked && framing.has_length);
  side.left = 0;
  if (framing.chunked) {
    side.phase = Phase::chunk_size;
  } else if (framing.sized) {
    side.left = framing.length;
    side.phase = side.left == 0 ? Phase::first_line : Phase::body_fixed;
  } else {
    side.phase = request ? Phase::first_line : Phase::body_to_close;
  }
  if (side.phase != Phase::first_line) {
    side.decoder.begin(pool_, framing.codings(), request ? settings_.request_layers : settings_.response_layers,
                       settings_.decoded_limit, request ? settings_.request_body_limit : settings_.response_body_limit);
  }
}

// How many of `bytes`, at least one, belonged to the body.
std::size_t Parser::take_body(Connection& connection, Direction direction, std::string_view bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  if (side.phase == Phase::body_to_close) {
    add_body(connection, direction, bytes);
    return bytes.size();
  }
  const std::size_t count = std::min<std::uint64_t>(side.left, bytes.size());
  side.left -= count;
  add_body(connection, direction, bytes.substr(0, count));
  if (side.left == 0) {
    if (side.phase == Phase::chunk_data) {
      side.phase = Phase::chunk_size;
    } else {
      end_body(connection, direction);
    }
  }
  return count;
}

void Parser::add_body(Connection& connection, Direction direction, std::string_view bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  Message& message = request ? side.current->request : side.current->response;
  const bool first = message.body_wire == 0;
  message.body_wire += bytes.size();
  if (request && side.decoder.active()) keep_coded(side, message, bytes);
  if (message.flags.body_truncated || message.flags.body_lost) {
    report_lost(connection, message.flags.body_lost);
    return;
  }
  const std::size_t before = message.body.size();
  BodyAppender appender(*this, connection, direction);
  if (side.decoder.active()) {
    side.decoder.decode(pool_, bytes, appender);
  } else {
    appender.content(bytes);
  }
  const bool too_many = first && side.decoder.flags().too_many;
  body_event(connection, direction, appender.kept_of(before), false);
  if (too_many) {
    exceed(connection, Limit::codings);
  }
  report_lost(connection, message.flags.body_lost || side.decoder.flags().no_memory);
}

// Of a body, for want of memory.
void Parser::report_lost(Connection& connection, bool lost) {
  if (lost && !connection.limited) {
    exceed(connection, Limit::memory);
  }
}

// As much of it as a body may be.
void Parser::keep_coded(Side& side, Message& message, std::string_view bytes) {
  const std::string_view kept = bytes.substr(0, capacity_in(side.coded, settings_.request_body_limit));
  if (!side.coded.append(pool_, kept)) message.flags.body_lost = true;
}

// The request's body as it came, for servers that decode none, in place of what it was decoded to.
void Parser::show_coded(Connection& connection, Side& side, Message& message) {
  const bool same = side.coded.view() == message.body_view();
  if (!same && side.coded.size() != 0) {
    message.body.cut(0);
    message.marks.body = 0;
    if (!message.body.append(pool_, side.coded.view())) message.flags.body_lost = true;
    message.flags.body_truncated = message.flags.body_truncated || side.coded.size() < message.body_wire;
    body_event(connection, Direction::to_server, 0, message.flags.body_truncated);
  }
  side.coded.clear(pool_);
}

void Parser::body_event(Connection& connection, Direction direction, std::size_t before, bool truncated_before) {
  const bool request = direction == Direction::to_server;
  Transaction& transaction = *connection.sides[static_cast<unsigned>(direction)].current;
  Message& message = request ? transaction.request : transaction.response;
  if (message.body.size() != before || message.flags.body_truncated != truncated_before) {
    message.body_shown = static_cast<std::uint32_t>(before);
    event(connection, request ? Event::request_body : Event::response_body, transaction);
  }
}

void Parser::end_body(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  Message& message = request ? side.current->request : side.current->response;
  if (side.decoder.active()) {
    const std::size_t before = message.body.size();
    const bool truncated_before = message.flags.body_truncated;
    BodyAppender appender(*this, connection, direction);
    side.decoder.finish(pool_, appender);
    message.decoding = side.decoder.flags();
    body_event(connection, direction, appender.kept_of(before), truncated_before);
    if (request) show_coded(connection, side, message);
  } else if (!message.flags.unexpected_body) {  // which is what comes behind one that was decoded
    message.decoding = side.decoder.flags();
  }
  side.decoder.clear(pool_);
  const DecodeFlags decoding = message.body_wire != 0 ? message.decoding : DecodeFlags{};
  counters_.bombs += decoding.bomb ? 1 : 0;
  counters_.bodies_truncated += message.flags.body_truncated ? 1 : 0;
  const bool is_lost = message.flags.body_lost || decoding.no_memory;
  counters_.bodies_lost += is_lost ? 1 : 0;
  counters_.bodies_undecoded += decoding.too_many || decoding.unread ? 1 : 0;
  side.left = 0;
  if (request) {
    request_done(connection);
  } else {
    response_done(connection);
  }
  report_lost(connection, is_lost);
}

// Whether what stands around a chunk's size, from `from` on to the line's end, if it has come, leaves no doubt of it.
// In requests that is the line's end before it, behind another chunk, and what RFC 9112 section 7.1 has behind it. In
// responses clients take any white space and anything; but 0x8 and 0_8 are no end to all of them.
bool Parser::is_plain_size(Side& side, Direction direction, std::size_t from, std::size_t end) {
  const std::string_view pending = side.pending.view();
  const Word& word = side.word;
  if (word.begin == pending.size()) {
    return true;
  }
  if (direction == Direction::to_client) {
    return side.left != 0 || word.end == pending.size() || is_space(pending[word.end]) || pending[word.end] == ';';
  }
  const Message& message = side.current->request;
  const bool is_first = message.body_wire == 0 && !message.flags.gap;
  if (pending.substr(0, word.begin) != (is_first ? "" : "\r\n")) {
    return false;
  }
  for (std::size_t at = from; at < std::min(end, pending.size()); ++at) {
    const char c = pending[at];
    side.chunk_extension = side.chunk_extension || c == ';';
    const bool ends = c == '\r' && (at + 1 == pending.size() || pending[at + 1] == '\n');
    if (!ends && (c == '\r' || !(side.chunk_extension || c == ' ' || c == '\t'))) {
      return false;
    }
  }
  return end == std::string_view::npos || pending[end - 1] == '\r';
}

// A line with a chunk's size: white space, hexadecimal digits, anything that is_plain_size() allows. `left` is the size
// of the digits so far. False: more is needed.
bool Parser::chunk_size(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const std::string_view pending = side.pending.view();
  Word& word = side.word;
  const bool blank = !word.skip(pending, is_space);
  const std::string_view fresh = pending.substr(word.end);
  word.read(pending, [](char c) { return hex_value(c) >= 0; });
  for (const char c : fresh.substr(0, word.end - (pending.size() - fresh.size()))) {
    const bool too_large = side.left > largest_chunk / 16;
    side.left = too_large ? largest_chunk + 1 : side.left * 16 + static_cast<unsigned>(hex_value(c));
  }
  const std::size_t from = std::max(side.scanned, word.end);
  const std::size_t end = pending.find('\n', from);
  const bool too_long = std::min(end, pending.size()) > settings_.header_limit;
  const bool is_size = (blank || word.begin != word.end) && side.left <= largest_chunk;
  if (too_long || !is_size || !is_plain_size(side, direction, from, end)) {
    bad_chunk(connection, direction, too_long ? Limit::header_line : Limit::chunk);
    return true;
  }
  side.scanned = static_cast<std::uint32_t>(pending.size() - (pending.ends_with('\r') ? 1 : 0));
  if (end == std::string_view::npos) {
    return false;
  }
  drop_pending(side, end + 1);
  side.phase = side.left == 0 ? Phase::trailer_lines : Phase::chunk_data;
  return true;
}

void Parser::bad_chunk(Connection& connection, Direction direction, Limit limit) {
  if (direction == Direction::to_server) {
    stop(connection, StopReason::bad_chunk, limit);
    return;
  }
  Side& side = connection.sides[1];
  ++counters_.bad_chunks;
  side.current->response.flags.bad_chunk = true;
  side.phase = Phase::body_to_close;
}

}  // namespace sluice::flow::http
