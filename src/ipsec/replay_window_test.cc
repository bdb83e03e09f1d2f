#include "ipsec/replay_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace sluice::ipsec {
namespace {

constexpr std::uint64_t wrap = std::uint64_t{1} << 32;

// RFC 4303 section 3.4.3 as it is said: all numbers that came, and the window's edge.
class Model {
 public:
  Model(std::uint32_t size, std::uint64_t highest) : size_(size), highest_(highest), begun_(highest) {}

  bool may_be_new(std::uint64_t number) const {
    if (number == 0 || number + size_ <= highest_) return false;
    return number > begun_ && !received_.contains(number);
  }
  bool accept(std::uint64_t number) {
    if (!may_be_new(number)) return false;
    received_.insert(number);
    highest_ = std::max(highest_, number);
    return true;
  }
  std::uint64_t highest() const { return highest_; }

 private:
  std::uint32_t size_;
  std::uint64_t highest_, begun_;
  std::set<std::uint64_t> received_;
};

TEST(ReplayWindow, AcceptsANumberOnce) {
  ReplayWindow window(64);
  EXPECT_FALSE(window.may_be_new(0));
  EXPECT_FALSE(window.accept(0));
  EXPECT_TRUE(window.may_be_new(1));
  EXPECT_TRUE(window.accept(1));
  EXPECT_FALSE(window.may_be_new(1));
  EXPECT_FALSE(window.accept(1));
  EXPECT_TRUE(window.accept(3));
  EXPECT_TRUE(window.accept(2));
  EXPECT_FALSE(window.accept(2));
  EXPECT_EQ(window.highest(), 3U);
}

TEST(ReplayWindow, IsAsLargeAsItSays) {
  for (const std::uint32_t size : {1U, 2U, 31U, 32U, 33U, 63U, 64U, 65U, 96U, 97U, 100U, 1024U, 4095U, 4096U}) {
    for (const std::uint64_t top : {std::uint64_t{10'000}, std::uint64_t{10'015}, std::uint64_t{10'016}}) {
      ReplayWindow window(size);
      ASSERT_TRUE(window.accept(top));
      EXPECT_FALSE(window.may_be_new(top - size)) << size;
      EXPECT_FALSE(window.accept(top - size));
      if (size == 1) continue;
      EXPECT_TRUE(window.may_be_new(top - size + 1)) << size;
      EXPECT_TRUE(window.accept(top - size + 1));
      EXPECT_FALSE(window.accept(top - size + 1));
    }
  }
}

TEST(ReplayWindow, TakesWhatCameBeforeItBeganForReceived) {
  for (const std::uint64_t highest :
       {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{32}, std::uint64_t{5000}, wrap}) {
    ReplayWindow window(128, highest);
    for (std::uint64_t back = 0; back <= std::min<std::uint64_t>(highest, 200); ++back) {
      ASSERT_FALSE(window.may_be_new(highest - back));
      ASSERT_FALSE(window.accept(highest - back));
    }
    EXPECT_TRUE(window.accept(highest + 2));
    EXPECT_TRUE(window.accept(highest + 1));
    EXPECT_FALSE(window.accept(highest));
  }
}

// Random numbers about the edges, with jumps, as single ones and as runs of a burst.
TEST(ReplayWindow, DoesWhatTheModelDoes) {
  std::mt19937_64 random(7);
  for (const std::uint32_t size : {1U, 32U, 64U, 100U, 1000U, 4096U}) {
    for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{77}, wrap - 3000, 3 * wrap - 100}) {
      ReplayWindow window(size, begin);
      Model model(size, begin);
      int accepted = 0, refused = 0;
      for (int burst = 0; burst < 1500; ++burst) {
        std::vector<std::uint64_t> numbers(1 + random() % 40);
        std::uint64_t next = model.highest() + 1;
        for (std::uint64_t& number : numbers) {
          const std::uint64_t back = std::min<std::uint64_t>(model.highest(), random() % (2 * size + 40));
          switch (random() % 16) {
            case 0:
              number = model.highest() - back;
              break;
            case 1:
              number = next += random() % 50;
              break;
            case 2:
              number = random() % 200 == 0 ? next += 10'000 : next;
              break;
            case 3:
              number = numbers.front();
              break;
            case 4:
              number = model.highest() - std::min<std::uint64_t>(model.highest(), size - random() % 2);
              break;
            default:
              number = next++;
          }
        }
        std::vector<char> may(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          may[i] = window.may_be_new(numbers[i]) ? 1 : 0;
          ASSERT_EQ(may[i] != 0, model.may_be_new(numbers[i])) << numbers[i] << " at " << model.highest();
        }
        const auto results = std::make_unique<bool[]>(numbers.size());
        if (burst % 2 == 0) {
          window.accept_run(numbers, results.get());
        } else {
          for (std::size_t i = 0; i < numbers.size(); ++i) results[i] = window.accept(numbers[i]);
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          ASSERT_EQ(results[i], model.accept(numbers[i])) << numbers[i] << ", highest " << model.highest();
          ++(results[i] ? accepted : refused);
        }
        ASSERT_EQ(window.highest(), model.highest());
      }
      EXPECT_GT(accepted, 10'000);
      EXPECT_GT(refused, 1'000);
    }
  }
}

// RFC 4303 appendix A2.2, both cases, at each edge.
TEST(ReplayWindow, ExtendsTheLowHalf) {
  struct Case {
    std::uint64_t highest;
    std::uint32_t low;
    std::optional<std::uint64_t> number;
  };
  constexpr std::uint32_t size = 64;
  const Case cases[] = {
      {1000, 1001, 1001},
      {1000, 1000, 1000},
      {1000, 937, 937},         // the window's first
      {1000, 936, wrap + 936},  // before it: of the next half space
      {1000, 0xffffffff, 0xffffffff},
      {63, 0, 0},                      // T = W - 1: still case A
      {62, 0xffffffff, std::nullopt},  // case B, where there is no half space before
      {62, 5, 5},
      {wrap + 62, 0xffffffff, wrap - 1},
      {wrap + 62, 5, wrap + 5},
      {wrap + 63, 0xffffffff, 2 * wrap - 1},
      {wrap, 0xffffffc1, wrap - 63},  // the window's first
      {wrap, 0xffffffc0, wrap + 0xffffffc0},
      {wrap - 1, 0, wrap},
      {~std::uint64_t{0}, 5, std::nullopt},  // there is no half space behind
      {~std::uint64_t{0}, 0xfffffff0, ~std::uint64_t{0} - 15},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(ReplayWindow(size, one.highest).extend(one.low), one.number) << one.highest << ", " << one.low;
  }
}

// What a sender counts, a receiver finds: through the wrap of the low half, with loss and disorder.
TEST(ReplayWindow, FollowsASenderOverTheWrap) {
  std::mt19937_64 random(3);
  for (const std::uint32_t size : {64U, 4096U}) {
    ReplayWindow window(size, 5 * wrap - 20'000);
    std::vector<std::uint64_t> sent;
    for (std::uint64_t number = 5 * wrap - 19'999; number < 5 * wrap + 20'000; ++number) sent.push_back(number);
    for (std::size_t i = 0; i + 1 < sent.size(); ++i)
      std::swap(sent[i], sent[i + random() % std::min<std::size_t>(size / 4, sent.size() - i)]);
    int late = 0;
    for (const std::uint64_t number : sent) {
      if (random() % 10 == 0) continue;
      const auto found = window.extend(static_cast<std::uint32_t>(number));
      if (number + size <= window.highest()) {
        ++late;
        continue;
      }
      ASSERT_EQ(found, number);
      ASSERT_TRUE(window.accept(*found));
      ASSERT_FALSE(window.accept(*found));
    }
    EXPECT_LT(late, 1000);
  }
}

TEST(ReplayWindow, WithoutAWindowOnlyFollows) {
  ReplayWindow window(0, wrap - 1);
  EXPECT_EQ(window.extend(0), wrap);
  EXPECT_EQ(window.extend(0xfffffff0), wrap - 16);
  EXPECT_TRUE(window.may_be_new(wrap - 5));
  EXPECT_TRUE(window.accept(wrap + 5));
  EXPECT_TRUE(window.accept(wrap + 5));
  EXPECT_TRUE(window.accept(wrap - 5));
  EXPECT_EQ(window.highest(), wrap + 5);
}

// Lanes that each bring every packet: one of them has it accepted. Of a small window's blocks one may be gone while a
// lane that was preempted still looks at it.
void let_lanes_accept(std::uint32_t size, std::size_t packets) {
  constexpr std::size_t lanes = 4;
  ReplayWindow window(size, wrap - packets / 2);
  std::vector<std::atomic<std::uint8_t>> accepted(packets);
  std::vector<std::thread> threads;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane, packets] {
      std::mt19937_64 random(lane);
      std::array<std::uint64_t, 32> numbers{};
      std::array<bool, 32> results{};
      for (std::size_t first = 0; first < packets; first += numbers.size()) {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = wrap - packets / 2 + 1 + first + i;
        if (lane % 2 == 1) std::shuffle(numbers.begin(), numbers.end(), random);
        if (first / numbers.size() % 2 == 0) {
          window.accept_run(numbers, results.data());
        } else {
          for (std::size_t i = 0; i < numbers.size(); ++i) results[i] = window.accept(numbers[i]);
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (results[i]) accepted[numbers[i] - (wrap - packets / 2 + 1)].fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < packets; ++i) ASSERT_EQ(accepted[i].load(), 1U) << i;
  EXPECT_EQ(window.highest(), wrap + packets / 2);
}
TEST(ReplayWindow, LanesTogetherAcceptANumberOnce) {
  let_lanes_accept(1024, 1U << 16);
  let_lanes_accept(32, 1U << 21);
}

}  // namespace
}  // namespace sluice::ipsec
