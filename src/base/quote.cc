#include "base/quote.h"

#include <algorithm>
#include <cstddef>

namespace sluice {
namespace {

constexpr std::size_t longest_quote = 60;

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text);
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

std::string in_quotes(std::string_view text) {
  return "'" + printable(text.substr(0, longest_quote)) + (text.size() > longest_quote ? "...'" : "'");
}

}  // namespace sluice
