#include "function/inspect/http_buffers.h"

#include <utility>

namespace sluice::function {
namespace {

using flow::http::FieldName;
using flow::http::Message;
using flow::http::Transaction;
using match::Buffer;
using match::Buffers;

// Those that are wanted.
class Wanted {
 public:
  Wanted(Buffers& buffers, match::BufferSet wanted) : buffers_(buffers), wanted_(wanted) {}

  bool has(Buffer buffer) const { return wanted_.has(buffer); }
  void set(Buffer buffer, std::string_view bytes) {
    if (has(buffer)) buffers_.set(buffer, bytes);
  }
  // One without a value is there.
  void set_field(Buffer buffer, const Message& message, FieldName name) {
    if (has(buffer) && message.has(name)) set(buffer, message.field(name));
  }
  // What may be absent as a whole, as a body: nothing of it holds then, a negated check neither.
  void set_any(Buffer buffer, std::string_view bytes) {
    if (!bytes.empty()) set(buffer, bytes);
  }

 private:
  Buffers& buffers_;
  const match::BufferSet wanted_;
};

// http.header_names: "\r\nName\r\nName\r\n\r\n". http.start: the line and the headers.
void set_made_up(Wanted& buffers, const Message& message, std::string& text) {
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
  if (message.field_count() != 0) text += "\r\n";
  if (message.field_count() != 0) buffers.set(Buffer::http_header_names, std::string_view(text).substr(0, names));
  buffers.set(Buffer::http_start, std::string_view(text).substr(names));
}

void set_of_either(Wanted& buffers, const Message& message, bool request, std::string& text) {
  buffers.set_any(Buffer::http_header, message.headers());
  // Of a request without a version the line that ends its headers is none of it.
  if (!message.flags.http_0_9 || message.field_count() != 0)
    buffers.set(Buffer::http_raw_header, message.headers_raw());
  buffers.set_field(Buffer::http_cookie, message, request ? FieldName::cookie : FieldName::set_cookie);
  buffers.set_field(Buffer::http_connection, message, FieldName::connection);
  buffers.set_field(Buffer::http_content_type, message, FieldName::content_type);
  buffers.set_field(Buffer::http_content_len, message, FieldName::content_length);
  if (buffers.has(Buffer::http_header_names) || buffers.has(Buffer::http_start)) set_made_up(buffers, message, text);
}

void set_request(Wanted& buffers, const Transaction& transaction) {
  buffers.set(Buffer::http_method, transaction.method());
  buffers.set(Buffer::http_uri, transaction.uri());
  buffers.set(Buffer::http_raw_uri, transaction.uri_raw());
  buffers.set(Buffer::http_request_line, transaction.request.line());
  buffers.set_any(Buffer::http_host, transaction.host());  // of an empty Host there is no name
  for (const auto& [buffer, name] :
       {std::pair{Buffer::http_raw_host, FieldName::host}, std::pair{Buffer::http_user_agent, FieldName::user_agent},
        std::pair{Buffer::http_referer, FieldName::referer}, std::pair{Buffer::http_accept, FieldName::accept},
        std::pair{Buffer::http_accept_enc, FieldName::accept_encoding},
        std::pair{Buffer::http_accept_lang, FieldName::accept_language}}) {
    buffers.set_field(buffer, transaction.request, name);
  }
}

void set_response(Wanted& buffers, const Transaction& transaction) {
  buffers.set(Buffer::http_stat_code, transaction.status());
  buffers.set_any(Buffer::http_stat_msg, transaction.status_message());
  buffers.set(Buffer::http_response_line, transaction.response.line());
  buffers.set(Buffer::http_protocol, transaction.response_version());
  buffers.set_field(Buffer::http_location, transaction.response, FieldName::location);
  buffers.set_field(Buffer::http_server, transaction.response, FieldName::server);
}

}  // namespace

void set_http_buffers(match::Buffers& all, match::Point point, const Transaction& transaction, match::BufferSet wanted,
                      std::string& text) {
  Wanted buffers(all, wanted);
  const bool response = point >= match::Point::response_headers;
  if (!transaction.request.flags.missing) {
    set_request(buffers, transaction);
    buffers.set_any(Buffer::http_protocol, transaction.version());
    if (point >= match::Point::request_body)
      buffers.set_any(Buffer::http_request_body, transaction.request.body_view());
  }
  if (response) set_response(buffers, transaction);
  const Message& own = response ? transaction.response : transaction.request;
  if (point == match::Point::request_line) return;
  set_of_either(buffers, own, !response, text);
  if (point == match::Point::response_body) buffers.set_any(Buffer::http_response_body, own.body_view());
  if (point == match::Point::response_body || point == match::Point::request_body) {
    buffers.set_any(Buffer::file_data, own.body_view());
  }
}

}  // namespace sluice::function
