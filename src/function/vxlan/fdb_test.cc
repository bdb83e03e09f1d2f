#include "function/vxlan/fdb.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::function {
namespace {

constexpr std::uint64_t station = 0x0a0000000002;

TEST(Fdb, KnowsWhatItLearned) {
  Fdb fdb(100);
  EXPECT_EQ(fdb.find(station), no_remote);
  EXPECT_EQ(fdb.learn(station, 0, 1), Fdb::Learned::added);
  EXPECT_EQ(fdb.find(station), 0);
  EXPECT_EQ(fdb.learn(station, 0, 2), Fdb::Learned::known);
  EXPECT_EQ(fdb.learn(station, 7, 2), Fdb::Learned::moved);
  EXPECT_EQ(fdb.find(station), 7);
  EXPECT_EQ(fdb.size(), 1U);
}

TEST(Fdb, HoldsNoMoreThanItMay) {
  Fdb fdb(16);
  unsigned added = 0, full = 0;
  for (std::uint64_t mac = 1; mac <= 100; ++mac) {
    const auto learned = fdb.learn(mac, 1, 1);
    added += learned == Fdb::Learned::added ? 1 : 0;
    full += learned == Fdb::Learned::full ? 1 : 0;
  }
  EXPECT_LE(added, 16U);
  EXPECT_GE(added, 12U);
  EXPECT_EQ(added + full, 100U);
  EXPECT_EQ(fdb.size(), added);
}

TEST(Fdb, ForgetsTheSilentAndTheGone) {
  Fdb fdb(100);
  fdb.learn(1, 1, 10);
  fdb.learn(2, 1, 20);
  fdb.learn(3, 2, 20);
  fdb.age(15);
  EXPECT_EQ(fdb.find(1), no_remote);
  EXPECT_EQ(fdb.find(2), 1);
  fdb.forget([](RemoteId id) { return id == 1; });
  EXPECT_EQ(fdb.find(2), no_remote);
  EXPECT_EQ(fdb.find(3), 2);
  EXPECT_EQ(fdb.size(), 1U);
}

// A reader sees a station with a remote that it once had, or not at all.
TEST(Fdb, ThreadsNeverSeeAnothersRemote) {
  Fdb fdb(64);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t now = 1; !stop.load(); ++now) {
        const std::uint64_t mac = 1 + now % 200;
        fdb.learn(mac, static_cast<RemoteId>(mac * 2 + t), now);
      }
    });
  }
  for (unsigned round = 0; round < 20'000; ++round) {
    const std::uint64_t mac = 1 + round % 200;
    const RemoteId found = fdb.find(mac);
    if (found != no_remote) {
      ASSERT_EQ(found / 2, mac);
    }
    if (round % 100 == 0) fdb.forget([&](RemoteId id) { return id % 3 == round % 3; });
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::function
