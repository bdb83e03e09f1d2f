#include "match/automaton/byte_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "match/automaton/pattern.h"

namespace sluice::match {
namespace {

// Of all folded bytes, behind `before` if that is one.
double sum_of_shares(const std::string& before) {
  double sum = 0;
  for (int c = 0; c < 256; ++c) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (fold(byte) != byte) continue;
    sum += std::exp2(bits_of(before) - bits_of(before + static_cast<char>(byte)));
  }
  return sum;
}

TEST(BytePairs, TheTableHasAShareForEachClassAndTheSharesOfAllBytesMakeAWhole) {
  ASSERT_EQ(std::strlen(byte_pairs_first), byte_classes);
  for (const char* const row : byte_pairs_next) ASSERT_EQ(std::strlen(row), byte_classes);
  EXPECT_NEAR(sum_of_shares(""), 1, 0.1);
  for (int c = 0; c < 256; ++c) {
    const auto byte = static_cast<std::uint8_t>(c);
    EXPECT_LT(byte_class(byte), byte_classes) << c;
    EXPECT_NEAR(sum_of_shares(std::string(1, static_cast<char>(fold(byte)))), 1, 0.25) << c;
  }
}

TEST(BytePairs, WhatIsCommonInTrafficIsLessRare) {
  using namespace std::string_view_literals;
  for (const auto& [common, rare] : {std::pair{"the "sv, "qthx"sv},
                                     {"\0\0\0\0"sv, "\x13\x9a\0\x77"sv},
                                     {"\r\n\r\n"sv, "\n\r\n\r"sv},
                                     {"tion"sv, "zv%~"sv},
                                     {"=\"ht"sv, "\"=th"sv}}) {
    EXPECT_LT(bits_of(common), bits_of(rare)) << common << " " << rare;
  }
  EXPECT_EQ(bits_of(""), 0);
}

}  // namespace
}  // namespace sluice::match
