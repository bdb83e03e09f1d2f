#include "function/inspect/batch_budget.h"

#include <gtest/gtest.h>

namespace sluice::function {
namespace {

constexpr std::uint64_t most = 8'000, deadline = 100'000, patience = 70'000, now = 1'000'000, bytes = 1'000;

// Batches of 10 frames that cost so much besides each, and are fresh.
void go_through(BatchBudget& budget, std::uint64_t cost) {
  for (int t = 0; t < 100; ++t) {
    const std::uint64_t given = budget.begin(now, now, 10, 10 * bytes);
    budget.end(now + given + 10 * cost, given);
  }
}

TEST(BatchBudget, ABatchHasWhatIsLeftUntilItsOldestFrameHasToGo) {
  struct Case {
    std::uint64_t age, given;
  };
  for (const Case& one : {Case{0, most}, Case{patience - most, most}, Case{patience - 5'000, 5'000},
                          Case{patience - 1'000, 1'000}, Case{patience, most / 16}, Case{10 * patience, most / 16}}) {
    BatchBudget budget(most, deadline);
    EXPECT_EQ(budget.begin(now, now - one.age, 10, 10 * bytes), one.given) << one.age;
  }
}

TEST(BatchBudget, LessWhatItsFramesCostBesides) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  EXPECT_NEAR(static_cast<double>(budget.cost(bytes)), 700, 10);
  EXPECT_EQ(budget.begin(now, now, 80, 80 * bytes), most);
  EXPECT_NEAR(static_cast<double>(budget.begin(now, now, 94, 94 * bytes)), patience - 94 * 700, 500);
  EXPECT_NEAR(static_cast<double>(budget.begin(now, now - 10'000, 80, 80 * bytes)), patience - 10'000 - 80 * 700, 500);
  EXPECT_EQ(budget.begin(now, now, 1'000, 1'000 * bytes), most / 16);
  go_through(budget, 50);
  EXPECT_NEAR(static_cast<double>(budget.cost(bytes)), 50, 10);
}

TEST(BatchBudget, ABatchIsBehindWhenItsFramesHaveToGoBeforeTheyAreDone) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  budget.begin(now, now, 80, 80 * bytes);
  EXPECT_NE(budget.late_from(), 0U);
  budget.begin(now, now - 20'000, 80, 80 * bytes);
  EXPECT_EQ(budget.late_from(), 0U);
  budget.begin(now, now - 30'000, 10, 10 * bytes);
  EXPECT_NE(budget.late_from(), 0U);
}

TEST(BatchBudget, OnceABatchWasBehindTheNextOnesHaveToGoEarlier) {
  BatchBudget budget(most, deadline);
  budget.begin(now, now - patience - 1, 10, 10 * bytes);
  EXPECT_EQ(budget.late_from(), 0U);
  for (int t = 0; t < 255; ++t) {
    EXPECT_EQ(budget.begin(now, now - 40'000, 10, 10 * bytes), 5'000U) << t;
    EXPECT_NE(budget.late_from(), 0U);
  }
  EXPECT_EQ(budget.begin(now, now - 45'001, 10, 10 * bytes), most / 16);
  EXPECT_EQ(budget.late_from(), 0U);
  EXPECT_EQ(budget.begin(now, now - 60'000, 10, 10 * bytes), most);
  EXPECT_NE(budget.late_from(), 0U);
}

// Of a lane: batches that come so long after their oldest frame, and take so long besides.
struct Lane {
  // What it was given.
  std::uint64_t batch(std::uint64_t age, std::uint64_t cost) {
    begun += 30'000;
    const std::uint64_t given = budget.begin(begun, begun - age, 10, 10 * bytes);
    budget.end(begun + cost, 0);
    return given;
  }

  BatchBudget budget{most, deadline};
  std::uint64_t begun = 10 * now;
};

// As frames do that a device has had: they leave in time, and later than when 45 hundredths are over.
TEST(BatchBudget, ALaneWhoseFramesComeLateHasAllItsTimeAgainAfter256Batches) {
  for (const std::uint64_t age : {20'000, 40'000, 45'000, 45'001, 50'000}) {
    SCOPED_TRACE(age);
    Lane lane;
    for (int t = 0; t < 100; ++t) EXPECT_EQ(lane.batch(age, 10'000), most);
    lane.batch(2 * deadline, 10'000);
    std::uint64_t less = 0;
    for (int t = 0; t < 256; ++t) less += lane.batch(age, 10'000) < most ? 1 : 0;
    EXPECT_EQ(less, age + 10'000 + most > 45'000 ? 256U : 0U);
    for (int t = 0; t < 1'000; ++t) {
      EXPECT_EQ(lane.batch(age, 10'000), most) << t;
      EXPECT_NE(lane.budget.late_from(), 0U);
    }
  }
}

// A stall of the machine every two seconds, by batches of 290 us.
TEST(BatchBudget, ALaneThatStallsNowAndThenLooksAtWhatComesInTime) {
  for (const std::uint64_t age : {20'000, 40'000, 50'000}) {
    SCOPED_TRACE(age);
    Lane lane;
    std::uint64_t unseen = 0, least = 0;
    for (int stall = 0; stall < 20; ++stall) {
      lane.batch(deadline, 10'000);
      for (int t = 0; t < 6'896; ++t) {
        least += lane.batch(age, 10'000) == most / 16 ? 1 : 0;
        unseen += lane.budget.looks_until() < lane.begun + 10'000 ? 1 : 0;
      }
    }
    EXPECT_EQ(unseen, 0U);
    EXPECT_LE(least, 20U * 256);
  }
}

// Frames whose cost is nothing that the average knows, as of an attack by HTTP; what is not looked at costs a fifth.
TEST(BatchBudget, FramesLeaveInTimeThoughTheAverageIsWrongByHalf) {
  for (const std::uint64_t cost : {30'000, 40'000, 50'000, 60'000, 80'000}) {
    SCOPED_TRACE(cost);
    Lane lane;
    std::uint64_t late = 0, behind = 0, batches = 100'000;
    std::uint32_t random = 1;
    for (std::uint64_t t = 0; t < batches; ++t) {
      random = random * 1'664'525 + 1'013'904'223;
      const std::uint64_t needs = cost / 2 + (random >> 16) * cost / 65'536;
      lane.begun += deadline;
      const std::uint64_t oldest = lane.begun - 20'000;
      const std::uint64_t given = lane.budget.begin(lane.begun, oldest, 10, 10 * bytes);
      const std::uint64_t until = std::max(lane.budget.looks_until(), lane.begun) - lane.begun;
      const std::uint64_t takes = given + (needs <= until ? needs : until + (needs - until) / 5);
      lane.budget.end(lane.begun + takes, given);
      late += lane.begun + takes > oldest + deadline ? 1 : 0;
      behind += lane.begun + takes > oldest + patience + most ? 1 : 0;
    }
    EXPECT_EQ(late, 0U);
    EXPECT_LE(behind, batches / 100);
  }
}

TEST(BatchBudget, ABatchThatLeavesTooLateMakesTheNextOnesGoEarlier) {
  for (const bool late : {false, true}) {
    BatchBudget budget(most, deadline);
    budget.begin(now, now, 10, 10 * bytes);
    EXPECT_EQ(budget.late_from(), now + patience);
    budget.end(now + patience + (late ? 1 : 0), 0);
    budget.begin(2 * now, 2 * now, 10, 0);
    EXPECT_EQ(budget.late_from(), 2 * now + (late ? 45'000U : patience)) << late;
  }
}

constexpr std::uint64_t never = ~std::uint64_t{0};

TEST(BatchBudget, ABatchThatBeganInTimeLooksUntilItsOldestFrameHasToGo) {
  BatchBudget budget(most, deadline);
  budget.begin(now, now - 10'000, 10, 0);
  EXPECT_EQ(budget.looks_until(), now - 10'000 + patience);
  budget.begin(now, now - patience - 1, 10, 0);
  EXPECT_EQ(budget.looks_until(), never) << "it is not its doing";
  budget.begin(now, now - 60'000, 10, 0);
  EXPECT_EQ(budget.late_from(), 0U) << "by 45 hundredths";
  EXPECT_EQ(budget.looks_until(), now - 60'000 + patience);
}

TEST(BatchBudget, ALaneThatIsLateAgainAndAgainLooksNoLongerThanItSearches) {
  BatchBudget budget(most, deadline);
  std::uint64_t begun = now;
  // How long it looks.
  const auto goes = [&](bool late) {
    begun += 2 * deadline;
    budget.begin(begun, begun, 10, 0);
    const std::uint64_t looks = budget.looks_until() - begun;
    const std::uint64_t took = patience + (late ? 1 : 0);
    budget.end(begun + took, took);
    return looks;
  };
  for (int t = 0; t < 8; ++t) EXPECT_EQ(goes(true), patience) << t;
  EXPECT_EQ(goes(false), 45'000U);
  const auto comes_late = [&] {
    begun += 2 * deadline;
    budget.begin(begun, begun - patience - 1, 10, 0);
    budget.end(begun, 0);
    return budget.looks_until();
  };
  EXPECT_EQ(comes_late(), 0U) << "it is the traffic's doing";
  for (int t = 0; t < 256; ++t) EXPECT_EQ(goes(false), 45'000U) << t;
  for (int t = 256; t < 2047; ++t) EXPECT_EQ(goes(false), patience) << t;
  EXPECT_EQ(comes_late(), 0U);
  for (int t = 0; t < 2048; ++t) goes(false);
  EXPECT_EQ(comes_late(), never) << "one is forgotten";
  EXPECT_EQ(comes_late(), 0U);
}

// "Not at all" is for what is late by the seven tenths alone: all batches may come when 45 hundredths are over.
TEST(BatchBudget, ALaneThatIsLateAgainAndAgainLooksAtSomeOfWhatComesInTime) {
  Lane lane;
  const auto looks = [&](std::uint64_t age) {
    lane.batch(age, 0);
    return static_cast<std::int64_t>(lane.budget.looks_until() - lane.begun);
  };
  for (int t = 0; t < 8; ++t) {
    lane.begun += 2 * deadline;
    looks(patience + 1);
  }
  EXPECT_EQ(looks(0), 45'000);
  EXPECT_EQ(looks(30'000), 15'000);
  EXPECT_EQ(looks(40'000), 6'250) << "a sixteenth of the deadline";
  EXPECT_EQ(looks(60'000), 6'250);
  EXPECT_EQ(looks(69'000), 1'000) << "no longer than any other";
  looks(patience + 1);
  EXPECT_EQ(lane.budget.looks_until(), 0U);
  for (int t = 0; t < 256; ++t) looks(60'000);
  EXPECT_EQ(looks(60'000), 10'000);
}

TEST(BatchBudget, BatchesThatOneAbsenceMakesLateAreLateOnce) {
  BatchBudget budget(most, deadline);
  for (std::uint64_t stall = 1; stall <= 8; ++stall) {
    for (std::uint64_t b = 0; b < 16; ++b) {
      const std::uint64_t begun = now + 2 * deadline * stall + b * deadline / 10;
      budget.begin(begun, begun - patience - 1, 10, 0);
      EXPECT_EQ(budget.looks_until(), stall == 8 && b != 0 ? 0U : never) << stall << ' ' << b;
      budget.end(begun + 1, 0);
    }
  }
}

TEST(BatchBudget, LongFramesCostMoreThanShortOnes) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  EXPECT_GT(budget.cost(1'400), 850U);
  EXPECT_LT(budget.cost(60), 250U);
}

TEST(BatchBudget, OneLongAbsenceMakesNoFrameDear) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  budget.begin(now, now, 10, 10 * bytes);
  budget.end(1'000 * now, 0);
  EXPECT_LT(budget.cost(bytes), 1'000U);
}

TEST(BatchBudget, WhatCountersOfOtherCoresPutAheadHasNoAge) {
  BatchBudget budget(most, deadline);
  EXPECT_EQ(budget.begin(now, 2 * now, 10, 10 * bytes), most);
  budget.end(now - 1'000, 0);
  EXPECT_EQ(budget.cost(bytes), 0U);
}

TEST(BatchBudget, WithoutADeadlineEachBatchHasAll) {
  BatchBudget budget(most);
  EXPECT_EQ(budget.begin(now, 0, 10'000, 10'000 * bytes), most);
  budget.end(1'000 * now, 0);
  EXPECT_EQ(budget.begin(now, 0, 10'000, 10'000 * bytes), most);
}

// Four times what such frames do, and as long as is said; what confirming took, beyond its time too, is no part of it.
TEST(BatchBudget, BatchesThatAreLongAreCountedAndOthersAreNot) {
  BatchBudget first(most, deadline);
  first.set_long_from(28'000);
  first.begin(now, now, 10, 10 * bytes);
  first.end(now + 99'000, 0);
  EXPECT_EQ(first.long_batches().times, 0U) << "nothing is known of such frames yet";
  struct Case {
    std::uint64_t took, spent, beyond;
    bool is_long;
  };
  for (const Case& one : {Case{29'000, 0, 0, true}, Case{27'000, 0, 0, false}, Case{29'000, 2'000, 0, false},
                          Case{31'000, 2'000, 0, true}, Case{100'000, 8'000, 80'000, false}}) {
    for (const std::uint64_t long_from : {28'000U, 99'000U}) {
      SCOPED_TRACE(one.took);
      BatchBudget budget(most, deadline);
      go_through(budget, 700);
      budget.set_long_from(long_from);
      budget.begin(now, now, 10, 10 * bytes);
      budget.end(now + one.took, one.spent, one.beyond);
      EXPECT_EQ(budget.long_batches().times, one.is_long && long_from == 28'000 ? 1U : 0U);
      EXPECT_EQ(budget.long_batches().ticks, budget.long_batches().times == 0 ? 0 : one.took - one.spent - one.beyond);
    }
  }
}

}  // namespace
}  // namespace sluice::function
