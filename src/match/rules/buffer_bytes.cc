#include "match/rules/buffer_bytes.h"

namespace sluice::match {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view blanks = " \t\n\v\f\r"sv;
constexpr std::string_view padding = " \t\n\v\f\r\0"sv;     // what stands around a value and does not belong to it
constexpr std::string_view after_merge = "\t\n\v\f\r\0"sv;  // "a, ": the second field of that name was empty
constexpr std::string_view line_end = "\n"sv;

}  // namespace

BytesNever bytes_never_in(Buffer buffer) {
  switch (buffer) {
    case Buffer::http_method:
      return {blanks, padding, {}};
    case Buffer::http_stat_code:
      return {blanks, {}, {}};
    case Buffer::http_stat_msg:
      return {line_end, padding, padding};
    case Buffer::http_protocol:
      return {line_end, padding, blanks};
    case Buffer::http_raw_uri:
      return {line_end, blanks, " "sv};
    case Buffer::http_request_line:
    case Buffer::http_response_line:
      return {line_end, {}, {}};
    case Buffer::http_content_len:  // of several the first
      return {line_end, padding, padding};
    case Buffer::http_cookie:
    case Buffer::http_user_agent:
    case Buffer::http_raw_host:
    case Buffer::http_referer:
    case Buffer::http_accept:
    case Buffer::http_accept_enc:
    case Buffer::http_accept_lang:
    case Buffer::http_connection:
    case Buffer::http_content_type:
    case Buffer::http_location:
    case Buffer::http_server:
      return {line_end, padding, after_merge};
    case Buffer::http_host:  // at 256 bytes it is cut, wherever that is
      return {line_end, padding, {}};
    default:
      return {};
  }
}

}  // namespace sluice::match
