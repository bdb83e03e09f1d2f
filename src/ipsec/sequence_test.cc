#include "ipsec/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace sluice::ipsec {
namespace {

TEST(Sequence, BeginsWithOneAndGoesOn) {
  Sequence sequence;
  const Sequence::Run first = sequence.take(1, false);
  EXPECT_EQ(first.first, 1U);
  EXPECT_EQ(first.count, 1U);
  EXPECT_EQ(sequence.take(32, false).first, 2U);
  EXPECT_EQ(sequence.take(1, false).first, 34U);
  EXPECT_EQ(sequence.last(), 34U);
  EXPECT_EQ(Sequence(1000).take(1, false).first, 1001U);
}

// RFC 4303 section 3.3.3: the number must not cycle.
TEST(Sequence, EndsWithTheLastNumber) {
  for (const bool extended : {false, true}) {
    const std::uint64_t end = extended ? last_extended_sequence : last_short_sequence;
    Sequence sequence(end - 40);
    EXPECT_EQ(sequence.take(32, extended).first, end - 39);
    const Sequence::Run rest = sequence.take(32, extended);
    EXPECT_EQ(rest.first, end - 7);
    EXPECT_EQ(rest.count, 8U);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sequence.take(1, extended).count, 0U);
    EXPECT_EQ(sequence.last(), end);
  }
}

TEST(Sequence, ExtendedNumbersGoOverTheLowHalf) {
  Sequence sequence(last_short_sequence - 1);
  const Sequence::Run run = sequence.take(4, true);
  EXPECT_EQ(run.first, last_short_sequence);
  EXPECT_EQ(run.count, 4U);
}

TEST(Sequence, ThreadsGetEachNumberOnce) {
  constexpr std::uint64_t begin = last_short_sequence - 200'000'000;  // over what is near the end
  constexpr unsigned threads = 4;
  Sequence sequence(begin);
  std::vector<std::vector<Sequence::Run>> runs(threads);
  std::vector<std::thread> lanes;
  for (unsigned lane = 0; lane < threads; ++lane) {
    lanes.emplace_back([&, lane] {
      for (std::uint32_t i = 0;; ++i) {
        const std::uint32_t wanted = i % 3 == 0 ? Sequence::most_at_once : 10'000 + lane;
        const Sequence::Run run = sequence.take(wanted, false);
        if (run.count == 0) break;
        runs[lane].push_back(run);
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  std::vector<Sequence::Run> all;
  for (const auto& of_lane : runs) {
    EXPECT_TRUE(std::ranges::is_sorted(of_lane, {}, &Sequence::Run::first));
    all.insert(all.end(), of_lane.begin(), of_lane.end());
  }
  std::ranges::sort(all, {}, &Sequence::Run::first);
  std::uint64_t next = begin + 1;
  for (const Sequence::Run& run : all) {
    ASSERT_EQ(run.first, next);
    next += run.count;
  }
  EXPECT_EQ(next, last_short_sequence + 1);
}

}  // namespace
}  // namespace sluice::ipsec
