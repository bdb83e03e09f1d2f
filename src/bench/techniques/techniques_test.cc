// Every technique against the automaton run on the CPU, and that against a plain search.
#include "bench/techniques/techniques.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

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

TEST(Dfa, CountsThePositionsAtWhichAPatternEnds) {
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

TEST(Dfa, RefusesWhatItCannotHold) {
  EXPECT_FALSE(Dfa::make(std::vector<Pattern>{{""}}, 8));
}

// Packets in device memory, and in host memory.
class TechniquesOn : public testing::TestWithParam<PacketPlace> {};

std::vector<std::string> random_packets(std::mt19937& random, unsigned count) {
  std::vector<std::string> packets;
  for (unsigned i = 0; i < count; ++i) {
    packets.push_back(random_text(random, random() % 3 == 0 ? random() % 1500 : random() % 90));
  }
  return packets;
}

void expect_counts(device::Gpu& gpu, const Dfa& dfa, const TwoByteTable& pairs, const std::vector<std::string>& packets,
                   PacketPlace place) {
  auto all = Techniques::create(gpu, dfa, pairs, packets, place);
  ASSERT_TRUE(all) << all.error().message;
  for (const Technique technique : techniques) {
    SCOPED_TRACE(name_of(technique));
    const auto run = (*all)->run(technique, 1);
    ASSERT_TRUE(run) << run.error().message;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      ASSERT_EQ(run->ends[i], dfa.count(packets[i])) << "packet " << i << " of " << packets.size();
    }
    EXPECT_LE(run->loop.efficiency(), 1);
    EXPECT_GT(run->loop.iterations, 0u);
  }
}

TEST_P(TechniquesOn, AllAgreeWithTheAutomatonOnTheCpu) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  std::mt19937 random(5);
  const auto dfa = Dfa::make(random_patterns(random, 200, 20), 16);
  ASSERT_TRUE(dfa) << dfa.error().message;
  for (const unsigned count : {1u, 31u, 600u}) {
    const std::vector<std::string> packets = random_packets(random, count);
    expect_counts(**gpu, *dfa, TwoByteTable(*dfa), packets, GetParam());
  }
}

// Each length around pieces, warm-ups and pairs, with hot states from none to all.
TEST_P(TechniquesOn, AllAgreeAtEveryLengthAndBudget) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  std::mt19937 random(8);
  std::vector<std::string> packets;
  for (unsigned size = 0; size < 200; ++size) {
    packets.push_back(random_text(random, size));
    for (char& c : packets.back()) c = random() % 3 == 0 ? 'x' : c;  // no pattern has it: back to the root
  }
  const Pattern zero{std::string(1, '\0')};  // as behind a packet's end
  struct Case {
    const char* name;
    std::vector<Pattern> patterns;
  };
  const Case cases[] = {
      {"no pattern: one state, one class", {}},
      {"an end at each byte", {{"a"}, {"b"}, {"c"}, {"\xff"}, zero}},
      {"ends at middle bytes and at second ones", {{"a"}, {"bc"}, {"cab"}, {"\xff"}, zero}},
      {"none nearer than at the warm-up's end", {{"abacabacabacabac"}, {"bbbbbbbbbbbbbbbb"}}},
      {"many", random_patterns(random, 50, 12)},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const auto dfa = Dfa::make(one.patterns, 16);
    ASSERT_TRUE(dfa) << dfa.error().message;
    const std::size_t classes = TwoByteTable(*dfa, 0).classes();
    for (const std::size_t hot : {std::size_t{0}, std::size_t{1}, dfa->states()}) {
      const TwoByteTable pairs(*dfa, hot * classes * classes * sizeof(std::uint32_t));
      ASSERT_EQ(pairs.hot_states(), hot);
      expect_counts(**gpu, *dfa, pairs, packets, GetParam());
    }
  }
}

