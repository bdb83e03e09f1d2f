// Whether a TCP connection is HTTP/1, from the first bytes of a side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flow/http/text.h"

namespace sluice::flow::http {

enum class Looks : std::uint8_t {
  http,
  other,
  open,      // more bytes will show
  unlikely,  // as open; but the end of the line alone can make it HTTP
};

// A client's, behind white space: a method and white space; of one that is not known: a token, white space and "/", "*"
// or "http"; else a line that ends in HTTP's version, whatever stands before that, for servers answer many of these and
// read on. The preface of HTTP/2 looks so, too. `word`: as the last call with these bytes, or fewer, has left it; new
// at first.
Looks looks_like_request(std::string_view bytes, Word& word);
Looks looks_like_response(std::string_view bytes);

// What a load balancer puts before the client's bytes (the PROXY protocol of HAProxy, versions 1 and 2), behind white
// space: how long it is, and whether it is there.
struct ProxyHeader {
  Looks looks = Looks::other;  // http: it is, and of this size
  std::size_t size = 0;
};
ProxyHeader proxy_header(std::string_view bytes);

// A line that has something and then "HTTP/1.1", or another version, at its end.
bool ends_in_version(std::string_view line);
// One of the methods that are known by name.
bool is_known_method(std::string_view method);

// Whether a client's first bytes are HTTP/2's preface and SETTINGS, as far as there are some (RFC 9113 sections 3.4 and
// 6.5), and whether a server's are the SETTINGS that it answers them with.
bool may_begin_http2(std::string_view bytes);
bool may_answer_http2(std::string_view bytes);
inline constexpr std::size_t http2_answer_size = 9;  // more does not count

// Either one's, of HTTP/1, as far as one packet shows.
bool looks_like_http(std::string_view bytes);

}  // namespace sluice::flow::http
