#include "engine/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::engine {
namespace {

TEST(Histogram, BucketsAreContiguousAndTight) {
  for (unsigned at = 0; at + 1 < Histogram::buckets; ++at) {
    const std::uint64_t upper = Histogram::upper(at);
    ASSERT_EQ(Histogram::index(upper), at);
    ASSERT_EQ(Histogram::index(upper + 1), at + 1);
    const std::uint64_t lower = at == 0 ? 0 : Histogram::upper(at - 1) + 1;
    ASSERT_LE(upper - lower, lower / Histogram::sub_buckets);
  }
}

TEST(Histogram, PercentilesOfRandomValuesAreWithinTheBound) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> shape(9, 2);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 100000; ++i) {
    values.push_back(static_cast<std::uint64_t>(shape(random)));
    histogram.add(values.back(), 1);
  }
  std::sort(values.begin(), values.end());
  HistogramSnapshot snapshot;
  snapshot.add(histogram);
  EXPECT_EQ(snapshot.total(), values.size());
  EXPECT_EQ(snapshot.max(), values.back());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const std::uint64_t exact = values[static_cast<std::size_t>(fraction * static_cast<double>(values.size())) - 1];
    EXPECT_GE(snapshot.percentile(fraction), exact);
    EXPECT_LE(static_cast<double>(snapshot.percentile(fraction)), static_cast<double>(exact) * (1 + 1.0 / 64) + 1);
  }
}

TEST(Histogram, SinceSubtracts) {
  Histogram histogram;
  histogram.add(10, 5);
  HistogramSnapshot before;
  before.add(histogram);
  histogram.add(1000, 3);
  HistogramSnapshot after;
  after.add(histogram);
  const HistogramSnapshot delta = after.since(before);
  EXPECT_EQ(delta.total(), 3U);
  EXPECT_EQ(delta.percentile(0.5), 1000U);
  EXPECT_EQ(delta.at_most(999), 0U);
}

}  // namespace
}  // namespace sluice::engine