// A piece of 64 bytes in 64 steps, and by pairs in 32 where each state is hot.
TEST_P(TechniquesOn, PairsTakeHalfTheSteps) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto dfa = Dfa::make(std::vector<Pattern>{{"a"}}, 16);
  ASSERT_TRUE(dfa);
  const std::vector<std::string> packets(32, std::string(64, 'a'));
  auto all = Techniques::create(**gpu, *dfa, TwoByteTable(*dfa), packets, GetParam());
  ASSERT_TRUE(all) << all.error().message;
  const auto staged = (*all)->run(Technique::segments_staged, 1), pairs = (*all)->run(Technique::segments_pairs, 1);
  ASSERT_TRUE(staged && pairs);
  EXPECT_EQ(staged->loop.iterations, 64u);
  EXPECT_EQ(pairs->loop.iterations, 32u);
  EXPECT_EQ(pairs->loop.efficiency(), 1);
}

void expect_keys(const KeySet& keys, const std::vector<std::string>& packets, const FilterRun& run) {
  unsigned many = 0;
  for (unsigned i = 0; i < packets.size(); ++i) {
    const std::set<std::uint32_t> expected = test::keys_in(keys, packets[i], 0);
    ASSERT_EQ(run.found[i], std::min<std::size_t>(expected.size(), max_hits + 1)) << "packet " << i;
    const auto* const reported = run.keys.data() + std::size_t{i} * max_hits;
    const std::set<std::uint32_t> got(reported, reported + std::min(run.found[i], max_hits));
    EXPECT_TRUE(std::includes(expected.begin(), expected.end(), got.begin(), got.end())) << "packet " << i;
    many += run.found[i] > max_hits ? 1 : 0;
  }
  EXPECT_GT(many, 0u);
}

// The filter, and both searches of what was brought, with capacity for all payloads and for the shorter ones.
TEST_P(TechniquesOn, TheMatchersReportTheKeysOfTheSamePackets) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  std::mt19937 random(6);
  const auto patterns = random_patterns(random, 200, 20);
  const auto dfa = Dfa::make(patterns, 16);
  const KeySet keys(patterns);
  auto matcher = GpuMatcher::create(**gpu, GramTable(keys), GpuMatcher::default_sync_bytes, true);
  ASSERT_TRUE(dfa && matcher);
  const std::vector<std::string> packets = random_packets(random, 70);
  auto all = Techniques::create(**gpu, *dfa, TwoByteTable(*dfa), packets, GetParam());
  ASSERT_TRUE(all) << all.error().message;
  const auto check = [&](const std::string& name, const Expected<FilterRun>& run) {
    ASSERT_TRUE(run) << name << ": " << run.error().message;
    SCOPED_TRACE(name);
    expect_keys(keys, packets, *run);
  };
  check("filter", (*all)->run_filter(**matcher, 1));
  for (const GatheredSearch search : {GatheredSearch::filter, GatheredSearch::automaton}) {
    for (const std::uint32_t capacity : {1500u, 100u}) {
      auto gathered = GatheredMatcher::create(**gpu, **matcher, keys, search, {70, capacity, 1}, true);
      ASSERT_TRUE(gathered) << gathered.error().message;
      check("gathered " + std::to_string(static_cast<int>(search)) + " " + std::to_string(capacity),
            (*all)->run_gathered(**gathered, 1));
    }
  }
}

TEST(Gathered, RefusesMoreFramesThanThereAreSlots) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const KeySet keys(std::vector<Pattern>{{"abcd"}});
  auto matcher = GpuMatcher::create(**gpu, GramTable(keys));
  ASSERT_TRUE(matcher);
  auto gathered = GatheredMatcher::create(**gpu, **matcher, keys, GatheredSearch::automaton, {2, 100, 1}, false);
  ASSERT_TRUE(gathered) << gathered.error().message;
  EXPECT_GT((*gathered)->device_bytes(), 5 * 1024u);
  MatchBatch batch;
  batch.count = 3;
  const auto ok = (*gathered)->match(batch, 0);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().message, "a batch of 3 frames: there are 2 slots to bring them to; make it smaller");
}

INSTANTIATE_TEST_SUITE_P(, TechniquesOn, testing::Values(PacketPlace::device, PacketPlace::host),
                         [](const auto& place) { return place.param == PacketPlace::device ? "device" : "host"; });

}  // namespace
}  // namespace sluice::match
