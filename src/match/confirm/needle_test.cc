#include "match/confirm/needle.h"

#include <gtest/gtest.h>
#include <x86intrin.h>

#include <algorithm>
#include <random>

#include "match/automaton/pattern.h"

namespace sluice::match {
namespace {

bool same(char a, char b, bool nocase) {
  return a == b || (nocase && fold(static_cast<std::uint8_t>(a)) == fold(static_cast<std::uint8_t>(b)));
}

// Place by place.
std::size_t first_of(std::string_view bytes, std::size_t from, std::size_t to, std::string_view text, bool nocase) {
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(to);
  const auto compare = [&](char a, char b) { return same(a, b, nocase); };
  const auto at =
      std::search(bytes.begin() + static_cast<std::ptrdiff_t>(from), end, text.begin(), text.end(), compare);
  return at == end ? Needle::npos : static_cast<std::size_t>(at - bytes.begin());
}

bool ends_with_part(std::string_view bytes, std::string_view text, bool nocase) {
  for (std::size_t size = 1; size < text.size() && size <= bytes.size(); ++size) {
    const std::string_view end = bytes.substr(bytes.size() - size);
    if (std::equal(end.begin(), end.end(), text.begin(), [&](char a, char b) { return same(a, b, nocase); }))
      return true;
  }
  return false;
}

TEST(Needle, Table) {
  struct Case {
    const char* bytes;
    const char* text;
    bool nocase;
    std::size_t at;
    bool begins;
  };
  const Case cases[] = {
      {"abc", "abc", false, 0, false},
      {"xABc", "abc", false, Needle::npos, false},
      {"xABc", "abc", true, 1, false},
      {"xABc", "aBC", true, 1, false},
      {"aabaabaaab", "aabaaab", true, 3, true},
      {"xa", "abc", false, Needle::npos, true},
      {"xA", "abc", false, Needle::npos, false},
      {"xA", "abc", true, Needle::npos, true},
      {"ab", "abcd", true, Needle::npos, true},
      {"", "a", true, Needle::npos, false},
      {"b", "a", true, Needle::npos, false},
      {"@[`{", "`", true, 2, false},  // beside the letters
      {"\xc1", "\xe1", true, Needle::npos, false},
  };
  for (const Case& c : cases) {
    const Needle needle(c.text, c.nocase);
    const std::string_view bytes = c.bytes;
    EXPECT_EQ(needle.find(bytes, 0, bytes.size()), c.at) << c.bytes << " " << c.text;
    EXPECT_EQ(needle.is_in(bytes), c.at != Needle::npos) << c.bytes << " " << c.text;
    EXPECT_EQ(needle.begins_at_end_of(bytes), c.begins) << c.bytes << " " << c.text;
  }
}

TEST(Needle, FindsWhatASearchPlaceByPlaceFinds) {
  std::mt19937 random(5);
  // The last letters, too, what stands beside letters, and bytes of which no case is known.
  constexpr std::string_view alphabets[] = {"aAbB", "zZaA", "zZ[{", "aA@`", "\xc1\xe1\xda\xfa"};
  std::string_view alphabet;
  const auto made = [&](std::size_t size) {
    std::string text;
    while (text.size() < size) text += alphabet[random() % alphabet.size()];
    return text;
  };
  std::size_t found = 0, begun = 0;
  constexpr std::size_t trials = 50'000;
  for (std::size_t t = 0; t < trials; ++t) {
    alphabet = alphabets[t % std::size(alphabets)];
    const std::string bytes = made(random() % 160), text = made(1 + random() % 9);
    const std::size_t from = random() % (bytes.size() + 1), to = from + random() % (bytes.size() - from + 1);
    for (const bool nocase : {false, true}) {
      const Needle needle(text, nocase);
      const std::size_t at = first_of(bytes, from, to, text, nocase);
      const bool begins = ends_with_part(bytes, text, nocase);
      ASSERT_EQ(needle.find(bytes, from, to), at) << bytes << " " << text << " " << from << " " << to << " " << nocase;
      ASSERT_EQ(needle.begins_at_end_of(bytes), begins) << bytes << " " << text << " " << nocase;
      found += at != Needle::npos ? 1 : 0;
      begun += begins ? 1 : 0;
    }
  }
  EXPECT_GT(found, trials / 5);
  EXPECT_GT(begun, trials / 5);
}

// Of 66,000 bytes that are nearly the text at each place: a search place by place takes 50 times as long for a text of
// 200 bytes as for one of four.
TEST(Needle, NoBytesMakeItSlow) {
  const std::string hay(66'000, 'a');
  const auto ticks_of = [](const Needle& needle, const std::string& bytes) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int trial = 0; trial < 9; ++trial) {
      const std::uint64_t began = __rdtsc();
      EXPECT_FALSE(needle.is_in(bytes));
      least = std::min<std::uint64_t>(least, __rdtsc() - began);
    }
    return least;
  };
  std::string text(200, 'a');
  text[100] = 'b';
  for (const bool nocase : {false, true}) {
    EXPECT_LT(ticks_of(Needle(text, nocase), hay), 10 * ticks_of(Needle("aaba", nocase), hay)) << nocase;
  }
}

}  // namespace
}  // namespace sluice::match
