#include "match/automaton/cpu_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "match/automaton/reference_test.h"

namespace sluice::match {
namespace {

std::vector<std::uint32_t> found_in(const CpuMatcher& matcher, const std::string& payload, unsigned klass = 0) {
  CpuMatcher::Scratch scratch(matcher);
  std::vector<std::uint32_t> found(1000);
  found.resize(matcher.match(scratch, payload, klass, found.data(), found.size()));
  std::sort(found.begin(), found.end());
  return found;
}

TEST(CpuMatcher, FindsBytesOfEveryKindEachPatternOnce) {
  const std::vector<Pattern> patterns = {
      {std::string("\0\0a", 3)}, {"(.*)[x]\\"}, {"\xff\xfe", true}, {"AbC", true}, {"AbC"}};
  const auto matcher = CpuMatcher::create(patterns);
  ASSERT_TRUE(matcher) << matcher.error().message;
  EXPECT_THAT(found_in(**matcher, std::string("..\0\0a..\0\0a", 10)), testing::ElementsAre(0));
  EXPECT_THAT(found_in(**matcher, "(.*)[x]\\"), testing::ElementsAre(1));
  EXPECT_THAT(found_in(**matcher, "\xff\xfe aBc"), testing::ElementsAre(2, 3));
  EXPECT_THAT(found_in(**matcher, "AbC"), testing::ElementsAre(3, 4));
  EXPECT_THAT(found_in(**matcher, ""), testing::IsEmpty());
}

TEST(CpuMatcher, ASearchThatIsRefusedIsCounted) {
  const auto matcher = CpuMatcher::create(std::vector<Pattern>{{"ab"}}), none = CpuMatcher::create({});
  ASSERT_TRUE(matcher && none);
  CpuMatcher::Scratch right(**matcher), wrong(**none);
  std::uint32_t found = 0;
  EXPECT_EQ((*matcher)->match(right, "ab", 0, &found, 1), 1U);
  EXPECT_EQ(right.failed(), 0U);
  EXPECT_EQ((*matcher)->match(wrong, "ab", 0, &found, 1), 0U) << "made for another matcher";
  EXPECT_EQ(wrong.failed(), 1U);
}

TEST(CpuMatcher, APatternCountsInItsClassesOnly) {
  const std::vector<Pattern> patterns = {{"ab", false, 1u << 3}, {"b", false, 1u << 31}};
  const auto matcher = CpuMatcher::create(patterns);
  ASSERT_TRUE(matcher) << matcher.error().message;
  EXPECT_THAT(found_in(**matcher, "ab", 3), testing::ElementsAre(0));
  EXPECT_THAT(found_in(**matcher, "ab", 31), testing::ElementsAre(1));
  EXPECT_THAT(found_in(**matcher, "ab", 0), testing::IsEmpty());
}

TEST(CpuMatcher, ClassesOfNearlyTheSamePatternsAreSearchedTogether) {
  std::vector<Pattern> patterns;
  for (int i = 0; i < 100; ++i) {
    ClassMask classes = 1u << 0 | 1u << 1;  // all that there are, or but for one
    if (i == 7) classes = 1u << 0;
    if (i < 20) classes |= 1u << 2;  // a fifth
    patterns.push_back({"pattern " + std::to_string(i), false, classes});
  }
  EXPECT_THAT(class_groups(patterns), testing::UnorderedElementsAre(1u << 0 | 1u << 1, 1u << 2));
  const auto matcher = CpuMatcher::create(patterns);
  ASSERT_TRUE(matcher) << matcher.error().message;
  EXPECT_THAT(found_in(**matcher, "pattern 7;pattern 9;", 0), testing::ElementsAre(7, 9));
  EXPECT_THAT(found_in(**matcher, "pattern 7;pattern 9;", 1), testing::ElementsAre(9)) << "another class's";
  EXPECT_THAT(found_in(**matcher, "pattern 19;pattern 50;", 2), testing::ElementsAre(1, 5, 19));
  EXPECT_THAT(found_in(**matcher, "pattern 7", 3), testing::IsEmpty());
  EXPECT_EQ((*matcher)->longest(2), 10U);
  EXPECT_EQ((*matcher)->longest(3), 0U);
}

// Of what is reported once, the first one may be before the place, and others behind it.
TEST(CpuMatcher, ReportsAllThatEndsBehindAPlace) {
  std::mt19937 random(9);
  const auto text = [&](std::size_t size) {
    std::string out(size, ' ');
    for (char& c : out) c = "aAb"[random() % 3];
    return out;
  };
  std::vector<Pattern> patterns;
  for (int i = 0; i < 30; ++i) patterns.push_back({text(1 + random() % 5), random() % 2 == 0});
  const auto matcher = CpuMatcher::create(patterns, CpuMatcher::Mode::slices);
  ASSERT_TRUE(matcher) << matcher.error().message;
  CpuMatcher::Scratch scratch(**matcher);
  for (int i = 0; i < 500; ++i) {
    const std::string payload = text(random() % 30);
    const std::size_t from = random() % (payload.size() + 1);
    std::vector<std::uint32_t> found(patterns.size()), wanted;
    found.resize((*matcher)->match(scratch, payload, 0, found.data(), found.size(), from));
    std::sort(found.begin(), found.end());
    for (std::uint32_t p = 0; p < patterns.size(); ++p) {
      const Needle needle(patterns[p].bytes, patterns[p].nocase);
      const std::size_t begin = from - std::min(from, patterns[p].bytes.size() - 1);
      if (needle.find(payload, begin, payload.size()) != Needle::npos) wanted.push_back(p);
    }
    ASSERT_EQ(found, wanted) << payload << " from " << from;
  }
}

TEST(CpuMatcher, ReportsOnlyWhatEndsBehindAPlace) {
  const std::vector<Pattern> patterns = {{"ab"}, {"b"}, {"cd"}};
  const auto matcher = CpuMatcher::create(patterns, CpuMatcher::Mode::slices);
  ASSERT_TRUE(matcher) << matcher.error().message;
  CpuMatcher::Scratch scratch(**matcher);
  const auto found = [&](const std::string& payload, std::size_t from) {
    std::vector<std::uint32_t> all(patterns.size());
    all.resize((*matcher)->match(scratch, payload, 0, all.data(), all.size(), from));
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_THAT(found("abcdabab", 0), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(found("abcd", 2), testing::ElementsAre(2));
  EXPECT_THAT(found("abcd", 1), testing::ElementsAre(0, 1, 2)) << "ab ends behind the first byte";
  EXPECT_THAT(found("abcdab", 4), testing::ElementsAre(0, 1));
  EXPECT_THAT(found("abcd", 4), testing::IsEmpty());
}

TEST(CpuMatcher, ASearchInSlicesReportsEachPatternOnce) {
  const std::vector<Pattern> patterns = {{"ab"}, {"bcd"}, {"cd"}};
  const auto matcher = CpuMatcher::create(patterns, CpuMatcher::Mode::slices);
  ASSERT_TRUE(matcher) << matcher.error().message;
  CpuMatcher::Scratch scratch(**matcher);
  std::vector<std::uint32_t> all(patterns.size());
  const auto search = [&](std::string_view slice, std::size_t from, std::size_t found) {
    return found + (*matcher)->match(scratch, slice, 0, all.data() + found, all.size() - found, from, found != 0);
  };
  for (int time = 0; time < 2; ++time) {
    std::size_t found = search("abab", 0, 0);  // of "ababcdab"
    EXPECT_EQ(found, 1U);
    found = search("babcd", 3, found);
    EXPECT_EQ(found, 3U) << "what lies across, too";
    found = search("bcdab", 3, found);
    EXPECT_EQ(found, 3U);
    std::sort(all.begin(), all.end());
    EXPECT_THAT(all, testing::ElementsAre(0, 1, 2));
  }
}

TEST(CpuMatcher, NoPatternAtAllIsFineAndAnEmptyOneIsAnError) {
  const auto none = CpuMatcher::create({});
  ASSERT_TRUE(none);
  EXPECT_THAT(found_in(**none, "anything"), testing::IsEmpty());
  const std::vector<Pattern> empty = {{"x"}, {""}};
  const auto refused = CpuMatcher::create(empty);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("pattern 1 is empty"));
}

TEST(CpuMatcher, WhoeverHoldsAPatternHoldsItsKey) {
  std::mt19937 random(3);
  const auto text = [&](std::size_t size) {
    std::string out(size, ' ');
    for (char& c : out) c = "aAbB\xff"[random() % 5];
    return out;
  };
  std::vector<Pattern> patterns;
  for (int i = 0; i < 80; ++i) patterns.push_back({text(2 + random() % 7), random() % 2 == 0});
  const KeySet keys(patterns);
  const auto matcher = CpuMatcher::create(patterns);
  ASSERT_TRUE(matcher) << matcher.error().message;
  std::size_t all = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string payload = text(60);
    const std::set<std::uint32_t> present = test::keys_in(keys, payload, 0);
    std::set<std::uint32_t> prefilter_matches;
    for (const std::uint32_t k : present) {
      for (const std::uint32_t p : keys.patterns_of(k)) prefilter_matches.insert(p);
    }
    const auto found = found_in(**matcher, payload);
    all += found.size();
    EXPECT_TRUE(std::includes(prefilter_matches.begin(), prefilter_matches.end(), found.begin(), found.end()));
  }
  EXPECT_GT(all, 500u);
}

}  // namespace
}  // namespace sluice::match
