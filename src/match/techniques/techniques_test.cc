// Every technique against the automaton run on the CPU, and that against a plain search.
#include "match/techniques/techniques.h"

#include <gtest/gtest.h>

#include <random>

#include "../tests/support/gpu.h"
#include "match/automaton/reference_test.h"

namespace sluice::match {
namespace {

std::string random_text(std::mt19937& random, std::size_t size) {
  std::string out(size, ' ');
  for (char& c : out) c = "abAc\xff"[random() % 5];
  return out;
}

std::vector<Pattern> random_patterns(std::mt19937& random, std::size_t count, std::size_t longest) {
  std::vector<Pattern> patterns;
  for (std::size_t i = 0; i < count; ++i) patterns.push_back({random_text(random, 1 + random() % longest), true});
  return patterns;
}

TEST(Dfa, counts_the_positions_at_which_a_pattern_ends) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const auto patterns = random_patterns(random, 12, 9);
    const auto dfa = Dfa::make(patterns, 6);
    ASSERT_TRUE(dfa) << dfa.error().message;
    EXPECT_LE(dfa->depth(), 6u);
    const std::string text = random_text(random, 300), lower = test::folded(text);
    std::uint32_t expected = 0;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      expected += std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& p) {
        return std::string_view(lower).substr(0, end).ends_with(test::folded(p.bytes.substr(0, 6)));
      });
    }
    EXPECT_EQ(dfa->count(text), expected);
  }
}

TEST(Dfa, refuses_what_it_cannot_hold) {
  EXPECT_FALSE(Dfa::make(std::vector<Pattern>{{""}}, 8));
}

TEST(Techniques, all_agree_with_the_automaton_on_the_cpu) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  std::mt19937 random(5);
  const auto dfa = Dfa::make(random_patterns(random, 200, 20), 16);
  ASSERT_TRUE(dfa) << dfa.error().message;
  for (const unsigned count : {1u, 31u, 600u}) {
    std::vector<std::string> packets;
    for (unsigned i = 0; i < count; ++i) {
      packets.push_back(random_text(random, random() % 3 == 0 ? random() % 1500 : random() % 90));
    }
    auto all = Techniques::create(**gpu, *dfa, packets);
    ASSERT_TRUE(all) << all.error().message;
    for (const Technique technique : techniques) {
      const auto run = (*all)->run(technique, 1);
      ASSERT_TRUE(run) << name_of(technique) << ": " << run.error().message;
      for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(run->ends[i], dfa->count(packets[i])) << name_of(technique) << " packet " << i << " of " << count;
      }
      EXPECT_LE(run->loop.efficiency(), 1) << name_of(technique);
      EXPECT_GT(run->loop.iterations, 0u) << name_of(technique);
    }
  }
}

}  // namespace
}  // namespace sluice::match
