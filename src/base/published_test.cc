#include "base/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

namespace sluice {
namespace {

// Counts those that live; `second` always equals `first` while one does.
struct Value {
  Value(int number, std::atomic<int>& alive) : first(number), second(number), alive(&alive) { ++alive; }
  ~Value() {
    --*alive;
    second = -1;
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  int first;
  volatile int second;
  std::atomic<int>* alive;
};

TEST(PublishedTest, AReaderKeepsWhatItReads) {
  std::atomic<int> alive{0};
  Published<const Value> current(2);
  EXPECT_FALSE(current.read(0));
  current.publish(std::make_unique<Value>(1, alive));
  {
    const auto reading = current.read(1);
    current.publish(std::make_unique<Value>(2, alive));
    EXPECT_EQ(current.reclaim(), 1U);
    EXPECT_EQ(reading->first, 1);
    EXPECT_EQ(current.read(0)->first, 2);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(current.reclaim(), 0U);
  EXPECT_EQ(alive, 1);
}

TEST(PublishedTest, AnOldTableStaysWhileSomebodyElseHoldsIt) {
  std::atomic<int> alive{0};
  Published<const Value> current(1);
  auto held = std::make_shared<const Value>(1, alive);
  current.publish(held);
  current.publish(std::make_shared<Value>(2, alive));
  EXPECT_EQ(current.reclaim(), 1U);
  current.pin(0, held.get());  // as a batch does that a device works on by it
  held.reset();
  EXPECT_EQ(current.reclaim(), 1U);
  current.unpin(0);
  EXPECT_EQ(current.reclaim(), 0U);
  EXPECT_EQ(alive, 1);
}

TEST(PublishedTest, TablesMayGoInOrder) {
  std::atomic<int> alive{0};
  Published<const Value> current(1);
  current.publish(std::make_shared<Value>(1, alive));
  current.pin(0);
  for (int next = 2; next < 5; ++next) current.publish(std::make_shared<Value>(next, alive));
  EXPECT_EQ(current.reclaim_in_order(), 3U);
  EXPECT_EQ(alive, 4);
  current.unpin(0);
  EXPECT_EQ(current.reclaim_in_order(), 0U);
  EXPECT_EQ(alive, 1);
}

// What is one reader's may change: counts that go on in the next one.
TEST(PublishedTest, AReaderTakesTheNextWhileItHasTheOld) {
  struct Counts {
    int seen = 0;
  };
  Published<Counts> current(2);
  current.publish(std::make_shared<Counts>());
  Counts* const before = current.pin(0);
  before->seen = 5;
  EXPECT_FALSE(current.has_newer(before));
  current.publish(std::make_shared<Counts>());
  ASSERT_TRUE(current.has_newer(before));
  Counts* const after = current.pin(1);
  EXPECT_EQ(current.reclaim(), 1U);
  after->seen = before->seen;
  current.unpin(0);
  EXPECT_EQ(current.reclaim(), 0U);
  EXPECT_EQ(after->seen, 5);
}

TEST(PublishedTest, ManyChangesBesideReaders) {
  std::atomic<int> alive{0};
  constexpr std::size_t readers = 3;
  constexpr int fewest_reads = 2000;  // of each reader, before the changes end
  Published<const Value> current(readers);
  current.publish(std::make_unique<Value>(0, alive));
  std::atomic<bool> stop{false};
  std::atomic<int> broken{0};
  std::array<std::atomic<int>, readers> reads{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < readers; ++i) {
    threads.emplace_back([&, i] {
      for (int last = 0; !stop;) {
        const auto reading = current.read(i);
        const int number = reading->first;
        broken += number < last || reading->second != number ? 1 : 0;
        last = number;
        ++reads[i];
      }
    });
  }
  const auto done = [&] { return std::all_of(reads.begin(), reads.end(), [](int n) { return n > fewest_reads; }); };
  for (int i = 1; !done(); ++i) {
    current.publish(std::make_unique<Value>(i, alive));
    ASSERT_LE(current.reclaim(), readers);
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(current.reclaim(), 0U);
  EXPECT_EQ(alive, 1);
}

}  // namespace
}  // namespace sluice
