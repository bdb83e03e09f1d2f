// The GPU's scan (or the host SIMT shim's) against a plain search, at every alignment and across every boundary.
#include "match/automaton/gpu_matcher.h"

#include <gtest/gtest.h>

#include "match/automaton/gpu_matcher_trial_test.h"

namespace sluice::match {
namespace {

using GpuMatcherTest = GpuMatcherTrial;

INSTANTIATE_TYPED_TEST_SUITE_P(Scan, GpuSearch, GpuMatcherTrial);

TEST_F(GpuMatcherTest, AChangeTakesPlaceAtOnceAndAsAWhole) {
  const KeySet before(std::vector<Pattern>{{"before!"}, {"both"}}), after(std::vector<Pattern>{{"both"}, {"after"}});
  const std::vector<Frame> frames = {frame_of("..before!..", 0, 11), frame_of("..after..", 0, 9),
                                     frame_of("both after", 0, 10)};
  make(before);
  EXPECT_EQ(matcher_->generation(), 1u);
  EXPECT_TRUE(matcher_->up_to_date());
  replace(after);
  EXPECT_FALSE(matcher_->up_to_date());
  unsigned steps = 0;
  for (; !matcher_->up_to_date(); ++steps) {
    ASSERT_LT(steps, 1000u);
    const bool is_new = matcher_->generation() == 2;
    EXPECT_EQ(match(is_new ? after : before, frames), is_new ? 3u : 2u);
    sync();
  }
  EXPECT_GT(steps, 4u) << "it went over in pieces";
  EXPECT_EQ(matcher_->generation(), 2u);
  EXPECT_EQ(match(after, frames), 3u);
}

TEST_F(GpuMatcherTest, ManyChangesUseTheSameMemory) {
  const KeySet sets[] = {KeySet(std::vector<Pattern>{{"first"}}), KeySet(std::vector<Pattern>{{"second"}, {"2nd"}})};
  make(sets[0]);
  std::size_t bytes = 0;
  for (unsigned round = 0; round < 6; ++round) {
    const KeySet& keys = sets[round % 2];
    (void)matcher_->prepare(GramTable(sets[0]));  // not published
    replace(sets[1]);                             // forgotten
    replace(keys);
    while (!matcher_->up_to_date()) sync();
    EXPECT_EQ(matcher_->generation(), 1u + 2 * (round + 1));
    EXPECT_EQ(match(keys, {frame_of("first second", 0, 12)}), 1u) << round;
    if (round == 1) bytes = matcher_->device_bytes();
  }
  EXPECT_EQ(matcher_->device_bytes(), bytes);
}

}  // namespace
}  // namespace sluice::match
