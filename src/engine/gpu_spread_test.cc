#include "engine/gpu_spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::engine {
namespace {

using testing::ElementsAre;

TEST(GpuSpread, InTurnWhereNodesAreUnknown) {
  EXPECT_THAT(deal_lanes({-1, -1, -1, -1, -1}, {-1, -1}), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(deal_lanes({0, 0, 0}, {0}), ElementsAre(0, 0, 0));
}

TEST(GpuSpread, ToTheGpuOfTheLanesNode) {
  EXPECT_THAT(deal_lanes({0, 0, 1, 1}, {1, 0}), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(deal_lanes({0, 1, 0, 1, 0, 1, 0, 1}, {0, 0, 1, 1}), ElementsAre(0, 2, 1, 3, 0, 2, 1, 3));
}

TEST(GpuSpread, NoGpuIsWithoutWorkBecauseItIsFar) {
  EXPECT_THAT(deal_lanes({0, 0, 0, 0}, {0, 1}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(deal_lanes({1, 0, 0}, {1, 1}), ElementsAre(0, 1, 0));
}

TEST(GpuSpread, SharesDifferByOneAtMost) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::vector<int> lanes(1 + seed % 23), gpus(1 + seed % std::min<std::size_t>(lanes.size(), 5));
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<int>((seed * 7 + i * i) % 3) - 1;
    for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i] = static_cast<int>((seed + i) % 3) - 1;
    std::vector<std::size_t> has(gpus.size());
    for (const std::uint32_t gpu : deal_lanes(lanes, gpus)) {
      ASSERT_LT(gpu, gpus.size());
      ++has[gpu];
    }
    EXPECT_LE(*std::ranges::max_element(has) - *std::ranges::min_element(has), 1U) << seed;
  }
}

}  // namespace
}  // namespace sluice::engine
