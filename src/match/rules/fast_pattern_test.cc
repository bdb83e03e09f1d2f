#include "match/rules/fast_pattern.h"

#include <gtest/gtest.h>

#include "match/rules/rule_set.h"

namespace sluice::match {
namespace {

struct Choice {
  const char* options;
  const char* pattern;  // nullptr: none
};

TEST(BestPattern, IsTheOneThatSuitsTheMatcher) {
  for (const auto& [options, pattern] : {
           Choice{"content:\"abc\"; content:\"abcd\"; content:\"xyz\";", "abcd"},
           Choice{"content:\"aaaa\"; content:\"abab\"; content:\"abcb\"; content:\"xyzx\";", "abcb"},
           Choice{"content:\"ab\"; fast_pattern; content:\"abcdef\";", "ab"},
           Choice{"content:\"abc\"; content:\"abcdef\"; fast_pattern:2,3;", "cde"},
           Choice{"content:!\"abcdef\"; content:\"ab\";", "ab"},
           Choice{"content:!\"abcdef\"; fast_pattern; content:\"ab\";", "ab"},
           Choice{"base64_decode; content:\"a\"; base64_data; content:\"abcdef\";", "a"},
           Choice{"content:!\"abcdef\";", nullptr},
           Choice{"pcre:\"/abcdef/\";", nullptr},
       }) {
    const auto rule = read_rule("alert tcp any any -> any any (" + std::string(options) + " sid:1;)");
    ASSERT_TRUE(rule) << rule.error().message;
    const auto best = best_pattern(*rule);
    ASSERT_EQ(best.has_value(), pattern != nullptr) << options;
    if (best) {
      EXPECT_EQ(best->bytes, pattern) << options;
      EXPECT_TRUE(std::holds_alternative<Content>(rule->checks[best->check]));
    }
  }
}

TEST(BestPattern, SaysWhereAndHowToLook) {
  const auto rule = read_rule("alert tcp any any -> any any (content:\"a\"; content:\"bc\"; nocase; http_uri; sid:1;)");
  ASSERT_TRUE(rule);
  const auto best = best_pattern(*rule);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->check, 1U);
  EXPECT_EQ(best->buffer, Buffer::http_uri);
  EXPECT_TRUE(best->nocase);
}

}  // namespace
}  // namespace sluice::match
