#include "flow/block_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "flow/buffer.h"

namespace sluice::flow {
namespace {

TEST(BlockPool, SizesAreRoundedUpToPowersOfTwo) {
  EXPECT_EQ(BlockPool::block_size(1), 256U);
  EXPECT_EQ(BlockPool::block_size(256), 256U);
  EXPECT_EQ(BlockPool::block_size(257), 512U);
  EXPECT_EQ(BlockPool::block_size(BlockPool::largest), BlockPool::largest);
  BlockPool pool(1);
  EXPECT_EQ(pool.capacity(), BlockPool::largest);
  EXPECT_EQ(pool.take(BlockPool::largest + 1), nullptr);
  EXPECT_EQ(pool.refused(), 1U);
}

TEST(BlockPool, WhatItHasItAnswers) {
  BlockPool pool(BlockPool::largest);
  EXPECT_TRUE(pool.has(BlockPool::largest));
  EXPECT_FALSE(pool.has(BlockPool::largest + 1));
  void* const block = pool.take(1);
  EXPECT_FALSE(pool.has(BlockPool::largest));
  EXPECT_TRUE(pool.has(BlockPool::largest / 2));
  EXPECT_TRUE(pool.has(1));
  while (pool.has(1)) ASSERT_NE(pool.take(1), nullptr);
  EXPECT_EQ(pool.take(1), nullptr);
  pool.give(block);
  EXPECT_TRUE(pool.has(256));
  EXPECT_FALSE(pool.has(257));
}

TEST(BlockPool, WhatRunsOutIsRefusedAndCounted) {
  BlockPool pool(BlockPool::largest);
  for (std::size_t i = 0; i < BlockPool::largest / 4096; ++i) {
    ASSERT_NE(pool.take(4096), nullptr);
  }
  EXPECT_EQ(pool.in_use(), pool.capacity());
  EXPECT_EQ(pool.take(1), nullptr);
  EXPECT_EQ(pool.refused(), 1U);
}

// Any order of takes and gives: blocks never overlap (each is filled with a value of its own), and once all are back
// the largest block can be taken again.
TEST(BlockPool, BlocksNeverOverlapAndJoinAgain) {
  BlockPool pool(2 * BlockPool::largest);
  std::mt19937 random(7);
  struct Taken {
    std::uint8_t* block;
    std::size_t size;
    std::uint8_t value;
  };
  std::vector<Taken> taken;
  const auto check = [](const Taken& one) {
    for (std::size_t i = 0; i < one.size; ++i) {
      ASSERT_EQ(one.block[i], one.value);
    }
  };
  for (int step = 0; step < 20000; ++step) {
    if (taken.empty() || random() % 5 < 3) {
      const std::size_t size = 1 + random() % (random() % 50 == 0 ? BlockPool::largest : 6000);
      if (std::uint8_t* const block = pool.take(size)) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
        taken.push_back({block, size, static_cast<std::uint8_t>(step)});
        std::memset(block, static_cast<std::uint8_t>(step), size);
        continue;
      }
    }
    if (!taken.empty()) {
      const std::size_t which = random() % taken.size();
      check(taken[which]);
      pool.give(taken[which].block);
      taken[which] = taken.back();
      taken.pop_back();
    }
  }
  EXPECT_GT(pool.refused(), 0U);
  for (const Taken& one : taken) {
    check(one);
    pool.give(one.block);
  }
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_NE(pool.take(BlockPool::largest), nullptr);
  EXPECT_NE(pool.take(BlockPool::largest), nullptr);
}

TEST(Buffer, GrowsWithinThePoolAndKeepsItsBytes) {
  BlockPool pool(BlockPool::largest);
  Buffer buffer;
  std::string wanted;
  for (int i = 0; i < 3000; ++i) {
    const std::string piece = std::to_string(i);
    wanted += piece;
    ASSERT_TRUE(buffer.append(pool, piece));
  }
  EXPECT_EQ(buffer.view(), wanted);
  EXPECT_EQ(pool.in_use(), buffer.capacity());
  buffer.drop_front(pool, 5000);
  EXPECT_EQ(buffer.view(), wanted.substr(5000));
  EXPECT_EQ(buffer.view(10, 3), wanted.substr(5010, 3));
  EXPECT_EQ(buffer.view(1U << 20, 3), "");
  EXPECT_FALSE(buffer.append(pool, std::string(BlockPool::largest, 'x')));
  EXPECT_EQ(buffer.view(), wanted.substr(5000)) << "what was there stays";
  buffer.drop_front(pool, wanted.size());
  EXPECT_EQ(pool.in_use(), 0U);
}

// Pages of this process that are in memory.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(BlockPool, HasAllItsPagesWhenTouched) {
  constexpr std::size_t bytes = 64U << 20;
  BlockPool pool(bytes);
  std::uint8_t* const block = pool.take(1000);
  ASSERT_NE(block, nullptr);
  std::memset(block, 0x5a, 1000);
  const std::size_t before = resident_bytes();
  pool.touch();
  EXPECT_GT(resident_bytes(), before + bytes / 10 * 9);
  EXPECT_EQ(std::count(block, block + 1000, 0x5a), 1000);
  pool.give(block);
  for (int i = 0; i < 64; ++i) ASSERT_NE(pool.take(BlockPool::largest), nullptr) << i;
}

}  // namespace
}  // namespace sluice::flow
