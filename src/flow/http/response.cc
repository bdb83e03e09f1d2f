// Responses: their first line or what comes in its place, what their headers mean.
#include <charconv>

#include "flow/http/connection.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::size_t longest_junk = 4096;  // without a line end: taken as a body

bool begins_status(std::string_view text) {
  return same_name(text.substr(0, 4), "http");
}

// "HTTP" in any case behind white space.
bool is_status(std::string_view line) {
  return begins_status(trim_front(line));
}

// VERSION SP STATUS SP REASON.
void split_status_line(std::string_view line, Transaction& transaction) {
  std::string_view rest = trim_front(line);
  set_piece(take_word(rest), line, transaction.rversion_at, transaction.rversion_size);
  const std::string_view status = take_word(rest);
  set_piece(status, line, transaction.status_at, transaction.status_size);
  set_piece(trim(rest), line, transaction.reason_at, transaction.reason_size);
  int number = 0;
  const auto result = std::from_chars(status.begin(), status.end(), number);
  transaction.status_number = result.ec == std::errc() && result.ptr == status.end() ? number : 0;
}

// Or nobody knows. Where it did not ask for another protocol, clients read on behind a 101 as behind any 1xx.
bool may_upgrade(const Message& request) {
  return request.flags.missing || request.flags.fields_truncated || !request.field(FieldName::upgrade).empty();
}

// With a length or chunks, which are forbidden there (RFC 9110 section 9.3.6), or with a 204, it is of a server that
// takes CONNECT for a method like others, or a careless proxy's: what the client sends next shows it.
bool accepts_connect(const Transaction& transaction) {
  return transaction.is_connect && transaction.status_number >= 200 && transaction.status_number < 300;
}

}  // namespace

// One without a request, of which a response has come that is not the last.
bool Parser::is_being_answered(const Transaction& transaction) {
  return transaction.request.flags.missing && !transaction.response.complete;
}

// The transaction that this response belongs to; nullptr: there is no capacity for one.
Transaction* Parser::begin_response(Connection& connection) {
  let_go(connection);
  Transaction* transaction = connection.first;
  const bool goes_on = transaction != nullptr && is_being_answered(*transaction);
  const bool is_owed = !goes_on && connection.owed.size() != 0;
  if (transaction == nullptr || transaction->response.complete || is_owed) {
    transaction = make(connection, true);
    if (transaction == nullptr) {
      return nullptr;
    }
    transaction->request.flags.missing = true;
    transaction->request.complete = true;
  }
  if (is_owed) {
    const auto owed = static_cast<Owed>(connection.owed.view().front());
    connection.owed.drop_front(pool_, sizeof owed);
    transaction->is_head = owed == Owed::head;
    transaction->is_connect = owed == Owed::connect;
  }
  connection.sides[1].current = transaction;
  return transaction;
}

void Parser::status_line(Connection& connection, const Line& line) {
  Side& side = connection.sides[1];
  side.after_lf_cr = line.whole.ends_with("\n\r");
  Transaction* const transaction = begin_response(connection);
  if (transaction == nullptr || !keep_raw(connection, transaction->response, line.whole)) {
    return;
  }
  connection.answered = true;
  side.framing = {};
  Message& response = transaction->response;
  response.flags.bare_line_end = !line.crlf;
  response.flags.junk_before = side.junk;
  side.junk = false;
  response.line_size = static_cast<std::uint32_t>(line.text.size());
  response.headers_at = static_cast<std::uint32_t>(line.whole.size());
  drop_pending(side, line.whole.size());
  split_status_line(response.line(), *transaction);
  side.phase = Phase::header_lines;
  event(connection, Event::response_line, *transaction);
}

