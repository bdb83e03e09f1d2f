#include "ipsec/lifetime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::ipsec {
namespace {

using Result = LifetimeShares::Result;

TEST(LaneCounts, SumsUpWhatLanesCount) {
  LaneCounts counts(3, 100);
  counts.add(0, 7, 1, 100);
  counts.add(2, 7, 2, 50);
  counts.add(1, 8, 1, 1);
  EXPECT_EQ(counts.sum(7), (Count{3, 150}));
  EXPECT_EQ(counts.sum(8), (Count{1, 1}));
  counts.clear(7);
  EXPECT_EQ(counts.sum(7), Count{});
  EXPECT_EQ(counts.sum(8), (Count{1, 1}));
}

TEST(Lifetime, OfOneLaneEndsExactlyAtItsHardLimit) {
  LifetimeBudget budget;
  LifetimeShares shares(1, 4);
  budget.set({.hard = 1000}, {}, {});
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(shares.take(0, 2, budget, 1, 1400), Result::fine);
  EXPECT_EQ(shares.take(0, 2, budget, 1, 1400), Result::hard);
  EXPECT_EQ(shares.take(0, 2, budget, 1, 1400), Result::hard);
}

TEST(Lifetime, InBytesEndsWhereAPacketDoesNotFit) {
  LifetimeBudget budget;
  LifetimeShares shares(1, 1);
  budget.set({}, {.hard = 10'000}, {});
  for (int i = 0; i < 7; ++i) ASSERT_EQ(shares.take(0, 0, budget, 1, 1400), Result::fine);
  EXPECT_EQ(shares.take(0, 0, budget, 1, 1400), Result::hard);
  EXPECT_EQ(shares.take(0, 0, budget, 1, 200), Result::fine);
  EXPECT_EQ(shares.take(0, 0, budget, 1, 1), Result::hard);
}

TEST(Lifetime, SaysTheSoftLimitOnceAndNeverLate) {
  for (const std::size_t lanes : {1U, 8U}) {
    LifetimeBudget budget;
    LifetimeShares shares(lanes, 1);
    budget.set({.soft = 5000, .hard = 10'000}, {.soft = 100'000'000}, {});
    std::uint64_t said_at = 0, said = 0;
    for (std::uint64_t packets = 1; packets <= 8000; ++packets) {
      const Result result = shares.take(static_cast<std::uint32_t>(packets % lanes), 0, budget, 1, 100);
      ASSERT_NE(result, Result::hard);
      if (result != Result::soft) continue;
      said_at = packets;
      ++said;
    }
    EXPECT_EQ(said, 1U);
    EXPECT_TRUE(budget.soft_reached());
    EXPECT_LE(said_at, 5000U);
    EXPECT_GE(said_at, 5000U - 5000U / 8);
  }
}

TEST(Lifetime, LimitsThatComeLaterCountWhatWas) {
  LifetimeBudget budget;
  LifetimeShares shares(1, 1);
  budget.set({.hard = 100}, {}, {.packets = 90, .bytes = 9000});
  for (int i = 0; i < 10; ++i) ASSERT_EQ(shares.take(0, 0, budget, 1, 100), Result::fine);
  EXPECT_EQ(shares.take(0, 0, budget, 1, 100), Result::hard);
  budget.set({.hard = 110}, {.hard = 10'100}, {.packets = 100, .bytes = 10'000});
  EXPECT_EQ(shares.take(0, 0, budget, 1, 100), Result::fine);
  EXPECT_EQ(shares.take(0, 0, budget, 1, 100), Result::hard);
}

TEST(Lifetime, ManyLanesStayWithinTheHardLimitAndNearIt) {
  constexpr std::uint32_t lanes = 4;
  for (const std::uint64_t limit : {std::uint64_t{40}, std::uint64_t{1000}, std::uint64_t{300'000}}) {
    LifetimeBudget budget;
    LifetimeShares shares(lanes, 1);
    budget.set({.hard = limit}, {.hard = limit * 100}, {});
    std::atomic<std::uint64_t> passed{0}, bytes{0};
    std::vector<std::thread> threads;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      threads.emplace_back([&, lane] {
        for (std::uint32_t run = 1;; run = run % 3 + 1) {
          if (shares.take(lane, 0, budget, run, 100 * run) == Result::hard) break;
          passed += run;
          bytes += 100 * run;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(passed, limit);
    EXPECT_LE(bytes, limit * 100);
    // What the header says is lost at most, and a run that did not fit.
    EXPECT_GE(passed + std::min<std::uint64_t>(limit / 8, lanes * 256) + 3 * lanes, limit);
  }
}

// Lanes that stop early keep their shares, and the others lose no more than the header says.
TEST(Lifetime, IdleLanesHoldLittle) {
  constexpr std::uint32_t lanes = 64;
  LifetimeBudget budget;
  LifetimeShares shares(lanes, 1);
  budget.set({.hard = 10'000}, {}, {});
  for (std::uint32_t lane = 1; lane < lanes; ++lane) ASSERT_EQ(shares.take(lane, 0, budget, 1, 1), Result::fine);
  std::uint64_t passed = lanes - 1;
  while (shares.take(0, 0, budget, 1, 1) != Result::hard) ++passed;
  EXPECT_LE(passed, 10'000U);
  EXPECT_GE(passed, 10'000U - 10'000U / 8);
}

}  // namespace
}  // namespace sluice::ipsec
