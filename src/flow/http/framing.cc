#include "flow/http/framing.h"

#include <algorithm>
#include <charconv>

#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::uint64_t largest_length = 0x7fffffffffffffff;  // as servers that count in 64 bits
constexpr std::string_view transfer_encoding = "transfer-encoding", content_length = "content-length";

struct Length {
  bool operator==(const Length&) const = default;
  bool sized = false;
  bool plain = false;
  std::uint64_t number = 0;
};

// The first number in a Content-Length.
Length length_in(std::string_view text) {
  Length length;
  const auto begin = std::find_if(text.begin(), text.end(), is_digit);
  const auto result = std::from_chars(begin, text.end(), length.number);
  length.sized = result.ec == std::errc();  // and not too large
  length.number = length.sized ? length.number : 0;
  length.plain = length.sized && begin == text.begin() && result.ptr == text.end();
  return length;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Without the white space that may stand around a value.
std::string_view without_blanks(std::string_view value) {
  while (!value.empty() && is_blank(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
  return value;
}

// No NULs or white space in it.
bool is_exactly(std::string_view text, std::string_view name) {
  return text.size() == name.size() && same_name(text, name);
}

}  // namespace

void Framing::field(std::string_view name, std::string_view value, bool folded) {
  const std::string_view plain = trim(name);
  if (same_name(plain, transfer_encoding)) {
    unclear = unclear || folded || has_transfer || !is_exactly(name, transfer_encoding) ||
              !is_exactly(without_blanks(value), "chunked");
    has_transfer = true;
    chunked = chunked || has_word(value, "chunked");
    transfer_codings.add(value, true);
  } else if (same_name(plain, "content-encoding")) {
    content_codings.add(value, false);
  } else if (same_name(plain, content_length)) {
    const Length next = length_in(trim(value));
    unclear = unclear || folded || !is_exactly(name, content_length) || next.number > largest_length ||
              !length_in(without_blanks(value)).plain;
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

Codings Framing::codings() const {
  return {content_codings.count + transfer_codings.count,
          static_cast<std::uint8_t>(content_codings.brotli << std::min(transfer_codings.count, 8U))};
}

void Framing::fold(std::string_view line) {
  const std::string_view name = trim(line.substr(0, line.find(':')));
  unclear = unclear || same_name(name, transfer_encoding) || same_name(name, content_length);
}

}  // namespace sluice::flow::http
