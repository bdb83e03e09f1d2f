#include "flow/carried.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::flow {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Rules = std::vector<std::uint32_t>;

TEST(Carried, KeepsEightAndKnowsThatThereAreMore) {
  Carried carried;
  carried.use(1);
  carried.keep(Rules{1, 2, 3, 2}, {}, true);
  EXPECT_THAT(carried.open(), ElementsAre(1, 2, 3));
  carried.keep(Rules{3, 4, 5, 6, 7, 8}, {}, false);
  EXPECT_FALSE(carried.lost());
  carried.keep(Rules{9}, {}, false);
  EXPECT_TRUE(carried.lost());
  EXPECT_THAT(carried.open(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  carried.keep({}, {}, false);
  EXPECT_TRUE(carried.lost());
  carried.keep(Rules{9}, {}, true);
  EXPECT_FALSE(carried.lost());
  EXPECT_THAT(carried.open(), ElementsAre(9));
}

TEST(Carried, WhatHasBegunSharesTheCapacityOfWhatIsOpen) {
  Carried carried;
  carried.use(1);
  EXPECT_TRUE(carried.empty());
  carried.keep(Rules{1, 2}, Rules{3, 2, 4, 3}, true);
  EXPECT_THAT(carried.open(), ElementsAre(1, 2));
  EXPECT_THAT(carried.begun(), UnorderedElementsAre(3, 4));
  EXPECT_FALSE(carried.empty());
  carried.keep(Rules{5, 6}, Rules{7, 8}, false);
  EXPECT_FALSE(carried.lost());
  EXPECT_THAT(carried.open(), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(carried.begun(), UnorderedElementsAre(3, 4, 7, 8));
  carried.by_keys = true;
  carried.keep({}, Rules{8}, false);
  EXPECT_TRUE(carried.by_keys);
  carried.keep({}, Rules{9}, false);
  EXPECT_FALSE(carried.by_keys) << "one has begun that is not known";
  EXPECT_FALSE(carried.lost());
  EXPECT_THAT(carried.begun(), UnorderedElementsAre(3, 4, 7, 8));
  carried.by_keys = true;
  carried.keep(Rules{10}, {}, false);
  EXPECT_FALSE(carried.by_keys) << "one that had begun gave way";
  EXPECT_THAT(carried.open(), ElementsAre(1, 2, 5, 6, 10));
  EXPECT_EQ(carried.begun().size(), 3U);
  carried.keep(Rules{11, 12, 13}, {}, false);
  EXPECT_FALSE(carried.lost());
  EXPECT_THAT(carried.open(), ElementsAre(1, 2, 5, 6, 10, 11, 12, 13));
  EXPECT_THAT(carried.begun(), IsEmpty());
  carried.keep(Rules{14}, {}, false);
  EXPECT_TRUE(carried.lost());
  carried.keep({}, Rules{9}, true);
  EXPECT_FALSE(carried.lost());
  EXPECT_THAT(carried.begun(), ElementsAre(9));
  carried.keep({}, {}, true);
  EXPECT_TRUE(carried.empty());
}

// Its pattern may come anew in the next piece, and it is known to have held besides.
TEST(Carried, WhatHoldsMayHaveBegun) {
  Carried carried;
  carried.use(1);
  carried.keep({}, Rules{1}, true);
  carried.hold(1);
  EXPECT_THAT(carried.begun(), ElementsAre(1));
  EXPECT_THAT(carried.held(), ElementsAre(1));
  carried.keep({}, Rules{1}, true);
  EXPECT_THAT(carried.held(), ElementsAre(1));
}

TEST(Carried, WhatHeldIsNotOpenUntilItIsRenewed) {
  Carried carried;
  carried.use(1);
  carried.keep(Rules{1, 2}, {}, true);
  carried.hold(1);
  EXPECT_THAT(carried.open(), ElementsAre(2));
  for (const std::uint32_t rule : {7, 8, 1, 9}) carried.hold(rule);
  EXPECT_THAT(carried.held(), ElementsAre(7, 8, 1, 9));
  carried.hold(10);
  EXPECT_THAT(carried.held(), ElementsAre(8, 1, 9, 10));
  carried.renew(1);
  EXPECT_THAT(carried.held(), ElementsAre(8, 9, 10));
}

TEST(Carried, OtherRulesBeginAnew) {
  Carried carried;
  carried.use(1);
  carried.keep(Rules(9, 1), Rules{3}, true);
  carried.hold(2);
  carried.by_keys = true;
  carried.use(1);
  EXPECT_THAT(carried.open(), ElementsAre(1));
  carried.use(2);
  EXPECT_THAT(carried.open(), IsEmpty());
  EXPECT_THAT(carried.begun(), IsEmpty());
  EXPECT_THAT(carried.held(), IsEmpty());
  EXPECT_FALSE(carried.by_keys);
}

}  // namespace
}  // namespace sluice::flow
