// One HTTP message, request or response, with the pieces that rules look at. Views hold while the transaction lives and
// no further byte of it has been parsed.
//
// Trailers are headers, once all of them have come. Names as in Suricata's keywords:
//   line        http.request_line, http.response_line: without its line end
//   headers     http.header: "Name: value\r\n" each, in order of their first appearance; white space around name
//               and value removed, folded lines joined, fields of the same name merged with ", ". Without Cookie
//               (request) and Set-Cookie (response)
//   headers_raw http.header.raw: the bytes as they came, cookies and the empty line at the end included
//   cookie      http.cookie: value of Cookie, of Set-Cookie
//   field_name  http.header_names: the fields, cookies too, in order of their first appearance
//   field(n)    any other of field_name.h: http.user_agent, http.referer, …; empty when there is none, which has(n)
//               distinguishes from one without a value. One look into an index that is made with the fields, 28 bytes
//               of each message
//   body        http.request_body, http.response_body, file.data: dechunked and decoded, up to the body limit
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "flow/buffer.h"
#include "flow/http/content_decoder.h"
#include "flow/http/field_name.h"

namespace sluice::flow::http {

struct Field {
  std::uint32_t name_at, name_size, value_at, value_size;  // in Message::fields_text
};

struct MessageFlags {
  bool missing : 1 = false;           // there was none: a response without its request
  bool http_0_9 : 1 = false;          // request without version; response without status line
  bool body_truncated : 1 = false;    // at the body limit
  bool body_lost : 1 = false;         // for want of memory
  bool gap : 1 = false;               // bytes of the body are missing
  bool incomplete : 1 = false;        // the connection ended, or stopped, within it
  bool fields_truncated : 1 = false;  // more than max_headers
  bool length_conflict : 1 = false;   // several Content-Length that differ, or one beside chunked
  bool length_invalid : 1 = false;    // Content-Length is not just a number
  bool bad_chunk : 1 = false;         // declared chunked, but is not: the rest is taken as it is
  bool unexpected_body : 1 = false;   // bytes behind the end that begin no message, kept as its body
  bool junk_before : 1 = false;       // lines before the status line that are none
  bool folded : 1 = false;            // a header went over several lines
  bool bare_line_end : 1 = false;     // a line did not end in CR LF
};

// What who inspects a message remembers of it from event to event; of no meaning here. Cleared with the message.
struct Marks {
  static constexpr std::size_t capacity = 8;
  std::uint64_t rules = 0;                      // which ones the numbers are of; 0: there are none
  std::uint64_t searched = 0;                   // buffers, a bit each
  std::uint32_t body = 0;                       // bytes of the body that have been searched
  std::uint32_t confirmed = 0;                  // bytes of the body that all of what was found was confirmed with
  std::uint8_t found_count = 0;                 // in `found`; where there are more, all are in `found_bits`
  std::uint8_t held_count = 0;                  // at most `capacity`
  bool lost = false;                            // not all that was found is known
  std::array<std::uint32_t, capacity> found{};  // patterns
  std::array<std::uint32_t, capacity> held{};   // rules
  Buffer found_bits;                            // by pattern; empty: they are in `found`

  void clear(BlockPool& pool) {
    found_bits.clear(pool);
    rules = searched = 0;
    body = confirmed = 0;
    found_count = held_count = 0;
    lost = false;
  }
};

struct Message {
  Message() = default;

  std::string_view line() const { return raw.view(0, line_size); }
  std::string_view headers_raw() const { return raw.view(headers_at, headers_size); }
  std::string_view headers() const { return fields_text.view(0, plain_size); }
  std::string_view field(FieldName name) const;  // none before headers_done
  bool has(FieldName name) const { return known[static_cast<std::size_t>(name)] != 0; }
  std::string_view cookie(bool request) const { return field(request ? FieldName::cookie : FieldName::set_cookie); }
  std::string_view body_view() const { return body.view(); }
  // The bytes that the last body event brought. They begin at 0 again where the body was first taken for another coding
  // than it is in (content_decoder.h).
  std::string_view body_fresh() const { return body.view(body_shown, body.size()); }
  std::size_t field_count() const { return fields.size() / sizeof(Field); }
  Field field_at(std::size_t number) const;
  std::string_view field_name(std::size_t number) const;
  std::string_view field_value(std::size_t number) const;

  void clear(BlockPool& pool);

  Buffer raw;          // line and headers, as they came
  Buffer fields_text;  // `headers`, and behind them the cookies
  Buffer fields;       // Field each
  Buffer body;
  // Of each name 1 + its number in `fields`; 0: there is none.
  std::array<std::uint16_t, known_field_names> known{};
  std::uint32_t line_size = 0;
  std::uint32_t headers_at = 0;
  std::uint32_t headers_size = 0;
  std::uint32_t plain_size = 0;  // of `headers` in fields_text
  std::uint32_t body_shown = 0;  // before the last body event
  std::uint64_t body_wire = 0;   // bytes of body on the wire, dechunked
  MessageFlags flags;
  DecodeFlags decoding;
  bool headers_done = false;
  bool complete = false;
  Marks marks;
};

struct Transaction {
  std::uint64_t number = 0;  // in its connection, from 0
  Message request;
  Message response;

  // Request.
  std::string_view method() const { return request.raw.view(method_at, method_size); }     // http.method
  std::string_view uri_raw() const { return request.raw.view(uri_at, uri_size); }          // http.uri.raw
  std::string_view uri() const { return normal.view(0, normal_size); }                     // http.uri
  std::string_view version() const { return request.raw.view(version_at, version_size); }  // http.protocol
  std::string_view host() const { return normal.view(normal_size, host_size); }            // http.host: small, no port
  std::string_view host_raw() const { return request.field(FieldName::host); }             // http.host.raw
  // Response.
  std::string_view response_version() const { return response.raw.view(rversion_at, rversion_size); }
  std::string_view status() const { return response.raw.view(status_at, status_size); }          // http.stat_code
  std::string_view status_message() const { return response.raw.view(reason_at, reason_size); }  // http.stat_msg
  int status_number = 0;  // 0: none that is a number
  unsigned interim = 0;   // 1xx responses before the final one

  bool is_head = false;
  bool is_connect = false;

  Buffer normal;  // uri, then host
  std::uint32_t method_at = 0, method_size = 0, uri_at = 0, uri_size = 0, version_at = 0, version_size = 0;
  std::uint32_t normal_size = 0, host_size = 0;
  std::uint32_t rversion_at = 0, rversion_size = 0, status_at = 0, status_size = 0, reason_at = 0, reason_size = 0;
  Transaction* next = nullptr;

  void clear(BlockPool& pool);
};

}  // namespace sluice::flow::http
