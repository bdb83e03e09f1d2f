#include "function/inspect/packet_budget.h"

#include <gtest/gtest.h>

#include "function/inspect/prefilter_matches.h"

namespace sluice::function {
namespace {

TEST(Lateness, IsFromItsTickOn) {
  Lateness lateness;
  lateness.set(1000, 0, 0, 0, 0);
  EXPECT_FALSE(lateness.is_late_at(999, 1, 0));
  EXPECT_TRUE(lateness.is_late_at(1000, 2, 0));
  EXPECT_TRUE(lateness.is_late_at(1001, 3, 0));
}

TEST(Lateness, IsNeverUntilItIsSet) {
  Lateness lateness;
  EXPECT_FALSE(lateness.is_late(1, 0));
  lateness.set(1, 1, 0, 0, 0);
  EXPECT_TRUE(lateness.is_late(1, 0));
  lateness.never_late();
  EXPECT_FALSE(lateness.is_late(1, 0));
}

TEST(Lateness, DoesNotCountWhatTheThreadWasAway) {
  Lateness lateness;
  lateness.set(1000, 0, 100, 0, 0);
  EXPECT_FALSE(lateness.is_late_at(500, 1, 0)) << "until 1500 now";
  EXPECT_FALSE(lateness.is_late_at(1499, 2, 0)) << "until 2499 now";
  EXPECT_FALSE(lateness.is_late_at(1600, 2, 0));
}

TEST(Lateness, CountsWhatFramesAndConfirmingTake) {
  Lateness lateness;
  lateness.set(1000, 0, 100, 0, 0);
  EXPECT_FALSE(lateness.is_late_at(600, 50, 0)) << "50 frames may take 600 ticks";
  EXPECT_FALSE(lateness.is_late_at(999, 50, 299)) << "399 ticks, of which 299 were confirming";
  EXPECT_TRUE(lateness.is_late_at(1000, 50, 299));
}

TEST(Lateness, OfABatchThatIsLateAlreadyStaysSo) {
  Lateness lateness;
  lateness.set(0, 0, 100, 0, 0);
  EXPECT_TRUE(lateness.is_late_at(5000, 1, 0)) << "0: late whatever comes";
}

TEST(PrefilterMatches, AreOfUseByTheRulesInForceAlone) {
  const std::uint32_t keys[2] = {7, 9};
  KeyHits hits;
  hits.generation = 3;
  hits.key = keys;
  hits.count = 2;
  PrefilterMatches taken(hits, 3);
  EXPECT_TRUE(taken.known());
  EXPECT_FALSE(taken.too_many());
  EXPECT_EQ(taken.keys().data(), keys);
  EXPECT_EQ(taken.keys().size(), 2U);
  taken = PrefilterMatches(hits, 4);
  EXPECT_FALSE(taken.known());
  EXPECT_FALSE(taken.too_many()) << "the core searches";
  hits.count = match::max_hits + 1;
  taken = PrefilterMatches(hits, 3);
  EXPECT_FALSE(taken.known());
  EXPECT_TRUE(taken.too_many());
}

TEST(PacketBudget, BeginsWithItsPrefilterMatchesAndTheBatchsTime) {
  ConfirmTime time;
  time.begin(100);
  PacketBudget first(time, 12);
  first.time.spend(40);
  first.prefilter_matches = 0;
  first.allowance = first.waited = first.decoding = 1;
  const PacketBudget second(time, 12);
  EXPECT_EQ(second.prefilter_matches, 12U);
  EXPECT_EQ(second.allowance, PacketBudget::least_allowance);
  EXPECT_EQ(second.waited, 0U);
  EXPECT_EQ(second.decoding, 0U);
  EXPECT_EQ(second.time.spent(), 40U) << "the first's";
}

TEST(WholeReleases, BeginsWithNone) {
  WholeReleases releases;
  releases.first_frame = releases.frame = 5;
  releases.beyond = 70;
  releases.begin(false);
  EXPECT_FALSE(releases.allowed);
  EXPECT_EQ(releases.first_frame, 0U);
  EXPECT_EQ(releases.frame, 0U);
  EXPECT_EQ(releases.beyond, 0U);
}

}  // namespace
}  // namespace sluice::function
