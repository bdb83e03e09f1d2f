#include "ipsec/line_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <vector>

#include "ipsec/slot_pool.h"

namespace sluice::ipsec {
namespace {

// Keys are the values' own hashes.
std::vector<std::uint32_t> all_of(const LineTable& table, std::uint64_t hash) {
  std::vector<std::uint32_t> found;
  table.find(hash, [&](std::uint32_t index) {
    found.push_back(index);
    return false;
  });
  std::ranges::sort(found);
  return found;
}

TEST(LineTable, FindsWhatIsThereAndNothingElse) {
  LineTable table(64);
  std::mt19937_64 random(1);
  std::unordered_map<std::uint32_t, std::uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const auto index = static_cast<std::uint32_t>(random() % 256);  // four times what there is capacity for
    const auto at = model.find(index);
    if (at == model.end()) {
      const std::uint64_t hash = random() % 8 == 0 ? 5 : random();
      table.insert(hash, index);
      model.emplace(index, hash);
    } else if (random() % 4 == 0) {
      const auto by = static_cast<std::uint32_t>(256 + random() % 256);
      if (model.contains(by)) continue;
      table.replace(at->second, index, by);
      model.emplace(by, at->second);
      model.erase(index);
    } else {
      table.erase(at->second, index);
      model.erase(at);
    }
    if (step % 50 != 0) continue;
    for (const auto& [index, hash] : model) {
      const std::uint32_t there = index;
      EXPECT_EQ(table.find(hash, [&](std::uint32_t candidate) { return candidate == there; }), there);
      EXPECT_NE(table.probable(hash), LineTable::none);
    }
    std::vector<std::uint32_t> same;
    for (const auto& [there, hash] : model) {
      if (hash == 5) same.push_back(there);
    }
    std::ranges::sort(same);
    ASSERT_EQ(all_of(table, 5), same);
    for (std::uint32_t absent = 0; absent < 512; ++absent) {
      if (!model.contains(absent)) {
        ASSERT_EQ(table.find(5, [&](std::uint32_t candidate) { return candidate == absent; }), LineTable::none);
      }
    }
  }
}

TEST(LineTable, SaysWhatIsProbable) {
  LineTable table(16);
  EXPECT_EQ(table.probable(77), LineTable::none);
  table.insert(77, 0);
  EXPECT_EQ(table.probable(77), 0U);
  table.erase(77, 0);
  EXPECT_EQ(table.probable(77), LineTable::none);
  table.erase(77, 0);  // not there: nothing happens
  EXPECT_EQ(table.probable(77), LineTable::none);
}

TEST(SlotPool, GivesSlotsAndTakesThemBack) {
  struct Object {
    Object(int& alive, int value) : alive(alive), value(value) { ++alive; }
    ~Object() { --alive; }
    int& alive;
    int value;
  };
  int alive = 0;
  SlotPool<Object> pool(3);
  auto first = pool.make(alive, 1);
  EXPECT_EQ(pool.next_index(), 1U);
  auto second = pool.make(alive, 2);
  auto third = pool.make(alive, 3);
  EXPECT_EQ(pool.make(alive, 4), nullptr);
  EXPECT_EQ(pool.used(), 3U);
  EXPECT_EQ(pool.at(pool.index_of(second.get())), second.get());
  const Object* const where = second.get();
  second.reset();
  EXPECT_EQ(alive, 2);
  EXPECT_EQ(pool.next_index(), 1U);
  second = pool.make(alive, 5);
  EXPECT_EQ(second.get(), where);
  EXPECT_EQ(second->value, 5);
  EXPECT_EQ(third->value, 3);
}

}  // namespace
}  // namespace sluice::ipsec
