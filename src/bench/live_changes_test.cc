#include "bench/live_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "bench/ipsec_bed.h"
#include "bench/router_rig.h"

namespace sluice::cli::bench {
namespace {

TEST(StreamRekey, EachGenerationHasAnotherKeyAndTheFirstIsThatOfTheSettings) {
  RtpStreams streams;
  streams.streams = 2;
  const auto settings = streams.settings();
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_TRUE(settings[1].crypto.keys.front().key == streams.crypto(1, 0).keys.front().key);
  EXPECT_FALSE(streams.crypto(1, 0).keys.front().key == streams.crypto(1, 1).keys.front().key);
  EXPECT_FALSE(streams.crypto(0, 1).keys.front().key == streams.crypto(1, 1).keys.front().key);
}

TEST(StreamRekey, IsRefusedWhereTheSenderWouldHaveToChangeToo) {
  RtpStreams streams;
  EXPECT_TRUE(StreamRekey::of(streams));
  streams.both = true;
  const auto rekey = StreamRekey::of(streams);
  ASSERT_FALSE(rekey);
  EXPECT_EQ(rekey.error().message, "streams that are unprotected cannot be rekeyed without their sender");
}

TEST(SaRekey, EachGenerationOfATunnelHasAnotherSpiAndOtherKeys) {
  const auto tunnels = IpsecTunnels::make("aes128-sha1", 3);
  ASSERT_TRUE(tunnels) << tunnels.error().message;
  std::set<std::uint32_t> spis;
  for (const std::uint32_t generation : {0U, 1U, IpsecTunnels::generations - 1}) {
    for (std::uint32_t tunnel = 0; tunnel < 3; ++tunnel) {
      spis.insert(tunnels->sa(ipsec::Direction::out, tunnel, generation).id.spi);
    }
  }
  EXPECT_EQ(spis.size(), 9U);
  EXPECT_EQ(tunnels->sa(ipsec::Direction::out, 2).id.spi, IpsecTunnels::spi(2));
  const auto before = tunnels->sa(ipsec::Direction::out, 2), after = tunnels->sa(ipsec::Direction::out, 2, 1);
  EXPECT_FALSE(std::ranges::equal(before.transform.cipher_key.view(), after.transform.cipher_key.view()));
  EXPECT_EQ(before.reqid, after.reqid) << "the policy's";
}

class SaRekeyTest : public testing::Test {
 protected:
  static constexpr std::uint32_t tunnels = 30;
  void SetUp() override {
    table_ = RouterTable::make({}, {.ipv4 = 100, .ipv6 = 10}).value();
    BenchOptions options;
    options.lanes = 1;
    options.batch = 256;
    options.batches = 2;
    options.frames = 2048;
    auto bed = IpsecBed::make(options, *table_, {"aes128-sha1", "imix", tunnels}, "cpu", 1);
    ASSERT_TRUE(bed) << bed.error().message;
    bed_ = std::move(*bed);
  }
  // Each tunnel's SA so many times, while lanes run.
  void rekey(ipsec::Direction direction, unsigned times) {
    SaRekey rekey(bed_->tunnels(), direction);
    for (unsigned i = 0; i < times * SaRekey::share; ++i) {
      const auto made = rekey.make(bed_->element());
      ASSERT_TRUE(made) << made.error().message;
    }
  }
  std::unique_ptr<RouterTable> table_;
  std::unique_ptr<IpsecBed> bed_;
};

TEST_F(SaRekeyTest, InPacketsThatWereSealedBeforeAreOpenedBehindIt) {
  const auto rig = bed_->begin(ipsec::Direction::in, 500);
  ASSERT_TRUE(rig) << rig.error().message;
  (*rig)->set_rate(20'000);
  rekey(ipsec::Direction::in, 5);
  const auto again = bed_->begin(ipsec::Direction::in, 2000);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_EQ(bed_->element().databases().sa_count(), 2 * tunnels);
  const auto finished = bed_->finish();
  EXPECT_TRUE(finished) << finished.error().message;
}

TEST_F(SaRekeyTest, OutPacketsGoByTheNewestAndTheOldAreGone) {
  const auto rig = bed_->begin(ipsec::Direction::out, 500);
  ASSERT_TRUE(rig) << rig.error().message;
  (*rig)->set_rate(20'000);
  rekey(ipsec::Direction::out, 5);
  const Outcome outcome = (*rig)->measure(0, 0.2);
  EXPECT_GT(outcome.frames, 0U);
  EXPECT_EQ(outcome.dropped, 0U);
  ipsec::Databases& databases = bed_->element().databases();
  EXPECT_EQ(databases.sa_count(), 2 * tunnels);
  std::uint64_t sealed = 0;
  for (std::uint32_t tunnel = 0; tunnel < tunnels; ++tunnel) {
    EXPECT_FALSE(databases.sa(bed_->tunnels().sa(ipsec::Direction::out, tunnel).id));
    const auto newest = databases.sa(bed_->tunnels().sa(ipsec::Direction::out, tunnel, 5).id);
    ASSERT_TRUE(newest) << tunnel;
    sealed += newest->counters.sequence;
  }
  EXPECT_GE(sealed, outcome.frames);
}

}  // namespace
}  // namespace sluice::cli::bench
