// The parser's frame: what a side does next, and how a connection ends. records.cc has what it takes place in.
#include <algorithm>
#include <array>
#include <utility>

#include "flow/http/connection.h"
#include "flow/http/looks.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::size_t slice = 2048;  // of a segment, looked at in one go while lines are read

bool in_body(Phase phase) {
  return phase == Phase::body_fixed || phase == Phase::body_to_close || phase == Phase::chunk_data;
}

bool begins_known_request(std::string_view line) {
  line = trim_front(line);
  return is_known_method(take_word(line));
}

// Whether a CR that is no line's end to the parser, and is to some servers, stands in a line of a request, or in what
// has come of it; of that, `known` bytes have been looked at. In a first line, behind a method or a version alone: what
// stands there may be no request's.
bool has_lone_cr(std::string_view line, std::size_t known, bool first) {
  for (std::size_t at = line.find('\r', known - std::min<std::size_t>(known, 1)); at != std::string_view::npos;
       at = line.find('\r', at + 1)) {
    if (at + 1 < line.size() && line[at + 1] != '\n' &&
        (!first || ends_in_version(line.substr(0, at)) || begins_known_request(line))) {
      return true;
    }
  }
  return false;
}

// A client of HTTP/2 may send 64 KiB of bodies before it hears of its server (RFC 9113 section 6.9.2).
constexpr std::size_t before_http2 = 96U << 10;

}  // namespace

const char* stop_reason_name(StopReason reason) {
  static constexpr std::array<const char*, stop_reasons> names = {
      "none", "not_http",  "tunnel",    "upgrade", "http2",    "header_too_long",
      "gap",  "no_memory", "bad_chunk", "evicted", "set_aside"};
  return names[static_cast<unsigned>(reason)];
}

void Parser::event(Connection& connection, Event event, Transaction& transaction) {
  sink_.transaction(connection, event, transaction);
}

void Parser::data(Connection& connection, Direction direction, std::string_view bytes) {
  free_decoding_ += decoded_to * bytes.size();
  ++heard_;
  if (connection.stopped == StopReason::none && connection.established) {
    ensure_capacity(connection);
  } else if (connection.stopped == StopReason::none && !has_capacity_for_new()) {
    stop(connection, StopReason::no_memory);
  }
  run(connection, direction, bytes);
  delist(connection);
  enlist(connection);
}

std::size_t Parser::most_pending(const Side& side) const {
  const std::size_t most = settings_.header_limit;
  return slice + (side.phase == Phase::http2_wait ? std::max(most, before_http2) : most);
}

void Parser::run(Connection& connection, Direction direction, std::string_view bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  for (;;) {
    if (connection.stopped != StopReason::none || side.phase == Phase::ignore) {
      if (side.is_other && direction == Direction::to_server && connection.answered && !bytes.empty()) {
        exceed(connection, Limit::framing);  // to its server that was a request, and this is another
      }
      counters_.ignored_bytes += bytes.size() + side.pending.size();
      side.pending.clear(pool_);
      if (connection.stopped != StopReason::none) {
        release(connection);
      }
      return;
    }
    if (in_body(side.phase)) {
      const bool from_pending = side.pending.size() != 0;
      const std::string_view next = from_pending ? side.pending.view() : bytes;
      if (next.empty()) {
        return;
      }
      const std::size_t count = take_body(connection, direction, next);
      if (from_pending) {
        drop_pending(side, count);
      } else {
        bytes.remove_prefix(count);
      }
      continue;
    }
    if (step(connection, direction)) {
      continue;
    }
    if (bytes.empty()) {
      return;
    }
    if (side.pending.size() > most_pending(side)) {
      stop(connection, StopReason::header_too_long, Limit::header_line);
    } else if (!side.pending.append(pool_, bytes.substr(0, slice))) {
      Word word;
      const bool is_first =
          side.phase == Phase::detect && direction == Direction::to_server && side.pending.size() == 0;
      const Looks looks = is_first ? looks_like_request(bytes, word) : Looks::other;
      connection.asked |= looks == Looks::http || looks == Looks::open;  // is_http() sees what waits
      stop(connection, StopReason::no_memory);
    } else {
      bytes.remove_prefix(std::min(bytes.size(), slice));
    }
  }
}

