#include "bench/failing_device.h"

#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

TEST(Failures, AreNamedBetweenCommas) {
  const auto all = parse_failures("lose,fault,endless");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(*all, (std::vector{Failure::lose, Failure::fault, Failure::endless}));
  EXPECT_EQ(*parse_failures("fault,lose,fault"), (std::vector{Failure::fault, Failure::lose})) << "each once";
  for (const Failure failure : *all) {
    EXPECT_EQ(parse_failures(std::string(failure_name(failure)))->front(), failure);
  }
}

TEST(Failures, OthersAreRefusedByName) {
  EXPECT_EQ(parse_failures("lose,burn").error().message, "burn: lose, fault or endless, or several between commas");
  EXPECT_EQ(parse_failures("").error().message, "names none: lose, fault or endless");
  EXPECT_FALSE(parse_failures("lose,,fault"));
}

}  // namespace
}  // namespace sluice::cli::bench
