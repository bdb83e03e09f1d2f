#include "bench/srtp_libsrtp.h"

#include <gtest/gtest.h>

#include <vector>

#include "device/gpu.h"

namespace sluice::cli::bench {
namespace {

// Every packet of every core once at least, in sessions that take them.
TEST(LibSrtp, ProtectsPacketsOfManyStreamsOnAllCores) {
  constexpr std::uint32_t count = 256, streams = 7;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  std::vector<std::uint8_t> memory(std::size_t{count} * SrtpPackets::pitch);
  for (const SrtpSuite& suite : srtp_suites()) {
    auto packets = SrtpPackets::make(**gpu, memory.data(), count, "242", suite, streams);
    ASSERT_TRUE(packets);
    const auto rate = libsrtp_on_all_cores(*packets, suite, streams, 0.3);
    if (suite.tag_bytes == 4) {
      EXPECT_FALSE(rate) << suite.name;
      continue;
    }
    ASSERT_TRUE(rate) << suite.name << ": " << rate.error().message;
    EXPECT_GT(rate->frames, count) << suite.name;
    EXPECT_EQ(rate->bytes, rate->frames * (242 - 42 + suite.tag_bytes)) << suite.name;
    EXPECT_LT(rate->seconds, 0.3) << suite.name << ": of one round";
  }
}

// Each counts from 0.
TEST(LibSrtp, ProtectsInRoundsOfTheirOwn) {
  constexpr std::uint32_t count = 512, streams = 7;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  std::vector<std::uint8_t> memory(std::size_t{count} * SrtpPackets::pitch);
  auto packets = SrtpPackets::make(**gpu, memory.data(), count, "242", srtp_suites()[0], streams);
  ASSERT_TRUE(packets);
  const auto all = LibsrtpOnAllCores::start(*packets, srtp_suites()[0], streams);
  ASSERT_TRUE(all) << all.error().message;
  const auto longer = (*all)->protect(1), shorter = (*all)->protect(0.2);
  ASSERT_TRUE(longer && shorter);
  EXPECT_GT(shorter->frames, 0U);
  EXPECT_LT(shorter->frames, longer->frames);
  EXPECT_LT(shorter->seconds, longer->seconds);
}

}  // namespace
}  // namespace sluice::cli::bench
