#include "match/confirm/base64.h"

#include <cstdint>

namespace sluice::match {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

void base64_decode(std::string_view coded, std::string& out) {
  out.clear();
  std::uint32_t bits = 0;
  unsigned count = 0;  // of bits that are not out yet
  for (const char c : coded) {
    if (c == '\r' || c == '\n' || c == ' ' || c == '\t') continue;
    const int value = value_of(c);
    if (value < 0) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
}

}  // namespace sluice::match