// One step of a side that reads lines. False: more bytes are needed.
bool Parser::step(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  switch (side.phase) {
    case Phase::detect:
      return detect(connection, direction);
    case Phase::chunk_size:
      return side.pending.size() != 0 && chunk_size(connection, direction);
    case Phase::http2_wait:
      if (waits_for_http2(connection)) {
        return false;
      }
      side.phase = Phase::first_line;
      return true;
    case Phase::connect_wait:  // a request is one to a server that refuses, whatever the answer will be
      if (looks_like_request(side.pending.view(), side.word) != Looks::http) {
        return false;
      }
      side.word = {};
      side.phase = Phase::first_line;
      return true;
    case Phase::perhaps_body:
      return perhaps_body(connection);
    case Phase::first_line:
    case Phase::header_lines:
    case Phase::trailer_lines:
      return line_step(connection, direction);
    default:
      return false;
  }
}

bool Parser::line_step(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  Line line;
  const bool first = side.phase == Phase::first_line;
  const std::size_t known = side.scanned;
  const bool is_whole = next_line(side, direction, line);
  if (direction == Direction::to_server && !connection.limited) {
    const std::string_view come = is_whole ? line.whole : side.pending.view();
    if (has_lone_cr(come, known, first)) {
      exceed(connection, Limit::framing);
    }
  }
  if (!is_whole) {
    return first && direction == Direction::to_client && side.pending.size() != 0 && not_a_status(connection, line);
  }
  if (line.text.size() > settings_.header_limit) {
    stop(connection, StopReason::header_too_long, Limit::header_line);
  } else if (!first) {
    header_line(connection, direction, line);
  } else if (direction == Direction::to_server) {
    request_line(connection, line);
  } else {
    return not_a_status(connection, line);
  }
  return true;
}

// Of what waits: it has been parsed, and what follows it has not been looked at.
void Parser::drop_pending(Side& side, std::size_t count) {
  side.pending.drop_front(pool_, count);
  side.scanned = 0;
  side.word = {};
  side.chunk_extension = false;
}

// Whether this is HTTP at all. False: more bytes are needed.
bool Parser::detect(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  Side& other = connection.sides[static_cast<unsigned>(opposite(direction))];
  if (side.pending.size() == 0) {
    return false;
  }
  const bool client = direction == Direction::to_server;
  const std::string_view pending = side.pending.view();
  const std::size_t looked_at = side.word.begin;
  const Looks looks = client ? looks_like_request(pending, side.word) : looks_like_response(pending);
  if ((looks == Looks::open || looks == Looks::unlikely) && !side.closed) {
    const std::size_t line = pending.substr(looked_at).rfind('\n');
    if (client && side.word.begin == pending.size() && line != std::string_view::npos) {
      drop_pending(side, looked_at + line + 1);  // blank lines, however many
    }
    return false;
  }
  if (client && looks == Looks::other && !side.is_http) {
    const ProxyHeader header = proxy_header(pending.substr(side.word.begin));
    if (header.looks == Looks::open && !side.closed) {
      return false;
    }
    if (header.looks == Looks::http) {
      drop_pending(side, side.word.begin + header.size);
      return true;
    }
  }
  if (!client && other.phase == Phase::http2_wait) {
    if (may_answer_http2(pending)) {
      if (pending.size() < http2_answer_size && !side.closed) {
        return false;
      }
      stop(connection, StopReason::http2);
      return true;
    }
    connection.is_http1 = true;
    run(connection, Direction::to_server, {});
    if (connection.stopped != StopReason::none) {
      return true;
    }
  }
  if (looks == Looks::http || (!client && other.is_http)) {
    side.is_http = true;
    side.word = {};
    side.phase = Phase::first_line;
    return true;
  }
  if (client && side.is_http) {  // it was, up to a CONNECT
    stop(connection, StopReason::tunnel);
    return true;
  }
  side.is_other = true;
  side.phase = Phase::ignore;
  if (!client || other.is_other) {
    stop(connection, StopReason::not_http);
  }
  return true;
}

