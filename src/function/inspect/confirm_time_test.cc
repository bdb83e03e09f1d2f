#include "function/inspect/confirm_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::function {
namespace {

constexpr std::uint64_t whole = 64'000;

// What each frame gets of the time that it wants.
std::vector<std::uint64_t> given(const std::vector<std::uint64_t>& wanted) {
  ConfirmTime time;
  const auto count = static_cast<std::uint32_t>(wanted.size());
  time.begin(whole, count);
  std::vector<std::uint64_t> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    time.next(count - i);
    all.push_back(std::min(wanted[i], time.left()));
    time.spend(all.back());
  }
  return all;
}

TEST(ConfirmTime, IsUnlimitedBeforeItBegins) {
  ConfirmTime time;
  time.next(5);
  time.spend(1'000);
  EXPECT_EQ(time.left(), ConfirmTime::unlimited);
  EXPECT_TRUE(time.allows_search());
}

TEST(ConfirmTime, OfFramesThatAreNotReportedEachHasWhatIsLeft) {
  ConfirmTime time;
  time.begin(whole);
  time.spend(whole - 1);
  EXPECT_EQ(time.left(), 1U);
  time.spend(5);
  EXPECT_EQ(time.left(), 0U);
}

TEST(ConfirmTime, LongStepsAreCountedOverAllBatches) {
  ConfirmTime time;
  time.set_long_from(1'000);
  time.begin(whole);
  time.spend(999);
  EXPECT_EQ(time.long_steps().times, 0U);
  time.spend(1'000);
  time.begin(whole);
  time.spend_on_waiting(2'000);
  EXPECT_EQ(time.long_steps().times, 2U);
  EXPECT_EQ(time.long_steps().ticks, 3'000U);
}

TEST(ConfirmTime, ADearFrameTakesASixteenthAndLeavesTheRest) {
  std::vector<std::uint64_t> wanted(100, 400);
  wanted[0] = whole;
  const auto got = given(wanted);
  EXPECT_GE(got[0], whole / 16);
  EXPECT_LE(got[0], whole / 16 + whole / 200);
  for (std::size_t i = 1; i < got.size(); ++i) EXPECT_EQ(got[i], wanted[i]) << i;
}

// Half of what is common, a quarter of the whole; the frame's prefilter matches and the other frames have theirs still.
TEST(ConfirmTime, WhatWaitedTakesNoOtherFramesPartAndNotItsOwnsShare) {
  constexpr std::uint32_t frames = 100;
  ConfirmTime time;
  time.begin(whole, frames);
  time.next(frames);
  const std::uint64_t share = time.left();
  EXPECT_GE(time.left_for_waiting(), whole / 4);
  EXPECT_LE(time.left_for_waiting(), whole / 4 + whole / 200);
  while (time.left_for_waiting() != 0) time.spend_on_waiting(10);
  EXPECT_EQ(time.left(), share);
  EXPECT_LE(time.spent(), whole / 4 + whole / 100);
  for (std::uint32_t to_come = frames - 1; to_come != 0; --to_come) {
    time.next(to_come);
    while (time.left_for_waiting() != 0) time.spend_on_waiting(10);
    EXPECT_GE(time.left() + 10, whole / 2 / frames) << to_come;
    time.spend(time.left());
  }
  EXPECT_LE(time.spent(), whole);
}

TEST(ConfirmTime, WithoutALimitWhatWaitedHasNone) {
  ConfirmTime time;
  time.spend_on_waiting(1'000);
  EXPECT_EQ(time.left_for_waiting(), ConfirmTime::unlimited);
}

TEST(ConfirmTime, ManyDearFramesLeaveEachItsPart) {
  std::vector<std::uint64_t> wanted(100, whole);
  const std::uint64_t part = whole / 2 / wanted.size();
  for (std::size_t i = 3; i < wanted.size(); i += 4) wanted[i] = part;
  const auto got = given(wanted);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_GE(got[i], part) << i;
    sum += got[i];
  }
  EXPECT_LE(sum, whole);
  EXPECT_GE(sum, whole * 9 / 10) << "nothing is kept for nobody";
}

TEST(ConfirmTime, WhatIsLeftToTheFramesIsForThoseOfFewPrefilterMatches) {
  ConfirmTime time;
  time.begin(whole, 100);
  std::uint32_t many = 0, to_come = 100;
  for (; to_come > 20; --to_come) {
    time.next(to_come);
    if (!time.allows(5)) break;
    time.spend(time.left() + whole / 1'000);
    ++many;
  }
  EXPECT_GE(many, 10U);
  EXPECT_LE(many, 40U);
  EXPECT_TRUE(time.allows(4));
  for (; to_come > 1; --to_come) {
    time.next(to_come);
    EXPECT_GE(time.left(), whole / 200) << to_come;
    time.spend(whole / 200);
  }
}

TEST(ConfirmTime, TheOnlyFrameHasAll) {
  EXPECT_EQ(given({2 * whole}).front(), whole);
}

TEST(ConfirmTime, WhatAPrefilterMatchTakesTooLongIsTakenFromTheCommonHalfFirst) {
  ConfirmTime time;
  time.begin(whole, 100);
  time.next(100);
  time.spend(time.left() + whole / 4);
  time.next(99);
  EXPECT_GE(time.left(), whole / 200);
  time.next(98);
  time.spend(whole);
  EXPECT_EQ(time.left(), 0U) << "the whole is used up";
}

TEST(ConfirmTime, SearchesEndWhileThePartsAreUntouched) {
  ConfirmTime time;
  time.begin(whole, 1'000);
  std::uint64_t searched = 0;
  for (std::uint32_t to_come = 1'000; to_come != 0; --to_come) {
    time.next(to_come);
    if (!time.allows_search()) break;
    time.spend(whole / 50);
    searched += whole / 50;
  }
  EXPECT_GE(searched, whole / 5);
  EXPECT_LE(searched, whole / 3);
}

}  // namespace
}  // namespace sluice::function
