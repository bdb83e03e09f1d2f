#include "match/confirm/digits.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

namespace sluice::match {
namespace {

// C's, on a copy that ends in NUL.
std::optional<std::pair<std::uint64_t, std::size_t>> as_c_reads(const std::string& text, int base) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, base);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return std::pair(value, static_cast<std::size_t>(end - text.c_str()));
}

std::optional<std::pair<std::uint64_t, std::size_t>> as_read(std::string_view text, int base) {
  const auto digits = number_of_digits(text, base);
  return digits ? std::optional(std::pair(digits->value, digits->size)) : std::nullopt;
}

TEST(Digits, AreReadAsCDoes) {
  using namespace std::string_literals;
  for (const std::string& text : {""s,
                                  "0"s,
                                  "7"s,
                                  "08"s,
                                  "0x"s,
                                  "0X"s,
                                  "0xg"s,
                                  "0x1A"s,
                                  "0X1a"s,
                                  "x1"s,
                                  "001a"s,
                                  "12ab"s,
                                  "  42 "s,
                                  "\t\r\n\v\f9"s,
                                  " "s,
                                  "-"s,
                                  "+"s,
                                  "-1"s,
                                  "+5"s,
                                  "+-5"s,
                                  "- 5"s,
                                  "-0x10"s,
                                  "18446744073709551615"s,
                                  "18446744073709551616"s,
                                  "99999999999999999999999"s,
                                  "-99999999999999999999999"s,
                                  "ffffffffffffffff"s,
                                  "10000000000000000"s,
                                  "1\0002"s,
                                  "\0001"s,
                                  "1777777777777777777777"s,
                                  "2000000000000000000000"s,
                                  "00000000000000000000001"s}) {
    for (const int base : {0, 8, 10, 16}) {
      EXPECT_EQ(as_read(text, base), as_c_reads(text, base)) << testing::PrintToString(text) << ' ' << base;
    }
  }
  std::mt19937 random(7);
  const std::string bytes = "0123456789abfgxX+- \t\0"s;
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 24, '0');
    for (char& c : text) c = bytes[random() % bytes.size()];
    for (const int base : {0, 8, 10, 16}) {
      ASSERT_EQ(as_read(text, base), as_c_reads(text, base)) << testing::PrintToString(text) << ' ' << base;
    }
  }
}

TEST(Digits, EndWhereTheBytesDo) {
  EXPECT_EQ(as_read(std::string_view("1234").substr(0, 2), 10), std::pair(std::uint64_t{12}, std::size_t{2}));
  EXPECT_EQ(as_read(std::string_view("0x1").substr(0, 2), 16), std::pair(std::uint64_t{0}, std::size_t{1}));
}

}  // namespace
}  // namespace sluice::match
