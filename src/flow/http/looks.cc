#include "flow/http/looks.h"

#include <algorithm>
#include <array>

namespace sluice::flow::http {
namespace {

constexpr std::size_t longest_line = 16U << 10;  // a first one that is waited for

constexpr std::array<std::string_view, 17> methods = {"GET",   "POST",    "HEAD",  "PUT",      "DELETE",    "OPTIONS",
                                                      "TRACE", "CONNECT", "PATCH", "PROPFIND", "PROPPATCH", "MKCOL",
                                                      "COPY",  "MOVE",    "LOCK",  "UNLOCK",   "REPORT"};

constexpr std::string_view http2 = "PRI ";

constexpr bool is_blank(char c) {
  return is_space(c) && c != '\n' && c != '\r';
}

// Of what stands behind a method that is not known, if it is no other protocol's.
Looks looks_like_target(std::string_view target) {
  target = target.substr(0, 4);
  if (target.starts_with('/') || target.starts_with("* ")) {
    return Looks::http;
  }
  constexpr std::string_view scheme = "http";
  if (target != "*" && !same_name(target, scheme.substr(0, target.size()))) {
    return Looks::unlikely;
  }
  return target.size() == scheme.size() ? Looks::http : Looks::open;
}

}  // namespace

bool ends_in_version(std::string_view line) {
  constexpr std::string_view name = "http/";
  constexpr std::size_t longest = name.size() + 8;
  line = trim(line);
  // Also behind what is white space to some servers alone.
  for (std::size_t size = 1; size <= longest && size < line.size(); ++size) {
    const std::string_view end = line.substr(line.size() - size);
    if (is_space(end.front())) {
      return false;
    }
    if (size > name.size() && same_name(end.substr(0, name.size()), name)) {
      return true;
    }
  }
  return false;
}

bool is_known_method(std::string_view method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

Looks looks_like_request(std::string_view bytes, Word& word) {
  if (!word.skip(bytes, is_space)) {
    return Looks::open;
  }
  word.read(bytes, is_token);
  std::string_view line;
  const bool is_whole = word.read_line(bytes, line);
  // Of a longer line what is behind does not count, however the bytes were cut.
  const bool is_long = line.size() > longest_line;
  bytes = bytes.substr(word.begin, longest_line);
  const std::size_t end = std::min<std::size_t>(word.end - word.begin, bytes.size());
  Looks looks = end == bytes.size() ? Looks::open : Looks::unlikely;
  if (end != 0 && end < bytes.size() && is_blank(bytes[end])) {
    const bool is_known = is_known_method(bytes.substr(0, end)) || bytes.starts_with(http2);
    looks = is_known ? Looks::http : looks_like_target(bytes.substr(end + 1));
  }
  if (looks == Looks::http || !(is_whole || is_long)) {
    return looks;
  }
  return !is_long && ends_in_version(line) ? Looks::http : Looks::other;
}

ProxyHeader proxy_header(std::string_view bytes) {
  constexpr std::size_t longest = 107;
  for (const std::string_view first : {"PROXY TCP4 ", "PROXY TCP6 ", "PROXY UNKNOWN"}) {
    const std::size_t lf = bytes.starts_with(first) ? bytes.substr(0, longest).find('\n') : std::string_view::npos;
    if (lf != std::string_view::npos) {
      return {Looks::http, lf + 1};
    }
  }
  constexpr std::string_view signature("\0\r\nQUIT\n", 8);  // behind two line ends
  if (!bytes.starts_with(signature.substr(0, bytes.size()))) {
    return {};
  }
  constexpr std::size_t fixed = signature.size() + 4;  // version, family, length
  if (bytes.size() < fixed) {
    return {Looks::open};
  }
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
  const std::size_t size = fixed + (std::size_t{byte(fixed - 2)} << 8 | byte(fixed - 1));
  return {size > longest_line ? Looks::other : bytes.size() < size ? Looks::open : Looks::http, size};
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
