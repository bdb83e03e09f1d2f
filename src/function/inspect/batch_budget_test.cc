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

TEST(BatchBudget, a_batch_has_what_is_left_until_its_oldest_frame_has_to_go) {
  struct Case {
    std::uint64_t age, given;
  };
  for (const Case& one : {Case{0, most}, Case{patience - most, most}, Case{patience - 5'000, 5'000},
                          Case{patience - 1'000, 1'000}, Case{patience, most / 16}, Case{10 * patience, most / 16}}) {
    BatchBudget budget(most, deadline);
    EXPECT_EQ(budget.begin(now, now - one.age, 10, 10 * bytes), one.given) << one.age;
  }
}

TEST(BatchBudget, less_what_its_frames_cost_besides) {
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

TEST(BatchBudget, a_batch_is_behind_when_its_frames_have_to_go_before_they_are_done) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  budget.begin(now, now, 80, 80 * bytes);
  EXPECT_NE(budget.late_from(), 0U);
  budget.begin(now, now - 20'000, 80, 80 * bytes);
  EXPECT_EQ(budget.late_from(), 0U);
  budget.begin(now, now - 30'000, 10, 10 * bytes);
  EXPECT_NE(budget.late_from(), 0U);
}

TEST(BatchBudget, once_a_batch_was_behind_the_next_ones_have_to_go_earlier) {
  BatchBudget budget(most, deadline);
  budget.begin(now, now - patience - 1, 10, 10 * bytes);
  EXPECT_EQ(budget.late_from(), 0U);
  for (int t = 0; t < 255; ++t) {
    EXPECT_EQ(budget.begin(now, now - 40'000, 10, 10 * bytes), 5'000U) << t;
    EXPECT_NE(budget.late_from(), 0U);
  }
  budget.begin(now, now - 45'001, 10, 10 * bytes);
  EXPECT_EQ(budget.late_from(), 0U);
  for (int t = 0; t < 256; ++t) {
    budget.begin(now, now, 10, 10 * bytes);
  }
  EXPECT_EQ(budget.begin(now, now - 60'000, 10, 10 * bytes), most);
  EXPECT_NE(budget.late_from(), 0U);
}

TEST(BatchBudget, a_batch_that_leaves_too_late_makes_the_next_ones_go_earlier) {
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

TEST(BatchBudget, a_batch_that_began_in_time_looks_until_its_oldest_frame_has_to_go) {
  BatchBudget budget(most, deadline);
  budget.begin(now, now - 10'000, 10, 0);
  EXPECT_EQ(budget.looks_until(), now - 10'000 + patience);
  budget.begin(now, now - patience - 1, 10, 0);
  EXPECT_EQ(budget.looks_until(), never) << "it is not its doing";
  budget.begin(now, now - 60'000, 10, 0);
  EXPECT_EQ(budget.late_from(), 0U) << "by 45 hundredths";
  EXPECT_EQ(budget.looks_until(), now - 60'000 + patience);
}

TEST(BatchBudget, a_lane_that_is_late_again_and_again_looks_no_longer_than_it_searches) {
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
  begun += 2 * deadline;
  budget.begin(begun, begun - patience - 1, 10, 0);
  EXPECT_EQ(budget.looks_until(), 0U) << "it is the traffic's doing";
  budget.end(begun, 0);
  for (int t = 0; t < 8192; ++t) EXPECT_EQ(goes(false), 45'000U) << t;
  EXPECT_EQ(goes(true), patience) << "one is forgotten";
  EXPECT_EQ(goes(false), 45'000U);
}

TEST(BatchBudget, batches_that_one_absence_makes_late_are_late_once) {
  BatchBudget budget(most, deadline);
  for (std::uint64_t absence = 1; absence <= 8; ++absence) {
    for (std::uint64_t b = 0; b < 16; ++b) {
      const std::uint64_t begun = now + 2 * deadline * absence + b * deadline / 10;
      budget.begin(begun, begun - patience - 1, 10, 0);
      EXPECT_EQ(budget.looks_until(), absence == 8 && b != 0 ? 0U : never) << absence << ' ' << b;
      budget.end(begun + 1, 0);
    }
  }
}

TEST(BatchBudget, long_frames_cost_more_than_short_ones) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  EXPECT_GT(budget.cost(1'400), 850U);
  EXPECT_LT(budget.cost(60), 250U);
}

TEST(BatchBudget, one_long_absence_makes_no_frame_dear) {
  BatchBudget budget(most, deadline);
  go_through(budget, 700);
  budget.begin(now, now, 10, 10 * bytes);
  budget.end(1'000 * now, 0);
  EXPECT_LT(budget.cost(bytes), 1'000U);
}

TEST(BatchBudget, what_counters_of_other_cores_put_ahead_has_no_age) {
  BatchBudget budget(most, deadline);
  EXPECT_EQ(budget.begin(now, 2 * now, 10, 10 * bytes), most);
  budget.end(now - 1'000, 0);
  EXPECT_EQ(budget.cost(bytes), 0U);
}

TEST(BatchBudget, without_a_deadline_each_batch_has_all) {
  BatchBudget budget(most);
  EXPECT_EQ(budget.begin(now, 0, 10'000, 10'000 * bytes), most);
  budget.end(1'000 * now, 0);
  EXPECT_EQ(budget.begin(now, 0, 10'000, 10'000 * bytes), most);
}

}  // namespace
}  // namespace sluice::function
