#include "base/units.h"

#include <gtest/gtest.h>

#include "base/spelling.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsAreReadAndPrinted) {
  struct Case {
    const char* text;
    std::chrono::nanoseconds value;
  };
  for (const Case& c :
       {Case{"250us", 250us}, {"1ms", 1ms}, {"2s", 2s}, {"7ns", 7ns}, {"1.5ms", 1500us}, {"0.25us", 250ns}}) {
    EXPECT_EQ(parse_duration(c.text), c.value) << c.text;
    EXPECT_EQ(parse_duration(duration_text(c.value)), c.value) << c.text;
  }
  EXPECT_EQ(duration_text(1500us), "1.5ms");
  EXPECT_EQ(duration_text(250ns), "250ns");
  EXPECT_EQ(duration_text(0ns), "0ns");
  for (const char* bad :
       {"", "1", "ms", "-1ms", "+1ms", "1 ms", "1ms ", "0x1ms", "1e3ms", "nan", "infs", "1m", "8640001s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Units, SizesAreReadAndPrinted) {
  struct Case {
    const char* text;
    std::uint64_t value;
  };
  for (const Case& c :
       {Case{"0", 0}, {"1", 1}, {"4K", 4096}, {"512M", 512ULL << 20}, {"2G", 2ULL << 30}, {"1T", 1ULL << 40}}) {
    EXPECT_EQ(parse_bytes(c.text), c.value) << c.text;
    EXPECT_EQ(bytes_text(c.value), c.text);
  }
  for (const char* bad : {"", "M", "-1", "1.5M", "1MB", "1 M", "1m", "9223372036854775808", "8388608T"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Spelling, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("cycle", "cycle"), 0U);
  EXPECT_EQ(edit_distance("cycle", ""), 5U);
  EXPECT_EQ(edit_distance("cycel", "cycle"), 1U);
  EXPECT_EQ(edit_distance("cycles", "cycle"), 1U);
  EXPECT_EQ(edit_distance("bitch", "batch"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Spelling, HintNamesTheClosestOrAll) {
  EXPECT_EQ(spelling_hint("prot", {"port", "route"}), "; did you mean \"port\"?");
  EXPECT_EQ(spelling_hint("deadlin", {"device", "deadline"}), "; did you mean \"deadline\"?");
  EXPECT_EQ(spelling_hint("abcd", {"port", "route"}), "; known are port, route");
  EXPECT_EQ(spelling_hint("abcd", {}), "");
  EXPECT_EQ(spelling_hint(std::string(1000, 'a'), {"port"}), "; known are port");
}

TEST(Units, OneThingIsNoPlural) {
  EXPECT_EQ(counted_text(0, "lane"), "0 lanes");
  EXPECT_EQ(counted_text(1, "lane"), "1 lane");
  EXPECT_EQ(counted_text(12, "lane"), "12 lanes");
}

}  // namespace
}  // namespace sluice
