#include "control/pcapng_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace sluice::control {
namespace {

TEST(PcapngBlock, IsWholeAndFilledUp) {
  const std::array<std::uint8_t, 5> bytes = {1, 2, 3, 4, 5};
  const std::string text = PcapngBlock(pcapng::packet).word(7).bytes(bytes).option(pcapng::comment, "ab").text();
  ASSERT_EQ(text.size(), 8U + 4 + 8 + 8 + 4 + 4);
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, text.data() + at, sizeof value);
    return value;
  };
  EXPECT_EQ(word(0), pcapng::packet);
  EXPECT_EQ(word(4), text.size());
  EXPECT_EQ(word(8), 7U);
  EXPECT_EQ(text.substr(12, 8), std::string("\1\2\3\4\5\0\0\0", 8));
  EXPECT_EQ(text.substr(20, 8), std::string("\1\0\2\0ab\0\0", 8));
  EXPECT_EQ(word(28), 0U) << "the end of the options";
  EXPECT_EQ(word(32), text.size());
  EXPECT_EQ(PcapngBlock(1).text().size(), 12U) << "no options, no end of them";
}

}  // namespace
}  // namespace sluice::control
