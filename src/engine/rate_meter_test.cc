#include "engine/rate_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

constexpr std::uint64_t hz = 1'000'000'000;

TEST(RateMeter, IsThatOfTheFullestWindow) {
  RateMeter meter(hz / 10);
  std::uint64_t now = hz;
  const auto send = [&](unsigned frames, std::uint64_t gap) {
    for (unsigned i = 0; i < frames; ++i, now += gap) meter.add(1250, now);
  };
  send(50, hz / 1000);
  EXPECT_EQ(meter.rate(hz), 0U) << "no window is over";
  send(450, hz / 1000);  // 10 Mbit/s for half a second
  EXPECT_EQ(meter.rate(hz), 10'000'000U);
  send(1000, hz / 2000);  // twice that
  EXPECT_EQ(meter.rate(hz), 20'000'000U);
  send(200, hz / 10);  // and nearly nothing
  EXPECT_EQ(meter.rate(hz), 20'000'000U);
}

TEST(RateMeter, CountsWindowsThatHaveAFrame) {
  RateMeter meter(hz / 10);
  EXPECT_EQ(meter.windows(), 0U);
  meter.add(100, hz);
  meter.add(100, hz + hz / 10 - 1);
  EXPECT_EQ(meter.windows(), 0U);
  meter.add(100, hz + hz / 10);
  EXPECT_EQ(meter.windows(), 1U);
  EXPECT_EQ(meter.rate(hz), 16'000U);
  meter.add(1, 100 * hz);
  meter.add(1, 100 * hz - 5);  // of a lane whose clock is behind
  EXPECT_EQ(meter.windows(), 2U) << "and none while nothing came";
  EXPECT_EQ(meter.rate(hz), 16'000U);
}

// Lanes together, with somebody who reads: no frame is counted twice or forgotten, and what is read never sinks.
TEST(RateMeter, IsEverybodys) {
  constexpr std::uint64_t window = 1000, frames = 200'000;
  RateMeter meter(window);
  std::atomic<std::uint64_t> clock{hz};
  std::atomic<bool> over{false};
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&] {
      for (std::uint64_t i = 0; i < frames; ++i) meter.add(1, clock.fetch_add(1) + 1);
    });
  }
  std::thread reader([&] {
    std::uint64_t rate = 0, windows = 0;
    while (!over) {
      const std::uint64_t rate_now = meter.rate(hz), windows_now = meter.windows();
      EXPECT_GE(rate_now, rate);
      EXPECT_GE(windows_now, windows);
      rate = rate_now;
      windows = windows_now;
    }
  });
  for (std::thread& lane : lanes) lane.join();
  over = true;
  reader.join();
  // A byte each tick: some of a window's may count for the next one, but the fullest has no less than the mean.
  EXPECT_GE(meter.rate(hz), 8 * hz / 100 * 99);
  EXPECT_LE(meter.windows(), 2 * frames / window);
  EXPECT_GT(meter.windows(), 0U);
}

}  // namespace
}  // namespace sluice::engine
