// A number as text, read as C's strtoull reads it: blanks, a sign (of which - wraps), 0x before base 16, and digits up
// to the first byte that is none. Base 0: 0x means 16, 0 means 8, else 10. The bytes need no NUL behind them.
//
// Thread-safety: any thread. Cost: a few ns a byte; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::match {

struct Digits {
  std::uint64_t value = 0;
  std::size_t size = 0;  // bytes up to the end of the digits, blanks and sign before them included
};
// Nothing: there is no digit, or the number is too large. `base`: 0, 8, 10 or 16.
std::optional<Digits> number_of_digits(std::string_view text, int base);

}  // namespace sluice::match
