#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(BoundedQueue, GivesBackInOrderAndRefusesWhatItHasNoPlaceFor) {
  BoundedQueue<int> queue(4);
  int value = 0;
  EXPECT_FALSE(queue.pop(value));
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(queue.empty());
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.push(10 * round + i));
    EXPECT_FALSE(queue.push(99));
    EXPECT_FALSE(queue.empty());
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(queue.pop(value));
      EXPECT_EQ(value, 10 * round + i);
    }
    EXPECT_FALSE(queue.pop(value));
  }
}

TEST(BoundedQueue, HoldsAsManyAsAskedForOrMore) {
  for (const unsigned capacity : {0U, 1U, 3U, 100U}) {
    BoundedQueue<unsigned> queue(capacity);
    for (unsigned i = 0; i < capacity; ++i) EXPECT_TRUE(queue.push(i)) << capacity;
  }
}

TEST(BoundedQueue, LosesNothingBetweenThreads) {
  constexpr std::uint32_t each = 20'000, threads = 3;
  BoundedQueue<std::uint32_t> queue(64);
  std::vector<std::atomic<std::uint32_t>> seen(each * threads);
  std::atomic<std::uint32_t> left{each * threads};
  std::vector<std::thread> all;
  for (std::uint32_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < each; ++i) {
        while (!queue.push(t * each + i)) std::this_thread::yield();
      }
    });
    all.emplace_back([&] {
      for (std::uint32_t value = 0; left.load() != 0;) {
        if (!queue.pop(value)) {
          std::this_thread::yield();
          continue;
        }
        seen[value].fetch_add(1);
        left.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  for (const auto& count : seen) ASSERT_EQ(count.load(), 1U);
}

}  // namespace
}  // namespace sluice
