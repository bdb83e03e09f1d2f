#include "cli/bench/inspect_parts.h"

#include <gtest/gtest.h>

namespace sluice::cli::bench {
namespace {

Part part_of(bool acl, const std::vector<double>& mpps, const std::vector<double>& slowest) {
  Part part;
  part.one.acl = acl;
  for (std::size_t r = 0; r < mpps.size(); ++r) {
    Outcome outcome;
    outcome.seconds = 1;
    outcome.frames = static_cast<std::uint64_t>(mpps[r] * 1e6);
    outcome.device_max_us = slowest[r];
    part.outcomes.push_back(outcome);
    part.mpps.push_back(outcome.mpps());
  }
  return part;
}

TEST(InspectParts, TheSlowestBatchIsThatOfAllRounds) {
  const Part part = part_of(true, {90, 100, 80}, {700, 600, 1400});
  EXPECT_EQ(part.median().mpps(), 90);
  EXPECT_EQ(part.median().device_max_us, 1400) << "of the round with the least rate";
}

TEST(InspectParts, WhatAclCostsIsOfPairsOfRounds) {
  // The machine was twice as fast in the second round; in each pair acl costs 10, 20 and 30 %.
  const std::vector<Part> parts{part_of(true, {90, 160, 70}, {1, 1, 1}), part_of(false, {100, 200, 100}, {1, 1, 1})};
  const auto cost = acl_cost(parts);
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->median, 20, 1e-9);
  EXPECT_NEAR(cost->low, 10, 1e-9);
  EXPECT_NEAR(cost->high, 30, 1e-9);
  EXPECT_FALSE(acl_cost({parts[0]}));
  EXPECT_FALSE(acl_cost({parts[1]}));
}

TEST(InspectParts, FiguresAreThoseOfTheRoundsAlone) {
  const auto at = [](std::uint64_t frames, std::uint64_t candidates, std::uint64_t many, std::uint64_t rules) {
    return std::vector<engine::Figure>{{"inspect_frames", "", frames},
                                       {"inspect_candidates", "", candidates},
                                       {"inspect_many_keys", "", many},
                                       {"inspect_rules", "", rules, false}};
  };
  Part part;
  EXPECT_EQ(candidates_text(part, "cuda:0"), "");
  add_figures(at(1000, 900, 800, 7), at(1100, 930, 801, 7), part.figures);
  add_figures(at(5000, 4000, 900, 7), at(5300, 4070, 903, 7), part.figures);
  EXPECT_EQ(part.figure("inspect_frames"), 400);
  EXPECT_EQ(part.figure("inspect_rules"), 7);
  EXPECT_EQ(part.figure("no such"), 0);
  EXPECT_EQ(candidates_text(part, "cuda:0"), "0.2500 candidates a frame; 1.000 % of frames over eight keys");
  EXPECT_EQ(candidates_text(part, "cpu"), "0.2500 candidates a frame") << "nobody tells a core of keys";
}

TEST(InspectParts, PartsThatInspectShareAnEngine) {
  ChainCase whole, without_acl, alone, still;
  without_acl.acl = false;
  alone.inspect = false;
  still.mode = engine::Mode::zero_load;
  EXPECT_TRUE(without_acl.takes_turns_with(whole));
  EXPECT_FALSE(alone.takes_turns_with(whole));
  EXPECT_FALSE(still.takes_turns_with(whole));
}

}  // namespace
}  // namespace sluice::cli::bench