// A line where a status line should be, if it is none: skipped, or the beginning of a body. False: more is needed.
bool Parser::not_a_status(Connection& connection, const Line& line) {
  Side& side = connection.sides[1];
  const std::string_view pending = side.pending.view();
  const bool whole_known = !line.whole.empty();
  if (!whole_known) {
    side.word.skip(pending, is_padding);
    if (pending.size() > longest_junk && !begins_status(pending.substr(side.word.begin))) {
      body_without_status(connection);
      return true;
    }
    return false;
  }
  if (is_status(line.text)) {
    status_line(connection, line);
    return true;
  }
  const bool blank = trim(line.text).empty();
  if (!blank && line.whole.size() <= longest_junk) {
    if (line.whole.size() == pending.size() && !side.closed) {
      return false;
    }
  }
  const bool h_follows = pending.substr(line.whole.size(), 1) == "H";
  if (blank || (h_follows && line.whole.size() <= longest_junk)) {
    side.junk = side.junk || !blank;
    drop_pending(side, line.whole.size());
    return true;
  }
  body_without_status(connection);
  return true;
}

// What waits is body: of the response before, whose length was too small, or of one in HTTP/0.9.
void Parser::body_without_status(Connection& connection) {
  Side& side = connection.sides[1];
  side.scanned = 0;
  if (connection.retained != nullptr) {
    side.current = connection.retained;
    connection.retained = nullptr;
    side.current->response.complete = false;
    side.current->response.flags.unexpected_body = true;
  } else {
    Transaction* const transaction = begin_response(connection);
    if (transaction == nullptr) {
      return;
    }
    connection.answered_otherwise = true;
    transaction->response.flags.http_0_9 = true;
  }
  side.phase = Phase::body_to_close;
}

void Parser::response_headers(Connection& connection) {
  Side& side = connection.sides[1];
  Transaction& transaction = *side.current;
  const int status = transaction.status_number;
  event(connection, Event::response_headers, transaction);
  const bool upgrades = status == 101 && may_upgrade(transaction.request);
  const bool says_body = side.framing.has_length || side.framing.has_transfer || status == 204;
  if (upgrades || (accepts_connect(transaction) && !says_body)) {
    transaction.response.complete = true;
    side.current = nullptr;
    event(connection, Event::response_complete, transaction);
    stop(connection, status == 101 ? StopReason::upgrade : StopReason::tunnel);
    return;
  }
  if (status >= 100 && status < 200) {
    ++transaction.interim;
    transaction.response.clear(pool_);
    transaction.rversion_at = transaction.rversion_size = transaction.status_at = transaction.status_size = 0;
    transaction.reason_at = transaction.reason_size = 0;
    side.current = nullptr;
    side.phase = Phase::first_line;
    return;
  }
  begin_body(connection, Direction::to_client);
  if (side.phase == Phase::first_line || transaction.is_head) {
    side.decoder.clear(pool_);
    response_done(connection);
  } else if (status == 204 || status == 304) {
    const bool declared = side.phase != Phase::body_to_close;
    side.phase = Phase::perhaps_body;
    if (!declared) {
      side.decoder.clear(pool_);
      response_done(connection);
    }
  }
}

// Behind the headers of a response that should have no body, but declares one: it has, unless another response
// follows. False: more is needed.
bool Parser::perhaps_body(Connection& connection) {
  Side& side = connection.sides[1];
  constexpr std::string_view next = "HTTP/";
  const std::string_view pending = side.pending.view();
  const bool none = pending.empty() && side.closed;
  if (none || (pending.size() >= next.size() && pending.starts_with(next))) {
    side.decoder.clear(pool_);
    response_done(connection);
    return true;
  }
  if (pending.empty() || (next.starts_with(pending) && !side.closed)) {
    return false;
  }
  begin_body(connection, Direction::to_client);
  return true;
}

void Parser::response_done(Connection& connection) {
  Side& side = connection.sides[1];
  Transaction& transaction = *side.current;
  transaction.response.complete = true;
  side.current = nullptr;
  side.phase = Phase::first_line;
  event(connection, Event::response_complete, transaction);
  if (transaction.request.complete) {
    retain(connection, transaction);
  }
  const bool waits = transaction.is_connect && connection.sides[0].phase == Phase::connect_wait;
  if (waits && connection.stopped == StopReason::none) {
    connection.sides[0].phase = accepts_connect(transaction) ? Phase::detect : Phase::first_line;
    run(connection, Direction::to_server, {});
  }
}

}  // namespace sluice::flow::http
