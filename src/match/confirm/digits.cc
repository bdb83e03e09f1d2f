#include "match/confirm/digits.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice::match {
namespace {

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

std::optional<Digits> number_of_digits(std::string_view text, int base) {
  const char* const begin = text.data();
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool is_prefixed =
      text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && is_hex_digit(text[2]);
  if (is_prefixed && (base == 0 || base == 16)) {
    text.remove_prefix(2);
    base = 16;
  } else if (base == 0) {
    base = text.starts_with('0') ? 8 : 10;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  return Digits{negative ? 0 - value : value, static_cast<std::size_t>(end - begin)};
}

}  // namespace sluice::match
