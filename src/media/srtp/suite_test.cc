#include "media/srtp/suite.h"

#include <gtest/gtest.h>

#include "crypto/algorithm.h"

namespace sluice::srtp {
namespace {

TEST(Suite, EveryOneIsDoneByCoresAndByGpus) {
  for (const SuiteFacts& suite : suites) {
    for (const crypto::Side* const side : {&crypto::cpu_side(), &crypto::gpu_side()}) {
      EXPECT_EQ(crypto::side_for({&side, 1}, suite.cipher, suite.hash(), suite.key_length), side)
          << suite.name << ", " << side->name;
    }
  }
}

}  // namespace
}  // namespace sluice::srtp
