#include "bench/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(const std::vector<LossCase>& cases) {
  std::vector<std::string> all;
  for (const LossCase& one : cases) all.push_back(one.chain + " " + std::string(failure_name(one.failure)));
  return all;
}

TEST(LossCases, WhatTheGpuDoesNotSurviveIsInAProcessOfItsOwn) {
  EXPECT_THAT(texts(cases_of_their_own({"route", "srtp"}, {Failure::lose, Failure::fault, Failure::endless})),
              ElementsAre("route fault", "route endless", "srtp fault", "srtp endless"));
  EXPECT_THAT(texts(cases_of_their_own({"route", "srtp"}, {Failure::lose})), ElementsAre());
  EXPECT_THAT(texts(cases_of_their_own({"route", "srtp"}, {Failure::endless})),
              ElementsAre("route endless", "srtp endless"));
}

// So that such a process starts none.
TEST(LossCases, OneAloneIsInThisProcess) {
  EXPECT_THAT(texts(cases_of_their_own({"srtp"}, {Failure::endless})), ElementsAre());
}

TEST(LossCases, AProcessOfItsOwnHasTheOptionsOfThisOneButItsCase) {
  const LossCase one{"acl + route", Failure::fault};
  EXPECT_THAT(words_for(one, {"sluice-bench", "loss", "--lanes", "4", "--only", "route,acl + route", "--no-goals",
                              "--ways", "lose,fault", "--csv", "rows.csv"}),
              ElementsAre("sluice-bench", "loss", "--lanes", "4", "--no-goals", "--csv", "rows.csv", "--only",
                          "acl + route", "--ways", "fault"));
  EXPECT_THAT(words_for(one, {"sluice-bench", "loss", "--only=route", "--ways=fault", "--seconds=1"}),
              ElementsAre("sluice-bench", "loss", "--seconds=1", "--only", "acl + route", "--ways", "fault"));
}

}  // namespace
}  // namespace sluice::cli::bench
