// The order of items in warps: what holds of any batch, and what the paper's bins say.
#include "device/warp_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace sluice::device {
namespace {

constexpr unsigned kinds = 5, ranges = 6;

struct Item {
  unsigned kind;
  std::uint32_t length;
  unsigned label() const { return kind * ranges + std::min(length / 256, ranges - 1); }
};

// A schedule with memory for what it gives.
class Scheduler {
 public:
  explicit Scheduler(WarpGrouping grouping, bool mixes_kinds = false, std::uint32_t bin_items = 32)
      : times(kinds, ranges, 256),
        schedule({.max_items = 9000,
                  .kinds = kinds,
                  .bin_items = bin_items,
                  .mixes_kinds = mixes_kinds,
                  .grouping = grouping},
                 times),
        items_(schedule.most_items()),
        labels_(schedule.most_labels()) {}

  WarpOrder order(const std::vector<Item>& items) {
    for (const Item& item : items) schedule.add(item.kind, item.length);
    return schedule.order(items_, labels_);
  }

  WarpTimes times;
  WarpSchedule schedule;

 private:
  std::vector<std::uint16_t> items_, labels_;
};

std::vector<Item> random_items(std::mt19937& random, std::size_t count, unsigned most_kinds = kinds) {
  std::vector<Item> items(count);
  for (Item& item : items)
    item = {static_cast<unsigned>(random() % most_kinds), static_cast<std::uint32_t>(40 + random() % 1500)};
  return items;
}

std::size_t leftover_warps(const WarpOrder& order) {
  return static_cast<std::size_t>(
      std::find_if(order.labels.begin(), order.labels.end(), [](auto label) { return label != mixed_label; }) -
      order.labels.begin());
}

// What holds of any order: each item once, no_item only at the end of a mixed bin, of one only where kinds are mixed,
// and of one kind only where not; warps of one label where one is told, and items of a warp and of a label as they were
// in the batch.
void expect_sound(const WarpOrder& order, const std::vector<Item>& items, std::uint32_t bin_items, bool mixes_kinds) {
  ASSERT_EQ(order.items.size() % bin_items, 0U);
  ASSERT_LE(order.items.size(), items.size() + (mixes_kinds ? 1 : kinds) * (bin_items - 1));
  ASSERT_EQ(order.labels.size(), order.items.size() / 32);
  std::vector<bool> seen(items.size());
  const std::size_t leftovers = leftover_warps(order);
  std::vector<int> last(kinds * ranges, -1);
  for (std::size_t at = 0; at < order.items.size(); ++at) {
    const std::uint16_t item = order.items[at], label = order.labels[at / 32];
    if (item == no_item) {
      ASSERT_LT(at / 32, leftovers) << "in a full bin";
      ASSERT_TRUE((at + 1) % bin_items == 0 || order.items[at + 1] == no_item);
      ASSERT_TRUE(!mixes_kinds || at / bin_items + 1 == leftovers * 32 / bin_items) << "not in the last mixed bin";
      continue;
    }
    ASSERT_LT(item, items.size());
    ASSERT_FALSE(seen[item]) << "item " << item << " twice";
    seen[item] = true;
    if (at / 32 < leftovers) {
      ASSERT_EQ(label, mixed_label);
      const std::uint16_t first = order.items[at / bin_items * bin_items];
      ASSERT_TRUE(mixes_kinds || items[item].kind == items[first].kind);
      continue;
    }
    ASSERT_EQ(items[item].label(), label) << "at " << at;
    ASSERT_GT(item, last[label]) << "out of the batch's order";
    last[label] = item;
  }
  ASSERT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(items.size()));
}

TEST(WarpSchedule, ItemsOfAFullBinHaveOneLabel) {
  std::mt19937 random(1);
  for (const std::uint32_t bin_items : {32, 64, 128}) {
    for (const WarpGrouping grouping : {WarpGrouping::by_both, WarpGrouping::sorted}) {
      for (const bool mixes_kinds : {false, true}) {
        Scheduler scheduler(grouping, mixes_kinds, bin_items);
        for (const std::size_t count : {0, 1, 31, 32, 33, 1000, 8192, 9000, 64}) {
          SCOPED_TRACE(std::string(warp_grouping_name(grouping)) + ", " + std::to_string(count) + " items in bins of " +
                       std::to_string(bin_items));
          const auto items = random_items(random, count);
          const WarpOrder order = scheduler.order(items);
          ASSERT_NO_FATAL_FAILURE(expect_sound(order, items, bin_items, mixes_kinds));
          EXPECT_EQ(scheduler.schedule.count(), 0U);
          EXPECT_LE(order.items.size(), scheduler.schedule.most_items());
        }
      }
    }
  }
}

// A wait bin never holds a whole bin, so there are as many full bins as there can be.
TEST(WarpSchedule, LeftoversAreFirstAndFew) {
  std::mt19937 random(2);
  const auto items = random_items(random, 8192);
  std::vector<std::size_t> of_label(kinds * ranges), of_kind(kinds);
  for (const Item& item : items) ++of_label[item.label()];
  for (std::size_t label = 0; label < of_label.size(); ++label) of_kind[label / ranges] += of_label[label] % 32;
  std::size_t left = 0, apart = 0;
  for (const std::size_t count : of_kind) {
    left += count;
    apart += (count + 31) / 32;
  }
  EXPECT_EQ(leftover_warps(Scheduler(WarpGrouping::sorted, true).order(items)), (left + 31) / 32);
  EXPECT_EQ(leftover_warps(Scheduler(WarpGrouping::sorted, false).order(items)), apart);
}

