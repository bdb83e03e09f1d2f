// The router's frames on every device, and what the verification says when one property of some frames is broken.
#include "bench/verify_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t enough = 3000;

class VerifyFrames : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    options_.lanes = 1;
    options_.frames = 512;
    options_.batch = 256;
    options_.deadline_ms = 100;
    auto table = RouterTable::make({}, {3000, 1000});
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table).release();
    auto verifier = FrameVerifier::make(*table_);
    ASSERT_TRUE(verifier) << verifier.error().message;
    verifier_ = new FrameVerifier(std::move(*verifier));
  }
  static void TearDownTestSuite() {
    delete verifier_;
    delete table_;
  }
  static BenchOptions options_;
  static RouterTable* table_;
  static FrameVerifier* verifier_;
};
BenchOptions VerifyFrames::options_;
RouterTable* VerifyFrames::table_ = nullptr;
FrameVerifier* VerifyFrames::verifier_ = nullptr;

TEST_F(VerifyFrames, TheRoutersAreRightOnEachDeviceInBothFamilies) {
  for (const char* device : {"cpu", "cuda:0"}) {
    for (const int family : {4, 6}) {
      const auto verified = verifier_->verify(options_, family, device, enough);
      ASSERT_TRUE(verified) << device << " " << family << ": " << verified.error().message;
      EXPECT_GE(verified->frames, enough);
      EXPECT_GT(verified->ecmp_frames, enough / 100);
      EXPECT_EQ(verified->flows, 2 * options_.frames);
      EXPECT_GE(verified->slowly, 20U);
    }
  }
}

TEST_F(VerifyFrames, EachBrokenPropertyIsSaid) {
  struct Case {
    const char* fault;
    std::function<void(std::uint16_t& port, std::uint8_t* frame)> breaks;
  };
  const Case cases[] = {
      {"with a TTL or hop limit that is not one lower", [](std::uint16_t&, std::uint8_t* f) { --f[22]; }},
      {"with a wrong IPv4 header checksum", [](std::uint16_t&, std::uint8_t* f) { f[24] ^= 1; }},
      {"with a source address that is not the port's", [](std::uint16_t&, std::uint8_t* f) { f[6] ^= 2; }},
      {"with a destination address that is no next hop's of its route",
       [](std::uint16_t&, std::uint8_t* f) { f[5] = 0xff; }},
      {"with another port than its next hop's", [](std::uint16_t& port, std::uint8_t*) { port ^= 1; }},
      {"with bytes changed that a router leaves alone", [](std::uint16_t&, std::uint8_t* f) { f[60] ^= 1; }},
  };
  for (const Case& one : cases) {
    // Each lane has a thread of its own, and this rig one lane.
    unsigned seen = 0;
    const auto verified = verifier_->verify(options_, 4, "cpu", enough, [&](std::uint16_t& port, std::uint8_t* frame) {
      if (++seen == 1000) {
        one.breaks(port, frame);
      }
    });
    ASSERT_FALSE(verified) << one.fault;
    EXPECT_THAT(verified.error().message, HasSubstr(one.fault));
  }
}

TEST_F(VerifyFrames, AFlowThatChangesItsMemberIsSaid) {
  // From some moment on the frames through 1 + k go to 129 + k, as a group's second member: right in everything else.
  const packet::MacAddress source = port::ReplayPort::mac_of("replay2");
  unsigned seen = 0;
  const auto verified = verifier_->verify(options_, 6, "cpu", enough, [&](std::uint16_t& port, std::uint8_t* frame) {
    if (++seen > enough / 2 && port == 0 && frame[5] <= 32) {
      port = 1;
      frame[5] += 128;
      std::copy(source.bytes.begin(), source.bytes.end(), frame + 6);
    }
  });
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message, HasSubstr("with another next hop than the frames of its flow before it"));
}

}  // namespace
}  // namespace sluice::cli::bench
