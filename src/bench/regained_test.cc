#include "bench/regained.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace sluice::cli::bench {
namespace {

// A second, looked at every 5 ms; what each lane has sent until then.
std::vector<SentSample> second_of(const std::vector<std::function<double(double at)>>& lanes) {
  std::vector<SentSample> samples;
  for (int i = 0; i <= 200; ++i) {
    SentSample sample{0.005 * i, {}};
    for (const auto& lane : lanes) sample.sent.push_back(static_cast<std::uint64_t>(lane(sample.at)));
    samples.push_back(sample);
  }
  return samples;
}
double steadily(double at) {
  return 1e6 * at;
}
// Nothing for 0.1 s, and then half as much.
double after_a_gap(double at) {
  return at < 0.1 ? 0 : 5e5 * (at - 0.1);
}

TEST(Regained, ALaneThatGoesOnLosesNoTime) {
  const Regained result = regained(second_of({steadily}));
  EXPECT_NEAR(result.rate, 1e6, 1e3);
  EXPECT_EQ(result.after_s, 0);
  EXPECT_NEAR(result.pause_s, 0.005, 1e-6) << "one look";
  EXPECT_EQ(result.standing_still, 0U);
}

TEST(Regained, TheSlowestLaneCounts) {
  const Regained result = regained(second_of({steadily, after_a_gap}));
  EXPECT_NEAR(result.rate, 1.5e6, 1e3);
  EXPECT_NEAR(result.after_s, 0.105, 0.0051) << "once it has sent something";
  EXPECT_NEAR(result.pause_s, 0.105, 0.0051);
}

TEST(Regained, ALaneThatSendsNothingMoreStandsStill) {
  const auto ends = [](double at) { return 1e6 * std::min(at, 0.3); };
  const Regained result = regained(second_of({ends, steadily}));
  EXPECT_EQ(result.standing_still, 1U);
  EXPECT_NEAR(result.rate, 1e6, 1e3);
  EXPECT_EQ(result.after_s, 0);
}

// It went on for a while, and then stood still for most of the time.
TEST(Regained, ALaneIsSteadyBehindItsLongestPauseAndByWhatItCarriesInTheEnd) {
  const auto lane = [](double at) { return at < 0.1 ? 1e6 * at : 1e5 + 1e6 * std::max(0.0, at - 0.8); };
  const Regained result = regained(second_of({lane}), 0.8);
  EXPECT_NEAR(result.rate, 1e6, 1e4);
  EXPECT_NEAR(result.after_s, 0.8, 0.0051);
  EXPECT_NEAR(result.pause_s, 0.7, 0.0101);
}

// Batches of 30 ms each.
TEST(Regained, LanesThatSendInBatchesAreSteadyToo) {
  const auto in_batches = [](double at) { return at < 0.2 ? 0 : 3e4 * static_cast<int>((at - 0.2) / 0.03 + 1e-9); };
  const Regained result = regained(second_of({in_batches}));
  EXPECT_GE(result.after_s, 0.15);
  EXPECT_LE(result.after_s, 0.25);
  EXPECT_NEAR(result.pause_s, 0.23, 0.0051);
}

TEST(Regained, NeitherNoTimeNorNoLaneIsAnything) {
  for (const auto& samples : {std::vector<SentSample>{}, {{0, {7}}}, {{0, {}}, {1, {}}}}) {
    const Regained result = regained(samples);
    EXPECT_EQ(result.rate + result.after_s + result.pause_s, 0);
    EXPECT_EQ(result.standing_still, 0U);
  }
}

}  // namespace
}  // namespace sluice::cli::bench
