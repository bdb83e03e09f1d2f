// Packets through the chain of `bench ipsec` on a core: all that leave are right, for OpenSSL and the element alike,
// and so are those of rte_ipsec.
#include "bench/ipsec_bed.h"

#include <gtest/gtest.h>

#include "bench/rounds.h"
#include "bench/rte_ipsec_peer.h"

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;

class IpsecBedTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { table_ = RouterTable::make({}, {.ipv4 = 100, .ipv6 = 10}).value(); }
  static void TearDownTestSuite() { table_.reset(); }

  static Expected<std::unique_ptr<IpsecBed>> make(const IpsecTraffic& traffic, const char* device = "cpu",
                                                  unsigned lanes = 2) {
    BenchOptions options;
    options.lanes = lanes;
    options.batch = 256;
    options.batches = 2;
    options.frames = 2048;
    return IpsecBed::make(options, *table_, traffic, device, 1);
  }
  static inline std::unique_ptr<RouterTable> table_;
};

TEST_F(IpsecBedTest, WhatLeavesIsRightBothWays) {
  for (const IpsecTraffic& traffic :
       {IpsecTraffic{"mixed", "uniform", 50}, IpsecTraffic{"aes128-sha1", "1408", 1},
        IpsecTraffic{"chacha20poly1305", "64", 3000}, IpsecTraffic{"ah-sha1", "imix", 5}}) {
    SCOPED_TRACE(traffic_text(traffic));
    auto bed = make(traffic);
    ASSERT_TRUE(bed) << bed.error().message;
    for (const Direction direction : {Direction::out, Direction::in, Direction::out}) {
      const auto figure = (*bed)->measure(direction, 0.05);
      ASSERT_TRUE(figure) << figure.error().message;
      EXPECT_EQ(figure->outcome.rounds, repetitions);
      EXPECT_GT(figure->outcome.frames, 0U);
      EXPECT_GT(figure->moved_bytes, figure->clear_bytes - 14) << "headers and ICV come on top";
      EXPECT_LT(figure->moved_bytes, figure->clear_bytes + 90);
    }
    EXPECT_GE((*bed)->verified(), 60'000U);
    const auto finished = (*bed)->finish();
    EXPECT_TRUE(finished) << finished.error().message;
  }
}

TEST_F(IpsecBedTest, OfAGpuItIsWhatTheGpuHasComputed) {
  auto bed = make({"mixed", "64", 10}, "cuda:0", 1);
  ASSERT_TRUE(bed) << bed.error().message;
  for (const Direction direction : {Direction::out, Direction::in}) {
    const auto figure = (*bed)->measure(direction, 0.6, 500);
    ASSERT_TRUE(figure) << figure.error().message;
    EXPECT_GT(figure->outcome.gpu_frames, 0U);
  }
  const auto finished = (*bed)->finish();
  EXPECT_TRUE(finished) << finished.error().message;
}

// With the packets of a bed.
TEST_F(IpsecBedTest, RteIpsecSealsAndOpensTheSame) {
  for (const char* const algorithm : {"aes128-sha1", "aes128ctr-sha1", "aes256-sha256", "aes128gcm16", "aes256gcm16",
                                      "null-sha256", "chacha20poly1305", "mixed-esp"}) {
    SCOPED_TRACE(algorithm);
    const IpsecTunnels tunnels = IpsecTunnels::make(algorithm, 20).value();
    const SealedPackets sealed = SealedPackets::make(tunnels, 2, 500, "imix").value();
    auto peer = RteIpsecPeer::make(tunnels, sealed, 2, "imix");
    ASSERT_TRUE(peer) << peer.error().message;
    for (const Direction direction : {Direction::out, Direction::in}) {
      const auto outcome = (*peer)->measure(direction, 0.05);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->rounds, repetitions);
      EXPECT_GT(outcome->frames, 0U);
      EXPECT_GE(outcome->bytes, 64 * outcome->frames);
    }
  }
}

TEST_F(IpsecBedTest, RteIpsecHasNoAh) {
  const IpsecTunnels tunnels = IpsecTunnels::make("ah-sha1", 1).value();
  const SealedPackets sealed = SealedPackets::make(tunnels, 1, 10, "64").value();
  const auto peer = RteIpsecPeer::make(tunnels, sealed, 1, "64");
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().message, "rte_ipsec has no AH");
}

}  // namespace
}  // namespace sluice::cli::bench
