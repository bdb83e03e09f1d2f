#include "match/automaton/key_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "match/automaton/reference_test.h"

namespace sluice::match {
namespace {

std::set<std::uint32_t> scan(const GramTable& table, const std::string& text, std::size_t from, unsigned klass) {
  std::vector<std::uint32_t> keys;
  scan_keys(table.view(), text, from, klass, keys);
  return {keys.begin(), keys.end()};
}

TEST(ScanKeys, FindsWhatTheDefinitionFinds) {
  std::mt19937 random(3);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 300; ++i) {
    std::string bytes(2 + random() % 8, ' ');
    for (char& c : bytes) c = "aBcD"[random() % 4];
    patterns.push_back({bytes, false, 1u << random() % 4});
  }
  const KeySet keys(patterns);
  const GramTable table(keys);
  std::size_t found = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text(random() % 30, ' ');
    for (char& c : text) c = "aBcD"[random() % 4];
    const unsigned klass = random() % 4;
    const auto all = test::keys_in(keys, text, klass);
    EXPECT_EQ(scan(table, text, 0, klass), all);
    found += all.size();
    // Those that end behind a place: those of the whole that are there again, or for the first time.
    const std::size_t from = random() % (text.size() + 1);
    std::set<std::uint32_t> behind;
    for (std::size_t end = from + 1; end <= text.size(); ++end) {
      for (const std::uint32_t k : test::keys_in(keys, text.substr(0, end), klass)) {
        const Key& key = keys.keys()[k];
        const std::string bytes(key.bytes.begin(), key.bytes.begin() + key.length);
        if (test::folded(text.substr(0, end)).ends_with(bytes)) behind.insert(k);
      }
    }
    EXPECT_EQ(scan(table, text, from, klass), behind);
  }
  EXPECT_GT(found, 1000U);
}

}  // namespace
}  // namespace sluice::match