void Parser::gap(Connection& connection, Direction direction, std::uint64_t bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  if (connection.stopped != StopReason::none || side.phase == Phase::ignore) {
    return;
  }
  const bool counted = side.phase == Phase::body_fixed || side.phase == Phase::chunk_data;
  if (!in_body(side.phase) || (counted && bytes > side.left)) {
    stop(connection, StopReason::gap);
    return;
  }
  Message& message = direction == Direction::to_server ? side.current->request : side.current->response;
  message.flags.gap = true;
  if (side.decoder.active()) {
    side.decoder.abandon();
  }
  if (!counted) {
    return;
  }
  side.left -= bytes;
  if (side.left == 0 && side.phase == Phase::chunk_data) {
    side.phase = Phase::chunk_size;
  } else if (side.left == 0) {
    end_body(connection, direction);
  }
}

void Parser::closed(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  if (side.closed) {
    return;
  }
  side.closed = true;
  run(connection, direction, {});
  if (connection.stopped == StopReason::none) {
    end_of_side(connection, direction);
  }
}

// The side sends no more: what is open ends here.
void Parser::end_of_side(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  if (side.current != nullptr) {
    Message& message = request ? side.current->request : side.current->response;
    if (!message.headers_done && message.line_size != 0) {
      message.flags.incomplete = true;
      end_headers(connection, direction);
    }
  }
  if (side.current != nullptr && connection.stopped == StopReason::none) {
    Message& message = request ? side.current->request : side.current->response;
    message.flags.incomplete = message.flags.incomplete || side.phase != Phase::body_to_close;
    side.has_trailers ? end_trailers(connection, direction) : end_body(connection, direction);
  }
}

// What does not look like HTTP yet may, beyond the limit, be a request line, or blanks before one.
bool Parser::is_http(const Connection& connection) const {
  if (connection.answered) {
    return true;
  }
  if (connection.answered_otherwise) {
    return false;
  }
  const auto begins = [&](Direction direction) {
    const Side& side = connection.sides[static_cast<unsigned>(direction)];
    const std::string_view pending = side.pending.view();
    const bool at_line =
        side.phase == Phase::detect || side.phase == Phase::first_line || side.phase == Phase::http2_wait;
    if (pending.empty() || !at_line) {
      return false;
    }
    Word word;
    const Looks looks = direction == Direction::to_client ? looks_like_response(trim_front(pending))
                                                          : looks_like_request(pending, word);
    return looks == Looks::http || (looks == Looks::open && direction == Direction::to_server);
  };
  return connection.asked || begins(Direction::to_server) || begins(Direction::to_client);
}

// Unless it is another protocol's.
void Parser::exceed(Connection& connection, Limit limit) {
  if (is_http(connection)) {
    report_limit(connection, limit);
  }
}

void Parser::report_limit(Connection& connection, Limit limit) {
  if (std::exchange(connection.limited, true)) {
    return;
  }
  ++counters_.limited[static_cast<unsigned>(limit)];
  sink_.limited(connection, limit);
}

// What was not established is parsed when it is, where there was no memory for it.
void Parser::stop(Connection& connection, StopReason reason, Limit beyond) {
  const bool wants_memory = reason == StopReason::no_memory || reason == StopReason::evicted;
  if (beyond == Limit::none && wants_memory && connection.established) {
    beyond = Limit::memory;
  }
  const bool is_limited = beyond != Limit::none && is_http(connection);
  connection.stopped = reason;
  ++counters_.stopped[static_cast<unsigned>(reason)];
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    Side& side = connection.sides[static_cast<unsigned>(direction)];
    if (side.current != nullptr) {
      Message& message = direction == Direction::to_server ? side.current->request : side.current->response;
      message.flags.incomplete = true;
      end_body(connection, direction);
    }
    side.phase = Phase::ignore;
  }
  if (is_limited) {
    report_limit(connection, beyond);
  }
  sink_.stopped(connection, reason);
}

void Parser::close(Connection* connection) {
  if (connection == nullptr) {
    return;
  }
  closed(*connection, Direction::to_server);
  closed(*connection, Direction::to_client);
  abandon(connection);
}

}  // namespace sluice::flow::http
