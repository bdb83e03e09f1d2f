#include "bench/inspect_parts.h"

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

TEST(InspectParts, TheSlowestFrameAndLateOnesAreThoseOfAllRounds) {
  Part part = part_of(true, {90, 100, 80}, {700, 600, 1400});
  for (Outcome& round : part.outcomes) round.max_us = 3 * round.device_max_us;
  part.outcomes[2].deadline_misses = 7;
  part.outcomes[1].deadline_misses = 5;
  part.outcomes[1].misses_stalled = 4;
  part.outcomes[1].refused = 2;
  part.outcomes[2].offered_missed = 1;
  EXPECT_EQ(part.median().max_us, 4200);
  EXPECT_EQ(late_text(part),
            "of all rounds 12 frames late (4 of them explained) and 3 not let in, 270000000 transmitted");
}

Part part_on(std::uint64_t handed, std::uint64_t computed, std::uint64_t inspected, std::uint64_t searched) {
  Part part = part_of(true, {90, 100}, {1, 1});
  part.outcomes[0].gpu_frames = handed;
  part.outcomes[1].cpu_frames = computed;
  part.figures = {{"inspect_frames", "", inspected}, {"inspect_by_device", "", searched}};
  return part;
}

TEST(InspectParts, ARateIsOfTheDeviceThatHasComputedIt) {
  EXPECT_TRUE(on_its_device(part_on(9990, 10, 5000, 4990), "cuda:0"));
  EXPECT_EQ(device_text(part_on(9990, 10, 5000, 4990), "cuda:0"),
            "cuda:0 handed 99.90 % of frames; searched by it 99.80 % of those inspected");
  const auto computed = on_its_device(part_on(9800, 200, 5000, 5000), "cuda:0");
  ASSERT_FALSE(computed) << "cores have computed one in fifty";
  EXPECT_EQ(computed.error().message,
            "acl + inspect + route heavy-tail UDP random bytes: of 10000 frames 9800 were handed to cuda:0: this is no "
            "result of it");
  EXPECT_FALSE(on_its_device(part_on(0, 0, 0, 0), "cuda:0"));
  // Handed to the GPU, whose tables are of other rules: the cores have searched.
  const auto searched = on_its_device(part_on(10'000, 0, 5000, 0), "cuda:0");
  ASSERT_FALSE(searched);
  EXPECT_EQ(searched.error().message,
            "acl + inspect + route heavy-tail UDP random bytes: inspect: of 5000 frames the GPU has searched 0 by the "
            "rules that judge them, and the cores have searched the others: this is no result of the GPU");
  EXPECT_FALSE(on_its_device(part_on(10'000, 0, 5000, 4900), "cuda:0"));
  Part other = part_on(10'000, 0, 0, 0);
  EXPECT_FALSE(on_its_device(other, "cuda:0")) << "nothing was inspected";
  other.one.inspect = false;
  EXPECT_TRUE(on_its_device(other, "cuda:0"));
  other = part_on(0, 10'000, 5000, 0);
  EXPECT_TRUE(on_its_device(other, "cpu"));
  EXPECT_EQ(device_text(other, "cpu"), "");
  other.one.mode = engine::Mode::zero_load;
  EXPECT_TRUE(on_its_device(other, "cuda:0")) << "no device is asked";
}

TEST(InspectParts, AVerifiedDeviceHasSearchedWhatIsWanted) {
  const auto figures = [](std::uint64_t searched) {
    return std::vector<engine::Metric>{{"inspect_frames", "", 1000}, {"inspect_by_device", "", searched}};
  };
  EXPECT_TRUE(searched_by_device(figures(900), 900));
  EXPECT_FALSE(searched_by_device(figures(899), 900));
  EXPECT_FALSE(searched_by_device(figures(0), 0));
}

TEST(InspectParts, AnAttackComesAtAShareOfWhatIsCarriedOfText) {
  const AttackRate rate{4e6, 2e6};
  EXPECT_EQ(rate.offered(), 1e6);
  EXPECT_EQ(rate.of_text(), 0.25);
  EXPECT_EQ(rate.str(),
            "1.000 Mpps offered; 25.0 % of the 4.000 carried of text; half of 2.000 (the slowest lane times lanes; the "
            "least of text and the attack)");
  EXPECT_EQ(AttackRate().of_text(), 0);
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
  const auto at = [](std::uint64_t frames, std::uint64_t prefilter_matches, std::uint64_t many, std::uint64_t rules) {
    return std::vector<engine::Metric>{{"inspect_frames", "", frames},
                                       {"inspect_prefilter_matches", "", prefilter_matches},
                                       {"inspect_many_keys", "", many},
                                       {"inspect_rules", "", rules, false}};
  };
  Part part;
  EXPECT_EQ(prefilter_matches_text(part, "cuda:0"), "");
  add_figures(at(1000, 900, 800, 7), at(1100, 930, 801, 7), part.figures);
  add_figures(at(5000, 4000, 900, 7), at(5300, 4070, 903, 7), part.figures);
  EXPECT_EQ(part.figure("inspect_frames"), 400);
  EXPECT_EQ(part.figure("inspect_rules"), 7);
  EXPECT_EQ(part.figure("no such"), 0);
  EXPECT_EQ(prefilter_matches_text(part, "cuda:0"),
            "0.2500 prefilter matches a frame; 1.000 % of frames over eight keys");
  EXPECT_EQ(prefilter_matches_text(part, "cpu"), "0.2500 prefilter matches a frame") << "nobody hands keys to a core";
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
