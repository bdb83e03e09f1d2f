#include "flow/http/looks.h"

#include <algorithm>
#include <array>

namespace sluice::flow::http {
namespace {

constexpr std::size_t longest_method = 2000;  // servers take any token

constexpr std::array<std::string_view, 17> methods = {"GET",   "POST",    "HEAD",  "PUT",      "DELETE",    "OPTIONS",
                                                      "TRACE", "CONNECT", "PATCH", "PROPFIND", "PROPPATCH", "MKCOL",
                                                      "COPY",  "MOVE",    "LOCK",  "UNLOCK",   "REPORT"};

constexpr bool is_blank(char c) {
  return c == '\r' || c == '\n' || c == ' ' || c == '\t';
}

constexpr std::string_view http2 = "PRI ";

}  // namespace

bool is_known_method(std::string_view method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

Looks looks_like_request(std::string_view bytes, Word& word) {
  if (!word.skip(bytes, is_blank)) {
    return Looks::open;
  }
  word.read(bytes, is_token);
  bytes.remove_prefix(word.begin);
  const std::size_t end = word.end - word.begin;
  if (end > longest_method) {
    return Looks::other;
  }
  if (end == bytes.size()) {
    return Looks::open;
  }
  if (end == 0 || (bytes[end] != ' ' && bytes[end] != '\t')) {
    return Looks::other;
  }
  if (is_known_method(bytes.substr(0, end)) || bytes.starts_with(http2)) {
    return Looks::http;
  }
  const std::string_view uri = bytes.substr(end + 1, 4);
  if (uri.starts_with('/') || uri.starts_with("* ")) {
    return Looks::http;
  }
  if (uri == "*") {
    return Looks::open;
  }
  constexpr std::string_view scheme = "http";
  if (!same_name(uri, scheme.substr(0, uri.size()))) {
    return Looks::other;
  }
  return uri.size() == scheme.size() ? Looks::http : Looks::open;
}

Looks looks_like_response(std::string_view bytes) {
  constexpr std::string_view start = "HTTP/";
  if (bytes.substr(0, start.size()) != start.substr(0, bytes.size())) {
    return Looks::other;
  }
  return bytes.size() >= start.size() ? Looks::http : Looks::open;
}

bool may_answer_http2(std::string_view bytes) {
  constexpr std::size_t length = 3;
  constexpr std::string_view rest("\4\0\0\0\0\0", http2_answer_size - length);  // type, flags, stream
  const std::string_view frame = bytes.substr(std::min(bytes.size(), length), rest.size());
  return frame == rest.substr(0, frame.size());
}

bool may_begin_http2(std::string_view bytes) {
  constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  return bytes.substr(0, preface.size()) == preface.substr(0, bytes.size()) &&
         may_answer_http2(bytes.substr(std::min(bytes.size(), preface.size())));
}

bool looks_like_http(std::string_view bytes) {
  Word word;
  const bool is_request = looks_like_request(bytes, word) == Looks::http;
  bytes.remove_prefix(word.begin);
  return is_request ? !bytes.starts_with(http2) : looks_like_response(bytes) == Looks::http;
}

}  // namespace sluice::flow::http
