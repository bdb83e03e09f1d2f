#include "engine/job_pace.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

constexpr std::uint64_t cycle = 16'000, slice = 1'000;

TEST(JobPace, FindsTheLargestBatchThatFitsItsSlice) {
  JobPace pace(slice, cycle, 256);
  std::uint32_t jobs = 0;
  for (int i = 0; i < 20; ++i) {
    jobs = pace.size();
    const std::uint64_t took = 100 + jobs * 10;
    ASSERT_LE(took, slice) << jobs;
    EXPECT_EQ(pace.took(jobs, took), cycle);
  }
  EXPECT_EQ(jobs, 64U);  // 740; 128 would take 1,380
}

TEST(JobPace, TakesNoMoreThanABatchMayHave) {
  JobPace pace(slice, cycle, 20);
  for (int i = 0; i < 20; ++i) pace.took(pace.size(), 10);
  EXPECT_EQ(pace.size(), 20U);
}

TEST(JobPace, TriesNoLargerOneThanThoseThatCome) {
  JobPace pace(slice, cycle, 256);
  for (int i = 0; i < 20; ++i) pace.took(1, 10);
  EXPECT_EQ(pace.size(), 2U);
}

TEST(JobPace, WaitsUntilTheExcessOfALongJobIsMadeUpFor) {
  JobPace pace(slice, cycle, 256);
  EXPECT_EQ(pace.took(1, 5'500), cycle * 11 / 2);
  EXPECT_TRUE(pace.is_long(5'500));
  EXPECT_FALSE(pace.is_long(slice));
  // As many as take twice as long, and then twice as many.
  for (int i = 0; i < 20; ++i) pace.took(pace.size(), 5'500 + pace.size() * 50);
  EXPECT_EQ(pace.size(), 128U);
}

// What waited for frames once is no measure of what it takes.
TEST(JobPace, BelievesTheLeastOfLate) {
  JobPace pace(slice, cycle, 256);
  EXPECT_GT(pace.took(1, 9'000), cycle);
  EXPECT_EQ(pace.took(1, 100), cycle);
  EXPECT_EQ(pace.took(1, 9'000), cycle);
  EXPECT_EQ(pace.size(), 2U);
  for (int i = 0; i < 60; ++i) pace.took(1, 9'000);
  EXPECT_GT(pace.took(1, 9'000), cycle) << "it has become dearer";
}

}  // namespace
}  // namespace sluice::engine
