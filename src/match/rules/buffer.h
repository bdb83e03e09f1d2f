// The parts of traffic that a rule's payload check may look at, and the names that rules call them by.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::match {

// payload: that of the packet, or the reassembled stream (for tcp-pkt rules the packet's only).
// file_data: bodies of HTTP messages, transfer and content encoding undone: of responses, to the server of requests
// (rule_point.h). http_header: the header lines of a request or response, normalised; http_raw_header: as sent.
// base64_data: what the rule's base64_decode made.
enum class Buffer : std::uint8_t {
  payload,
  file_data,
  base64_data,
  http_uri,
  http_raw_uri,
  http_method,
  http_header,
  http_raw_header,
  http_cookie,
  http_request_body,
  http_response_body,
  http_stat_code,
  http_stat_msg,
  http_user_agent,
  http_host,
  http_raw_host,
  http_referer,
  http_accept,
  http_accept_enc,
  http_accept_lang,
  http_connection,
  http_content_type,
  http_content_len,
  http_location,
  http_server,
  http_protocol,
  http_request_line,
  http_response_line,
  http_start,
  http_header_names,
  ipv4_header,
  ipv6_header,
  tcp_header,
  udp_header,
  icmpv4_header,
  icmpv6_header
};

// One name of a buffer. A modifier stands after a content and moves that one; a sticky name stands before the checks
// that look at it, until the next one.
struct BufferName {
  std::string_view name;
  Buffer buffer;
  bool sticky;
};

// The one table of names, by which options and pcre's flags find buffers; the first name of each buffer is its main
// one.
std::span<const BufferName> buffer_names();
const BufferName* find_buffer(std::string_view name);
std::string_view name_of(Buffer buffer);

}  // namespace sluice::match
