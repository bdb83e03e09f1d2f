#include "bench/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::cli::bench {
namespace {

using testing::DoubleEq;
using testing::Each;

TEST(Rounds, GiveTheMiddleOneWithoutTheOneThatRanCold) {
  // The first two are the slowest.
  const std::vector<std::uint64_t> frames = {1, 2, 40, 30, 50, 20};
  std::vector<double> lengths;
  const auto outcome = in_rounds(12, [&](double seconds) -> Expected<Outcome> {
    lengths.push_back(seconds);
    Outcome one;
    one.seconds = 1;
    one.frames = frames.at(lengths.size() - 1) * 1'000'000;
    return one;
  });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->frames, 30'000'000U);
  EXPECT_EQ(outcome->rounds, 5U);
  EXPECT_EQ(outcome->mpps_low, 2);
  EXPECT_EQ(outcome->mpps_high, 50);
  EXPECT_THAT(lengths, Each(DoubleEq(2)));
}

TEST(Rounds, EndWithTheFirstError) {
  for (const unsigned bad : {1U, 2U, 4U}) {
    unsigned measured = 0;
    const auto outcome = in_rounds(1, [&](double) -> Expected<Outcome> {
      if (++measured == bad) return make_error("no");
      return Outcome{.seconds = 1};
    });
    ASSERT_FALSE(outcome) << bad;
    EXPECT_EQ(measured, bad);
  }
}

}  // namespace
}  // namespace sluice::cli::bench
