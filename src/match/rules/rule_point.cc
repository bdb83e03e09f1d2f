#include "match/rules/rule_point.h"

#include <algorithm>

#include "match/rules/check_facts.h"

namespace sluice::match {
namespace {

Point point_of_one_message(Buffer buffer) {
  switch (buffer) {
    case Buffer::http_uri:
    case Buffer::http_raw_uri:
    case Buffer::http_method:
    case Buffer::http_request_line:
      return Point::request_line;
    case Buffer::http_user_agent:
    case Buffer::http_host:
    case Buffer::http_raw_host:
    case Buffer::http_referer:
    case Buffer::http_accept:
    case Buffer::http_accept_enc:
    case Buffer::http_accept_lang:
      return Point::request_headers;
    case Buffer::http_request_body:
      return Point::request_body;
    case Buffer::http_stat_code:
    case Buffer::http_stat_msg:
    case Buffer::http_location:
    case Buffer::http_server:
    case Buffer::http_response_line:
      return Point::response_headers;
    case Buffer::http_response_body:
      return Point::response_body;
    default:
      return Point::packet;
  }
}

bool is_of_both_headers(Buffer buffer) {
  switch (buffer) {
    case Buffer::http_header:
    case Buffer::http_raw_header:
    case Buffer::http_cookie:
    case Buffer::http_connection:
    case Buffer::http_content_type:
    case Buffer::http_content_len:
    case Buffer::http_protocol:
    case Buffer::http_start:
    case Buffer::http_header_names:
      return true;
    default:
      return false;
  }
}

// Of the checks, with what both messages have taken to be the request's, or the response's.
Point last_point(const Rule& rule, FlowDirection direction) {
  Point last = Point::packet;
  for (const Check& check : rule.checks) last = std::max(last, point_of(buffer_of(check), direction));
  return last;
}

}  // namespace

bool is_of_http(Buffer buffer) {
  return point_of(buffer, FlowDirection::to_server) != Point::packet;
}

Point point_of(Buffer buffer, FlowDirection direction) {
  const bool headers = is_of_both_headers(buffer), body = buffer == Buffer::file_data;
  if (!headers && !body) return point_of_one_message(buffer);
  switch (direction) {
    case FlowDirection::to_server:
      return headers ? Point::request_headers : Point::request_body;
    case FlowDirection::to_client:
      return headers ? Point::response_headers : Point::response_body;
    default:
      return Point::packet;
  }
}

Point point_of(const Rule& rule) {
  if (rule.flow.direction != FlowDirection::any) return last_point(rule, rule.flow.direction);
  // What one of them alone has decides.
  const Point of_one = last_point(rule, FlowDirection::any);
  const bool has_file = std::any_of(rule.checks.begin(), rule.checks.end(),
                                    [](const Check& check) { return buffer_of(check) == Buffer::file_data; });
  const bool response = is_of_response(of_one) || (of_one == Point::packet && has_file);
  return last_point(rule, response ? FlowDirection::to_client : FlowDirection::to_server);
}

std::optional<Point> other_point_of(const Rule& rule) {
  if (rule.flow.direction != FlowDirection::any || last_point(rule, FlowDirection::any) != Point::packet) return {};
  const Point response = last_point(rule, FlowDirection::to_client);
  if (response == Point::packet) return {};
  const Point request = last_point(rule, FlowDirection::to_server);
  return point_of(rule) == request ? response : request;
}

}  // namespace sluice::match
