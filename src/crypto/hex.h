// Vectors are written in hexadecimal digits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::crypto {

// `digits`: pairs of 0-9, a-f or A-F, spaces between pairs; for text in the program, not for input.
inline std::vector<std::uint8_t> from_hex(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < digits.size();) {
    if (digits[i] == ' ') {
      ++i;
      continue;
    }
    bytes.push_back(static_cast<std::uint8_t>(value(digits[i]) << 4 | value(digits[i + 1])));
    i += 2;
  }
  return bytes;
}

}  // namespace sluice::crypto
