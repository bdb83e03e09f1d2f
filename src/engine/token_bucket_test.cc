#include "engine/token_bucket.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

unsigned taken(TokenBucket& bucket, std::uint64_t now, unsigned tries) {
  unsigned count = 0;
  for (unsigned i = 0; i < tries; ++i) count += bucket.take(now);
  return count;
}

TEST(TokenBucket, GivesABurstAndThenTheRate) {
  TokenBucket bucket(10, 4);
  EXPECT_EQ(taken(bucket, 1000, 9), 4U);
  EXPECT_EQ(taken(bucket, 1009, 9), 0U);
  EXPECT_EQ(taken(bucket, 1010, 9), 1U);
  EXPECT_EQ(taken(bucket, 1035, 9), 2U);
  EXPECT_EQ(taken(bucket, 1040, 9), 1U) << "half a token was kept";
}

TEST(TokenBucket, KeepsNoMoreThanTheBurst) {
  TokenBucket bucket(10, 4);
  EXPECT_EQ(taken(bucket, 5, 1), 1U);
  EXPECT_EQ(taken(bucket, 1'000'000, 9), 4U);
}

TEST(TokenBucket, GivesNothingForATimeBeforeTheLast) {
  TokenBucket bucket(10, 4);
  EXPECT_EQ(taken(bucket, 1000, 9), 4U);
  EXPECT_EQ(taken(bucket, 10, 9), 0U);
  EXPECT_EQ(taken(bucket, 1010, 9), 1U);
}

}  // namespace
}  // namespace sluice::engine
