// What the bench srtp verifies by, on a GPU's jobs: it accepts what is right, and names a packet that is not.
#include "bench/srtp_packets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>

#include "bench/srtp_cpu.h"

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t count = 100;

void wait(device::GpuStream& stream) {
  ASSERT_TRUE(stream.mark());
  while (stream.pending_marks() > 0) {
    ASSERT_NE(stream.poll(), device::MarkState::failed);
  }
}

TEST(SrtpPackets, AreVerifiedForEachSuite) {
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  auto cpu = crypto::Cpu::make();
  ASSERT_TRUE(cpu);
  auto* const memory = static_cast<std::uint8_t*>((*gpu)->allocate_host(count * SrtpPackets::pitch).value());
  for (const SrtpSuite& suite : srtp_suites()) {
    auto packets = SrtpPackets::make(**gpu, memory, count, "rtp", suite, 7);
    ASSERT_TRUE(packets) << packets.error().message;
    auto crypto = crypto::GpuCrypto::create(**gpu, packets->keys(), {.max_packets = count});
    ASSERT_TRUE(crypto) << crypto.error().message;
    const auto pass = [&] {
      packets->forget_verdicts();
      ASSERT_TRUE((*crypto)->run(packets->batch(0, count), (*gpu)->stream(0)));
      wait((*gpu)->stream(0));
    };
    EXPECT_TRUE(packets->all_clear());
    packets->seal_next();
    pass();
    EXPECT_TRUE(packets->all_done());
    EXPECT_FALSE(packets->all_clear()) << suite.name;
    EXPECT_TRUE(packets->open_by_cpu(*cpu, true)) << suite.name;

    pass();
    auto* const seventh = reinterpret_cast<std::uint8_t*>(packets->jobs()[7].data);
    seventh[40] ^= 1;
    packets->open_next();
    pass();
    ASSERT_FALSE(packets->all_done());
    EXPECT_EQ(packets->all_done().error().message, "NOT VERIFIED: packet 7 was not done");
    EXPECT_EQ(packets->all_clear().error().message, "NOT VERIFIED: packet 7 does not hold what it should");
    EXPECT_THAT(packets->open_by_cpu(*cpu, true).error().message, HasSubstr("NOT VERIFIED: packet 0: the CPU"));
  }
}

// The tests' EAL binds this thread to one.
class OnAllCores {
 public:
  OnAllCores() {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  }
  ~OnAllCores() { sched_setaffinity(0, sizeof before_, &before_); }
  OnAllCores(const OnAllCores&) = delete;
  OnAllCores& operator=(const OnAllCores&) = delete;

 private:
  cpu_set_t before_{};
};

// A number of packets of which no number of cores has equal shares.
TEST(SrtpPackets, AreSealedByAllCores) {
  const OnAllCores on_all_cores;
  constexpr std::uint32_t prime = 1009;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu);
  auto cpu = crypto::Cpu::make();
  ASSERT_TRUE(cpu);
  auto* const memory = static_cast<std::uint8_t*>((*gpu)->allocate_host(prime * SrtpPackets::pitch).value());
  auto packets = SrtpPackets::make(**gpu, memory, prime, "1370", srtp_suites()[0], 7);
  ASSERT_TRUE(packets);
  ASSERT_TRUE(seal_once_on_all_cores(*packets));
  const auto opened = packets->open_by_cpu(*cpu, true);
  EXPECT_TRUE(opened) << opened.error().message;
  const auto outcome = seal_on_all_cores(*packets, 0.01);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_GT(outcome->frames, 0U);
  EXPECT_EQ(outcome->bytes, outcome->frames * (1370 - 42 + 10));
}

}  // namespace
}  // namespace sluice::cli::bench
