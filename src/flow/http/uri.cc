#include "flow/http/uri.h"

#include <algorithm>

#include "flow/http/best_fit.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::string_view none;

// Behind "scheme://", or npos: `uri` is not absolute.
std::size_t authority_begin(std::string_view uri) {
  const std::size_t at = uri.find("://");
  if (at == std::string_view::npos || at == 0) {
    return std::string_view::npos;
  }
  for (const char c : uri.substr(0, at)) {
    const char small = lower(c);
    if ((small < 'a' || small > 'z') && !is_digit(c) && c != '+' && c != '-' && c != '.') {
      return std::string_view::npos;
    }
  }
  return at + 3;
}

// What begins with no slash begins with a scheme, up to a colon, whatever it is made of; only a scheme has an
// authority.
std::string_view without_authority(std::string_view uri) {
  const std::size_t colon = uri.starts_with('/') ? std::string_view::npos : uri.find(':');
  if (colon == std::string_view::npos) {
    return uri;
  }
  uri.remove_prefix(colon + 1);
  if (uri.size() < 3 || !uri.starts_with("//") || uri[2] == '/') {
    return uri;
  }
  const std::size_t end = uri.find_first_of("/?#", 2);
  return end == std::string_view::npos ? none : uri.substr(end);
}

// -1: the `digits` characters at `at` are not all hexadecimal.
int hex_number(std::string_view text, std::size_t at, unsigned digits) {
  if (at + digits > text.size()) {
    return -1;
  }
  int value = 0;
  for (unsigned i = 0; i < digits; ++i) {
    const int digit = hex_value(text[at + i]);
    if (digit < 0) {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

// The next character of the path or the fragment, decoded; `at` moves behind it.
char next_of(std::string_view path, std::size_t& at) {
  const char c = path[at++];
  if (c != '%') {
    return c;
  }
  if (at < path.size() && lower(path[at]) == 'u') {
    const int code = hex_number(path, at + 1, 4);
    if (code >= 0) {
      at += 5;
      return best_fit(static_cast<std::uint32_t>(code));
    }
    return c;
  }
  const int code = hex_number(path, at, 2);
  if (code < 0) {
    return c;
  }
  at += 2;
  return static_cast<char>(code);
}

std::size_t decode_path(std::string_view path, char* out) {
  std::size_t size = 0;
  for (std::size_t at = 0; at < path.size();) {
    char c = next_of(path, at);
    c = c == '\\' ? '/' : c;
    if (c == '/' && size != 0 && out[size - 1] == '/') {
      continue;
    }
    out[size++] = c;
  }
  return size;
}

// RFC 3986 section 5.2.4, in place, as libhtp has it: the slash before a "." or ".." that ends the path, or whose slash
// does, goes with it.
std::size_t remove_dots(char* path, std::size_t size) {
  std::size_t to = 0;
  bool slash = false;  // before `at`
  for (std::size_t at = 0; at < size;) {
    if (!slash && path[at] == '/') {
      slash = true;
      ++at;
    }
    const std::size_t end = at + std::min(std::string_view(path + at, size - at).find('/'), size - at);
    const std::string_view segment(path + at, end - at);
    if (segment == "." || segment == "..") {
      if (slash && segment == "..") {
        while (to > 0 && path[--to] != '/') {
        }
      }
      at = end + 1;
      continue;
    }
    if (slash) {
      path[to++] = '/';
    }
    while (at < end) {
      path[to++] = path[at++];
    }
    slash = false;
  }
  return to;
}

std::size_t decode_query(std::string_view query, char* out) {
  std::size_t size = 0;
  for (std::size_t at = 0; at < query.size(); ++at) {
    const int code = query[at] == '%' ? hex_number(query, at + 1, 2) : -1;
    out[size++] = code < 0 ? query[at] : static_cast<char>(code);
    at += code < 0 ? 0 : 2;
  }
  return size;
}

std::size_t decode_fragment(std::string_view fragment, char* out) {
  std::size_t size = 0;
  for (std::size_t at = 0; at < fragment.size();) {
    out[size++] = next_of(fragment, at);
  }
  return size;
}

}  // namespace

std::size_t normalise_uri(std::string_view uri, char* out) {
  uri = without_authority(uri);
  const std::size_t sharp = std::min(uri.find('#'), uri.size());
  const std::string_view fragment = uri.substr(sharp);  // many servers know none
  uri = uri.substr(0, sharp);
  const std::size_t question = uri.find('?');
  std::size_t size = decode_path(uri.substr(0, question), out);
  size = remove_dots(out, fit_utf8(out, size));
  if (question != std::string_view::npos) {
    out[size++] = '?';
    size += decode_query(uri.substr(question + 1), out + size);
  }
  return size + decode_fragment(fragment, out + size);
}

std::string_view host_of_authority(std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    authority.remove_prefix(at + 1);
  }
  if (!authority.empty() && authority.front() == '[') {  // IPv6
    const std::size_t end = authority.find(']');
    return end == std::string_view::npos ? authority : authority.substr(0, end + 1);
  }
  return trim(authority.substr(0, authority.find(':')));
}

std::string_view host_of_uri(std::string_view uri) {
  const std::size_t begin = authority_begin(uri);
  if (begin == std::string_view::npos) {
    return none;
  }
  uri.remove_prefix(begin);
  return host_of_authority(uri.substr(0, uri.find_first_of("/?#\\")));
}

}  // namespace sluice::flow::http
