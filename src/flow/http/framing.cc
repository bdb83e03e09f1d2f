#include "flow/http/framing.h"

#include <algorithm>
#include <charconv>

#include "flow/http/content_decoder.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

struct Length {
  bool operator==(const Length&) const = default;
  bool sized = false;
  bool plain = true;
  std::uint64_t number = 0;
};

// The first number in a Content-Length.
Length length_in(std::string_view text) {
  Length length;
  if (text.empty()) {
    return length;
  }
  const auto begin = std::find_if(text.begin(), text.end(), is_digit);
  const auto result = std::from_chars(begin, text.end(), length.number);
  length.sized = result.ec == std::errc();  // and not too large
  length.number = length.sized ? length.number : 0;
  length.plain = length.sized && begin == text.begin() && result.ptr == text.end();
  return length;
}

}  // namespace

void Framing::field(std::string_view name, std::string_view value) {
  if (same_name(name, "transfer-encoding")) {
    chunked = chunked || has_word(value, "chunked");
    codings += ContentDecoder::codings(value);
  } else if (same_name(name, "content-encoding")) {
    codings += ContentDecoder::codings(value);
  } else if (same_name(name, "content-length")) {
    const Length next = length_in(value);
    if (has_length) {
      length_conflict = length_conflict || next != Length{sized, !length_invalid, length};
      return;
    }
    has_length = true;
    sized = next.sized;
    length_invalid = !next.plain;
    length = next.number;
  }
}

}  // namespace sluice::flow::http
