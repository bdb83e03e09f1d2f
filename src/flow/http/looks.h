// Whether a TCP connection is HTTP/1, from the first bytes of a side.
#pragma once

#include <cstdint>
#include <string_view>

#include "flow/http/text.h"

namespace sluice::flow::http {

enum class Looks : std::uint8_t {
  http,
  other,
  open,  // more bytes will tell
};

// A client's, behind empty lines and blanks: a method and white space; of one that is not known: a token, a blank and
// "/", "*" or "http". The preface of HTTP/2 looks so, too. `word`: as the last call with these bytes, or fewer, has
// left it; new at first.
Looks looks_like_request(std::string_view bytes, Word& word);
Looks looks_like_response(std::string_view bytes);

// One of the methods that are known by name.
bool is_known_method(std::string_view method);

// Either one's, of HTTP/1, as far as one packet tells.
bool looks_like_http(std::string_view bytes);

}  // namespace sluice::flow::http
