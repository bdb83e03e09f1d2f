// The loops of the searches that report keys, counted, against what is counted by hand.
#include "bench/techniques/loop_count.h"

#include <gtest/gtest.h>

#include <iomanip>
#include <sstream>

#include "../tests/support/gpu.h"
#include "bench/techniques/techniques.h"

namespace sluice::match {
namespace {

std::string text(const LoopCount& loop) {
  std::ostringstream out;
  out << loop.iterations << " iterations, " << loop.active << " active, " << std::fixed << std::setprecision(1)
      << 100 * loop.efficiency() << " %";
  return out.str();
}

// Packets lie one behind the other from a multiple of 256 on. A batch of less than 64 bytes a packet goes to one warp,
// one of more to a warp for each four packets.
struct Case {
  const char* name;
  std::vector<std::string> packets;
  const char* filter;  // over bytes
  const char* automaton;
  bool whole = true;
  const char* filter_keys = "0 iterations, 0 active, 0.0 %";
  const char* automaton_keys = "0 iterations, 0 active, 0.0 %";
};

std::vector<std::string> of_sizes(std::size_t many, std::size_t size, std::size_t others, std::size_t other) {
  std::vector<std::string> packets(many, std::string(size, '.'));
  packets.insert(packets.end(), others, std::string(other, '.'));
  return packets;
}

const Case cases[] = {
    // 32 times 3 units of 16 bytes, packed; each lane 6 words of 8.
    {"of one length", of_sizes(32, 48, 0, 0), "3 iterations, 96 active, 100.0 %", "6 iterations, 192 active, 100.0 %"},
    // 64 units, packed; 32 lanes for 2 words, 16 of them for 4 more.
    {"of two lengths, small", of_sizes(16, 48, 16, 16), "2 iterations, 64 active, 100.0 %",
     "6 iterations, 128 active, 66.7 %"},
    // Lines: four whole ones in one warp, four half ones in the other. Pieces: of the first warp 4 with 8 words, and 4
    // behind them that have a word in front; of the other one 4 with 8 words.
    {"of two lengths, by lines", of_sizes(4, 128, 4, 64), "2 iterations, 48 active, 75.0 %",
     "17 iterations, 100 active, 18.4 %"},
    // Nine lines of one warp, four in a step: 8, 8, 8 and 4 lanes, 4, 8, 4 and 4, then 8.
    {"across lines",
     {std::string(256, '.'), std::string(192, '.'), std::string(256, '.'), std::string(192, '.')},
     "3 iterations, 56 active, 58.3 %",
     "9 iterations, 122 active, 42.4 %"},
    // Five lines would be two steps; 24 units are one.
    {"across lines, but few",
     {std::string(128, '.'), std::string(64, '.'), std::string(128, '.'), std::string(64, '.')},
     "1 iterations, 24 active, 75.0 %",
     "9 iterations, 50 active, 17.4 %"},
    {"no bytes", {"", "", ""}, "0 iterations, 0 active, 0.0 %", "0 iterations, 0 active, 0.0 %"},
    // A lane with two keys and one with one.
    {"keys",
     {"key1key2" + std::string(120, '.'), "key3" + std::string(124, '.')},
     "1 iterations, 16 active, 50.0 %",
     "9 iterations, 34 active, 11.8 %",
     true,
     "2 iterations, 3 active, 4.7 %",
     "2 iterations, 3 active, 4.7 %"},
    // Two that end at one place are reported one after the other.
    {"a key in a key",
     {"xkey0" + std::string(123, '.')},
     "1 iterations, 8 active, 25.0 %",
     "9 iterations, 17 active, 5.9 %",
     true,
     "2 iterations, 2 active, 3.1 %",
     "2 iterations, 2 active, 3.1 %"},
    // Two steps; 16 pieces, all but the first one with a word in front.
    {"more keys than are reported, to the end",
     {"key1key2key3key4key5key6key7key8key9" + std::string(988, '.')},
     "2 iterations, 64 active, 100.0 %",
     "9 iterations, 143 active, 49.7 %",
     true,
     "4 iterations, 9 active, 7.0 %",
     "9 iterations, 9 active, 3.1 %"},
    // The ninth is found in the first step, and in the first piece's fifth word.
    {"more keys than are reported",
     {"key1key2key3key4key5key6key7key8key9" + std::string(988, '.')},
     "1 iterations, 32 active, 100.0 %",
     "6 iterations, 95 active, 49.5 %",
     false,
     "4 iterations, 9 active, 7.0 %",
     "9 iterations, 9 active, 3.1 %"},
};

class LoopCounts : public testing::TestWithParam<PacketPlace> {};

TEST_P(LoopCounts, OfSearchesThatReportKeysAreThoseCountedByHand) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  std::vector<Pattern> patterns;
  for (char c = '0'; c <= '9'; ++c) patterns.push_back({std::string("key") + c});
  patterns.push_back({"xkey0"});
  const KeySet keys(patterns);
  const auto dfa = Dfa::make(patterns, 16);
  ASSERT_TRUE(dfa) << dfa.error().message;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    auto filter = GpuMatcher::create(**gpu, GramTable(keys), GpuMatcher::default_sync_bytes, one.whole);
    auto all = Techniques::create(**gpu, *dfa, TwoByteTable(*dfa), one.packets, GetParam());
    ASSERT_TRUE(filter && all);
    const auto gathered = [&](GatheredSearch search) {
      return std::move(GatheredMatcher::create(**gpu, **filter, keys, search, {32, 1024, 1}, one.whole).value());
    };
    const auto expect = [&](const Expected<FilterRun>& run, const char* bytes, const char* of_keys) {
      ASSERT_TRUE(run) << run.error().message;
      EXPECT_EQ(text(run->loops.bytes), bytes);
      EXPECT_EQ(text(run->loops.keys), of_keys);
    };
    expect((*all)->run_filter(**filter, 1), one.filter, one.filter_keys);
    expect((*all)->run_gathered(*gathered(GatheredSearch::filter), 1), one.filter, one.filter_keys);
    expect((*all)->run_gathered(*gathered(GatheredSearch::automaton), 1), one.automaton, one.automaton_keys);
  }
}

INSTANTIATE_TEST_SUITE_P(, LoopCounts, testing::Values(PacketPlace::device, PacketPlace::host),
                         [](const auto& place) { return place.param == PacketPlace::device ? "device" : "host"; });

}  // namespace
}  // namespace sluice::match