// Mixed bins hold what is left of a label together: there are as many changes as labels.
TEST(WarpSchedule, LeftoversStandByLabel) {
  std::mt19937 random(3);
  Scheduler scheduler(WarpGrouping::sorted);
  const auto items = random_items(random, 700);
  const WarpOrder order = scheduler.order(items);
  std::set<unsigned> met;
  unsigned now = ~0U;
  for (const std::uint16_t item : order.items.first(leftover_warps(order) * 32)) {
    if (item == no_item || items[item].label() == now) continue;
    now = items[item].label();
    EXPECT_TRUE(met.insert(now).second) << "label " << now << " is in two places";
  }
  EXPECT_GT(met.size(), 20U);
}

TEST(WarpSchedule, LongestBinsAreFirstBeforeAnythingIsMeasured) {
  std::mt19937 random(4);
  Scheduler scheduler(WarpGrouping::sorted);
  const WarpOrder order = scheduler.order(random_items(random, 8192));
  const auto labels = order.labels.subspan(leftover_warps(order));
  ASSERT_GT(labels.size(), 200U);
  EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end(), [](auto a, auto b) { return a % ranges > b % ranges; }));
}

TEST(WarpSchedule, LongestBinsAreFirstByWhatWasMeasured) {
  std::mt19937 random(5);
  Scheduler scheduler(WarpGrouping::sorted);
  for (int round = 0; round < 20; ++round) {
    for (unsigned label = 0; label < kinds * ranges; ++label) {
      for (int i = 0; i < 100; ++i) scheduler.times.learn(label, 1.0F + static_cast<float>((label * 7 + round) % 30));
    }
    const auto items = random_items(random, 8192);
    const WarpOrder order = scheduler.order(items);
    ASSERT_NO_FATAL_FAILURE(expect_sound(order, items, 32, false));
    const auto labels = order.labels.subspan(leftover_warps(order));
    ASSERT_GT(labels.size(), 200U);
    const auto time = [&](std::uint16_t label) { return scheduler.times.of(label); };
    EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end(), [&](auto a, auto b) { return time(a) > time(b); }));
  }
}

TEST(WarpSchedule, GroupsByOneOfTwoOrNone) {
  std::mt19937 random(6);
  const auto items = random_items(random, 5000);
  const auto pure_warps = [&](WarpGrouping grouping, auto&& group) {
    Scheduler scheduler(grouping);
    const WarpOrder order = scheduler.order(items);
    EXPECT_EQ(leftover_warps(order), order.labels.size());  // no whole label is told
    std::set<std::uint16_t> seen;
    std::size_t pure = 0;
    for (std::size_t w = 0; w < order.labels.size(); ++w) {
      std::set<unsigned> groups;
      for (const std::uint16_t item : order.items.subspan(w * 32, 32)) {
        if (item == no_item) continue;
        EXPECT_TRUE(seen.insert(item).second);
        groups.insert(group(items[item]));
      }
      pure += groups.size() == 1;
    }
    EXPECT_EQ(seen.size(), items.size());
    return pure;
  };
  const auto by_kind = [](const Item& item) { return item.kind; };
  const auto by_length = [](const Item& item) { return item.label() % ranges; };
  EXPECT_GE(pure_warps(WarpGrouping::by_kind, by_kind), (5000 - kinds * 31) / 32);
  EXPECT_GE(pure_warps(WarpGrouping::by_length, by_length), (5000 - ranges * 31) / 32);
  EXPECT_EQ(pure_warps(WarpGrouping::none, by_kind), 0U);
}

TEST(WarpSchedule, NoGroupingIsTheOrderOfTheBatch) {
  Scheduler scheduler(WarpGrouping::none);
  const WarpOrder order = scheduler.order(std::vector<Item>(70, Item{0, 100}));
  ASSERT_EQ(order.items.size(), 96U);
  for (std::uint16_t i = 0; i < 96; ++i) EXPECT_EQ(order.items[i], i < 70 ? i : no_item);
}

TEST(WarpSchedule, AKindTooHighIsTheLast) {
  Scheduler scheduler(WarpGrouping::sorted);
  const WarpOrder order = scheduler.order(std::vector<Item>(32, Item{200, 70'000}));
  ASSERT_EQ(order.labels.size(), 1U);
  EXPECT_EQ(order.labels[0], kinds * ranges - 1);
}

TEST(WarpTimes, WhatIsMeasuredScalesWhatIsNot) {
  WarpTimes times(2, 6, 256);
  EXPECT_GT(times.of(5), 2 * times.of(0));
  const float before = times.of(7);
  times.learn(1, times.of(1) * 1000);
  EXPECT_NEAR(times.of(7), before * 1000, before);
}

TEST(WarpTimes, FollowsWhatIsMeasured) {
  WarpTimes times(1, 6, 256);
  times.learn(3, 5000);
  EXPECT_EQ(times.of(3), 5000);
  times.learn(3, 6600);
  EXPECT_EQ(times.of(3), 5100);
  for (int i = 0; i < 200; ++i) times.learn(3, 700);
  EXPECT_NEAR(times.of(3), 700, 1);
}

TEST(WarpTimes, LearnsFromABatchOfWarps) {
  WarpTimes times(1, 6, 256);
  const std::vector<std::uint16_t> labels = {mixed_label, 5, 2, 2};
  const std::vector<std::uint32_t> measured = {900'000, 50, 0, 20};
  times.learn(labels, measured);
  EXPECT_EQ(times.of(5), 50);
  EXPECT_EQ(times.of(2), 20);
}

}  // namespace
}  // namespace sluice::device
