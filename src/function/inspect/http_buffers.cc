#include "function/inspect/http_buffers.h"

#include <utility>

namespace sluice::function {
namespace {

using flow::http::Message;
using flow::http::Transaction;
using match::Buffer;
using match::Buffers;

void set_field(Buffers& buffers, Buffer buffer, const Message& message, std::string_view name) {
  if (const std::string_view value = message.field(name); !value.empty()) buffers.set(buffer, value);
}

// http.header_names: "\r\nName\r\nName\r\n\r\n". http.start: the line and the headers.
void set_made_up(Buffers& buffers, const Message& message, std::string& text) {
  text = "\r\n";
  for (std::size_t i = 0; i < message.field_count(); ++i) {
    text += message.field_name(i);
    text += "\r\n";
  }
  text += "\r\n";
  const std::size_t names = text.size();
  text += message.line();
  text += "\r\n";
  text += message.headers();
  text += "\r\n";
  buffers.set(Buffer::http_header_names, std::string_view(text).substr(0, names));
  buffers.set(Buffer::http_start, std::string_view(text).substr(names));
}

void set_of_either(Buffers& buffers, const Message& message, bool request, match::BufferSet looked_at,
                   std::string& text) {
  buffers.set(Buffer::http_header, message.headers());
  buffers.set(Buffer::http_raw_header, message.headers_raw());
  if (const std::string_view cookie = message.cookie(request); !cookie.empty()) {
    buffers.set(Buffer::http_cookie, cookie);
  }
  set_field(buffers, Buffer::http_connection, message, "connection");
  set_field(buffers, Buffer::http_content_type, message, "content-type");
  set_field(buffers, Buffer::http_content_len, message, "content-length");
  if (looked_at.has(Buffer::http_header_names) || looked_at.has(Buffer::http_start)) {
    set_made_up(buffers, message, text);
  }
}

void set_request(Buffers& buffers, const Transaction& transaction) {
  buffers.set(Buffer::http_method, transaction.method());
  buffers.set(Buffer::http_uri, transaction.uri());
  buffers.set(Buffer::http_raw_uri, transaction.uri_raw());
  buffers.set(Buffer::http_request_line, transaction.request.line());
  if (!transaction.host().empty()) buffers.set(Buffer::http_host, transaction.host());
  if (!transaction.host_raw().empty()) buffers.set(Buffer::http_raw_host, transaction.host_raw());
  for (const auto& [buffer, name] :
       {std::pair{Buffer::http_user_agent, "user-agent"}, std::pair{Buffer::http_referer, "referer"},
        std::pair{Buffer::http_accept, "accept"}, std::pair{Buffer::http_accept_enc, "accept-encoding"},
        std::pair{Buffer::http_accept_lang, "accept-language"}}) {
    set_field(buffers, buffer, transaction.request, name);
  }
}

void set_response(Buffers& buffers, const Transaction& transaction) {
  buffers.set(Buffer::http_stat_code, transaction.status());
  buffers.set(Buffer::http_stat_msg, transaction.status_message());
  buffers.set(Buffer::http_response_line, transaction.response.line());
  buffers.set(Buffer::http_protocol, transaction.response_version());
  set_field(buffers, Buffer::http_location, transaction.response, "location");
  set_field(buffers, Buffer::http_server, transaction.response, "server");
}

}  // namespace

void set_http_buffers(match::Buffers& buffers, match::Point point, const Transaction& transaction,
                      match::BufferSet looked_at, std::string& text) {
  const bool response = point >= match::Point::response_headers;
  if (!transaction.request.flags.missing) {
    set_request(buffers, transaction);
    buffers.set(Buffer::http_protocol, transaction.version());
    if (point >= match::Point::request_body) {
      buffers.set(Buffer::http_request_body, transaction.request.body_view());
    }
  }
  if (response) set_response(buffers, transaction);
  if (point == match::Point::request_line) return;
  set_of_either(buffers, response ? transaction.response : transaction.request, !response, looked_at, text);
  if (point == match::Point::response_body) {
    buffers.set(Buffer::http_response_body, transaction.response.body_view());
    buffers.set(Buffer::file_data, transaction.response.body_view());
  }
}

}  // namespace sluice::function
