#include "bench/match_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace sluice::cli::bench {
namespace {

class MatchPatterns : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = testing::TempDir() + "patterns.hex";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(MatchPatterns, AreReadFromAFile) {
  const auto patterns = read_patterns(file("# two\n\n2e2E2f nocase\n00ff  # binary\n"));
  ASSERT_TRUE(patterns) << patterns.error().message;
  ASSERT_EQ(patterns->size(), 2u);
  EXPECT_EQ((*patterns)[0].bytes, "../");
  EXPECT_TRUE((*patterns)[0].nocase);
  EXPECT_EQ((*patterns)[1].bytes, std::string("\0\xff", 2));
  EXPECT_FALSE((*patterns)[1].nocase);
}

TEST_F(MatchPatterns, AreTheBestOnesOfRules) {
  const std::string path = testing::TempDir() + "patterns.rules";
  std::ofstream(path) << "alert tcp any any -> any any (content:\"a longer one\"; content:\"b\"; sid:1;)\n"
                         "# alert tcp any any -> any any (content:\"Folded\"; nocase; sid:2;)\n"
                         "alert tcp any any -> any 80 (content:\"a longer one\"; sid:3;)\n";
  const auto choice = choose_patterns(path);
  ASSERT_TRUE(choice) << choice.error().message;
  ASSERT_EQ(choice->patterns.size(), 2u);
  EXPECT_EQ(choice->patterns[0].bytes, "a longer one");
  EXPECT_TRUE(choice->patterns[1].nocase);
  EXPECT_EQ(choice->name, "patterns.rules");
  EXPECT_EQ(choice->shortest(), 6u);  // "b" is no rule's best
  std::ofstream(path) << "alert tcp any any -> any any (dsize:3; sid:1;)\n";
  EXPECT_FALSE(choose_patterns(path));
}

TEST_F(MatchPatterns, AMistakeHasItsLine) {
  for (const char* text : {"abc\n", "2e\nxy\n", "2e Nocase\n", "2e 2f\n"}) {
    const auto patterns = read_patterns(file(text));
    ASSERT_FALSE(patterns) << text;
    EXPECT_THAT(patterns.error().message, testing::ContainsRegex("patterns.hex:[12]: a pattern is pairs")) << text;
  }
  EXPECT_THAT(read_patterns(file("# none\n")).error().message, testing::HasSubstr("holds no pattern"));
  EXPECT_FALSE(read_patterns("/no/such/file"));
}

TEST_F(MatchPatterns, MadeUpOnesAreTheSameEachTimeAndDifferFromOneAnother) {
  const auto once = make_patterns(3000), again = make_patterns(3000);
  std::set<std::string> distinct;
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].bytes, again[i].bytes);
    EXPECT_GE(once[i].bytes.size(), 3u);
    distinct.insert(once[i].bytes);
  }
  EXPECT_EQ(distinct.size(), 3000u);
}

}  // namespace
}  // namespace sluice::cli::bench
