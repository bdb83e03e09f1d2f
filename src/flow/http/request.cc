// Requests: their first line, what their headers mean.
#include <algorithm>
#include <array>

#include "flow/http/connection.h"
#include "flow/http/looks.h"
#include "flow/http/text.h"
#include "flow/http/uri.h"

namespace sluice::flow::http {

namespace {

// What follows the last white space of `text`, if it names HTTP: the version, whatever stands before it.
std::string_view version_at_end(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && !is_space(text[begin - 1])) {
    --begin;
  }
  const std::string_view word = trim_front(text.substr(begin));
  constexpr std::string_view name = "HTTP/";
  return word.size() >= name.size() && same_name(word.substr(0, name.size()), name) ? word : std::string_view();
}

// METHOD SP URI SP VERSION, with white space before and in any amount between (as libhtp's generic parser). The URI
// ends at the first blank, but for one that a version follows later: it is the whole of what stands before that.
void split_request_line(std::string_view line, Transaction& transaction) {
  std::string_view rest = trim_front(line);
  set_piece(take_word(rest), line, transaction.method_at, transaction.method_size);
  std::size_t end = rest.find(' ');
  if (end == std::string_view::npos) {
    end = 0;
    while (end < rest.size() && !is_space(rest[end])) {
      ++end;
    }
  }
  std::string_view uri = rest.substr(0, end);
  std::string_view version = trim(rest.substr(uri.size()));
  if (const std::string_view last = version_at_end(version); !last.empty() && last.size() != version.size()) {
    version = last;
    end = static_cast<std::size_t>(last.data() - rest.data());
    while (is_padding(rest[end - 1])) {
      --end;
    }
    uri = rest.substr(0, end);
  }
  set_piece(uri, line, transaction.uri_at, transaction.uri_size);
  if (!version.empty()) {
    set_piece(version, line, transaction.version_at, transaction.version_size);
  }
}

}  // namespace

// Where it may be HTTP/2, whether it is, the server says.
bool Parser::waits_for_http2(Connection& connection) {
  const bool first = connection.made == 0 && connection.sides[1].phase == Phase::detect;
  return first && !connection.is_http1 && may_begin_http2(connection.sides[0].pending.view());
}

void Parser::request_line(Connection& connection, const Line& line) {
  Side& side = connection.sides[0];
  if (trim(line.text).empty()) {  // between requests
    drop_pending(side, line.whole.size());
    return;
  }
  if (waits_for_http2(connection)) {
    side.phase = Phase::http2_wait;
    return;
  }
  Transaction* const transaction = make(connection, false);
  if (transaction == nullptr) {
    return;
  }
  side.current = transaction;
  side.framing = {};
  side.framing.line(line.crlf);
  Message& request = transaction->request;
  if (!keep_raw(connection, request, line.whole)) {
    return;
  }
  request.flags.bare_line_end = !line.crlf;
  request.line_size = static_cast<std::uint32_t>(line.text.size());
  request.headers_at = static_cast<std::uint32_t>(line.whole.size());
  drop_pending(side, line.whole.size());
  split_request_line(request.line(), *transaction);
  request.flags.http_0_9 = transaction->version_size == 0;
  transaction->is_head = transaction->method() == "HEAD";
  transaction->is_connect = transaction->method() == "CONNECT";
  connection.asked = connection.asked || is_known_method(transaction->method()) ||
                     same_name(transaction->version().substr(0, 5), "http/") || ends_in_version(request.line());
  // The line is in memory of the pool: as long again for what becomes of its URI.
  if (!transaction->normal.append(pool_, transaction->uri_raw())) {
    stop(connection, StopReason::no_memory);
    return;
  }
  auto* const out = reinterpret_cast<char*>(transaction->normal.data());
  // An authority has no path.
  const bool has_path = transaction->uri_size != 0 && !transaction->is_connect;
  transaction->normal_size = static_cast<std::uint32_t>(has_path ? normalise_uri(transaction->uri_raw(), out) : 0);
  transaction->normal.cut(transaction->normal_size);
  side.phase = Phase::header_lines;
  event(connection, Event::request_line, *transaction);
  // Some servers split a line at more than white space, and find another target in it.
  if (!std::ranges::all_of(transaction->method(), is_token)) {
    exceed(connection, Limit::framing);
  }
}

void Parser::request_headers(Connection& connection) {
  Side& side = connection.sides[0];
  Transaction& transaction = *side.current;
  std::string_view host = host_of_uri(transaction.uri_raw());
  if (host.empty()) {
    host = transaction.is_connect ? host_of_authority(transaction.uri_raw())
                                  : host_of_authority(transaction.request.field(FieldName::host));
  }
  std::array<char, 256> small;
  host = host.substr(0, small.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    small[i] = lower(host[i]);
  }
  if (!transaction.normal.append(pool_, {small.data(), host.size()})) {
    stop(connection, StopReason::no_memory);
    return;
  }
  transaction.host_size = static_cast<std::uint32_t>(host.size());
  event(connection, Event::request_headers, transaction);
  begin_body(connection, Direction::to_server);
  if (side.phase == Phase::first_line) {
    request_done(connection);
  }
}

void Parser::request_done(Connection& connection) {
  Side& side = connection.sides[0];
  Transaction& transaction = *side.current;
  transaction.request.complete = true;
  side.current = nullptr;
  side.phase = transaction.is_connect ? Phase::connect_wait : Phase::first_line;
  event(connection, Event::request_complete, transaction);
  if (transaction.response.complete) {
    retain(connection, transaction);
  }
}

}  // namespace sluice::flow::http
