#include "match/automaton/key_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "match/automaton/reference_test.h"

namespace sluice::match {
namespace {

std::string text_of(const Key& key) {
  return {key.bytes.begin(), key.bytes.begin() + key.length};
}

TEST(KeySet, a_key_is_a_folded_piece_of_its_pattern_of_at_most_eight_bytes) {
  std::mt19937 random(1);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 500; ++i) {
    std::string bytes(2 + random() % 30, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    patterns.push_back({bytes, random() % 2 == 0, 1u << random() % 32});
  }
  const KeySet keys(patterns);
  std::vector<bool> seen(patterns.size());
  for (std::uint32_t k = 0; k < keys.keys().size(); ++k) {
    const Key& key = keys.keys()[k];
    ClassMask classes = 0;
    for (const std::uint32_t p : keys.patterns_of(k)) {
      EXPECT_FALSE(seen[p]);
      seen[p] = true;
      classes |= patterns[p].classes;
      EXPECT_NE(test::folded(patterns[p].bytes).find(text_of(key)), std::string::npos);
      EXPECT_GE(key.length, std::min<std::size_t>(patterns[p].bytes.size(), Key::gram));
      EXPECT_LE(key.length, Key::max_length);
    }
    EXPECT_EQ(key.classes, classes);
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](bool s) { return s; }));
}

TEST(KeySet, patterns_that_fold_alike_share_a_key) {
  const std::vector<Pattern> patterns = {{"CMD.exe", true, 1}, {"cmd.EXE", false, 2}};
  const KeySet keys(patterns);
  ASSERT_EQ(keys.keys().size(), 1u);
  EXPECT_EQ(keys.keys()[0].classes, 3u);
  EXPECT_THAT(keys.patterns_of(0), testing::ElementsAre(0, 1));
}

TEST(KeySet, a_pattern_of_one_byte_has_no_key) {
  const std::vector<Pattern> patterns = {{"ab"}, {"x"}, {""}};
  const KeySet keys(patterns);
  EXPECT_EQ(keys.keys().size(), 1u);
  EXPECT_THAT(keys.without_key(), testing::ElementsAre(1, 2));
}

TEST(KeySet, the_rarest_piece_stands_for_a_pattern) {
  const std::vector<Pattern> patterns = {{"GET /index.html HTTP/1.1\r\nHost: qzx#"}};
  const KeySet keys(patterns);
  EXPECT_THAT(text_of(keys.keys()[0]), testing::EndsWith("zx#"));
}

}  // namespace
}  // namespace sluice::match
