#include "base/quote.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Quote, ShowsPrintableCharactersAndSixtyOfThemAtMost) {
  EXPECT_EQ(in_quotes("10.0.0.0/8"), "'10.0.0.0/8'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes(std::string_view("\x1b[2J\0\x80\xff\x7f~ a\n", 12)), "'?[2J????~ a?'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(1'000'000, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace sluice
