#include "function/policer.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::function {
namespace {

constexpr std::uint64_t hz = 2'500'000'000;

// Bytes that pass when frames of one length come back to back for so many ticks, from a moment well after start.
std::uint64_t passed(Policer& policer, std::uint32_t bytes, std::uint64_t ticks, std::uint64_t step) {
  std::uint64_t sum = 0;
  for (std::uint64_t now = hz; now < hz + ticks; now += step) sum += policer.take(bytes, now) ? bytes : 0;
  return sum;
}

struct Case {
  std::uint64_t rate_bits;
  std::uint64_t burst;
  std::uint32_t frame;
  double most_error;
};

// A little that a low rate would take long to fill is soon filled by a higher one: two frames at 1.2 kbit/s.
TEST(Policer, LacksAsManyBytesUnderAnotherRate) {
  Policer policer(1'200, 3028, hz);
  ASSERT_TRUE(policer.take(1514, hz));
  ASSERT_TRUE(policer.take(1514, hz));
  ASSERT_FALSE(policer.take(60, hz));
  policer.change(8'000'000, 3028, hz, hz);
  EXPECT_FALSE(policer.take(60, hz)) << "it lacks all of it still";
  EXPECT_TRUE(policer.take(60, hz + hz / 1'000'000 * 61)) << "60 bytes at 8 Mbit/s";
  EXPECT_FALSE(policer.take(3028, hz + hz / 1'000'000 * 62));
  // And of a smaller bucket no more than that.
  policer.change(8'000, 100, hz, 2 * hz);
  EXPECT_TRUE(policer.take(100, 2 * hz));
  policer.change(8'000, 50, hz, 2 * hz);
  EXPECT_TRUE(policer.take(50, 2 * hz + hz / 1'000 * 51)) << "50 bytes at 1,000 a second";
}

class PolicerTest : public testing::TestWithParam<Case> {};

TEST_P(PolicerTest, LetsPassRateTimesTimeAndBurst) {
  const Case& c = GetParam();
  Policer policer(c.rate_bits, c.burst, hz);
  const double rate_bytes = static_cast<double>(c.rate_bits) / 8;
  // So long that 20,000 frames pass; offered four times as fast.
  const auto ticks = static_cast<std::uint64_t>(20'000.0 * c.frame / rate_bytes * hz);
  const std::uint64_t step = std::max<std::uint64_t>(1, ticks / 80'000);
  const double wanted = 20'000.0 * c.frame + static_cast<double>(c.burst);
  const auto sum = static_cast<double>(passed(policer, c.frame, ticks, step));
  EXPECT_LE(sum, wanted * (1 + c.most_error) + c.frame);
  EXPECT_GE(sum, wanted * (1 - c.most_error) - c.frame);
}

INSTANTIATE_TEST_SUITE_P(Rates, PolicerTest,
                         testing::Values(Case{8'000, 1514, 64, 1e-4}, Case{1'000'000, 3000, 1514, 1e-4},
                                         Case{1'000'000'000, 65536, 1514, 1e-4}, Case{10'000'000'000, 65536, 64, 1e-3},
                                         Case{100'000'000'000, 1'000'000, 64, 1e-2}));

TEST(Policer, LetsNoFramePassThatIsLongerThanTheLargest) {
  Policer policer(8'000'000, 3000, hz, 200);
  EXPECT_FALSE(policer.take(201, hz));
  EXPECT_TRUE(policer.take(200, hz));
}

TEST(Policer, BeginsFullAndFillsUpToTheBurstOnly) {
  Policer policer(8'000'000, 3000, hz);  // a byte each microsecond
  EXPECT_TRUE(policer.take(1500, hz));
  EXPECT_TRUE(policer.take(1500, hz));
  EXPECT_FALSE(policer.take(1, hz));
  EXPECT_TRUE(policer.take(1000, hz + hz / 1000));  // a millisecond later
  EXPECT_FALSE(policer.take(10, hz + hz / 1000));
  const std::uint64_t much_later = 3600 * hz;
  EXPECT_FALSE(policer.take(3001, much_later)) << "more than the burst";
  EXPECT_TRUE(policer.take(3000, much_later));
  EXPECT_FALSE(policer.take(10, much_later));
  EXPECT_FALSE(policer.take(10, much_later - hz)) << "a clock that is behind gets nothing for it";
}

TEST(Policer, TheSlowestAndTheFastest) {
  Policer slow(1, 2000, hz);
  EXPECT_TRUE(slow.take(1514, hz));
  EXPECT_FALSE(slow.take(1514, hz + 3600 * hz));
  EXPECT_TRUE(slow.take(1514, hz + 24 * 3600 * hz)) << "12,112 bits in 24 hours";
  Policer fast(INT64_MAX, INT64_MAX, hz);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(fast.take(9000, hz));
}

TEST(Policer, LanesShareIt) {
  constexpr std::uint64_t burst = 1'000'000;
  Policer policer(1, burst, hz);
  std::vector<std::uint64_t> taken(4);
  std::vector<std::thread> lanes;
  for (std::uint64_t& mine : taken) {
    lanes.emplace_back([&] {
      for (int i = 0; i < 100'000; ++i) mine += policer.take(100, hz) ? 100 : 0;
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], burst);
}

}  // namespace
}  // namespace sluice::function
