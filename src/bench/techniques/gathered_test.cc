// Searches in which packets are brought to the threads first, against a plain search, at every alignment and across
// every boundary.
#include "bench/techniques/gathered.h"

#include <gtest/gtest.h>

#include <cstring>

#include "match/automaton/gpu_matcher_trial_test.h"

namespace sluice::match {
namespace {

class GatheredTrial : public GpuMatcherTrial {
 protected:
  void match_otherwise(const KeySet& keys, const std::vector<Frame>& frames, MatchBatch& batch) override {
    for (const GatheredSearch search : {GatheredSearch::filter, GatheredSearch::automaton}) {
      SCOPED_TRACE(search == GatheredSearch::filter ? "brought to the filter" : "brought to the automaton");
      std::memset(found_, 0xff, frames.size() * sizeof found_[0]);
      auto gathered = GatheredMatcher::create(*gpu_, *matcher_, keys, search, {batch.count, 600, 1}, true);
      EXPECT_TRUE(gathered) << gathered.error().message;
      if (gathered) {
        expect_keys(keys, frames, (*gathered)->match(batch, 0), [&] { return (*gathered)->every_key(batch, 0); });
      }
    }
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Gathered, GpuSearch, GatheredTrial);

}  // namespace
}  // namespace sluice::match
