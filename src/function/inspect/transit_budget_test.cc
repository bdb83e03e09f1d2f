#include "function/inspect/transit_budget.h"

#include <gtest/gtest.h>

namespace sluice::function {
namespace {

constexpr std::uint64_t most = 8'000, of_burst = most / TransitBudget::part, now = 1'000'000;

TEST(TransitBudget, what_a_burst_took_comes_back_by_a_tick_in_four) {
  struct Case {
    std::uint64_t taken, later, given;
  };
  for (const Case& one : {Case{0, 0, of_burst}, Case{500, 0, 1'500}, Case{of_burst, 0, 0}, Case{of_burst, 400, 100},
                          Case{of_burst, 4 * of_burst, of_burst}, Case{500, 1'000'000, of_burst},
                          Case{of_burst + 300, 1'200, 0}, Case{of_burst + 300, 1'600, 100}}) {
    TransitBudget budget(most);
    EXPECT_EQ(budget.begin(now), of_burst);
    budget.end(one.taken, 0);
    EXPECT_EQ(budget.begin(now + one.later), one.given) << one.taken << ' ' << one.later;
  }
}

// However many there are: those of a second, each of which takes all that it is given and 100 ticks.
TEST(TransitBudget, bursts_have_a_quarter_of_all_time_together) {
  for (const std::uint64_t apart : {100U, 1'000U, 10'000U}) {
    TransitBudget budget(most);
    std::uint64_t taken = 0;
    for (std::uint64_t at = 0; at < 1'000'000; at += apart) {
      const std::uint64_t given = budget.begin(now + at);
      const std::uint64_t took = given == 0 ? 0 : given + 100;
      budget.end(took, 0);
      taken += took;
    }
    EXPECT_LE(taken, 1'000'000 / 4 + of_burst + 100) << apart;
    EXPECT_GE(taken, 200'000U) << apart;
  }
}

TEST(TransitBudget, a_whole_release_is_given_again_when_five_times_as_long_is_over) {
  TransitBudget budget(most);
  budget.begin(now);
  EXPECT_TRUE(budget.releases());
  budget.end(0, 0);
  budget.begin(now);
  EXPECT_TRUE(budget.releases()) << "nobody has";
  budget.end(0, 1'000);
  for (const std::uint64_t later : {0U, 4'999U, 5'000U}) {
    budget.begin(now + later);
    EXPECT_EQ(budget.releases(), later == 5'000) << later;
    budget.end(0, 0);
  }
}

TEST(TransitBudget, a_capture_has_all_the_time_that_it_takes) {
  TransitBudget budget(ConfirmTime::unlimited);
  for (int t = 0; t < 3; ++t) {
    EXPECT_EQ(budget.begin(now), ConfirmTime::unlimited);
    EXPECT_TRUE(budget.releases());
    budget.end(now, now);
  }
}

}  // namespace
}  // namespace sluice::function
