// What testpmd prints is read, and it stands still between samples: against a stand-in that counts its prints.
#include "bench/testpmd.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace sluice::cli::bench {
namespace {

using namespace std::chrono_literals;

// The n-th print, ten a second, says n million frames a second on each port.
constexpr const char* counting = R"(n=0; while :; do n=$((n + 1)); for port in 0 1; do
  printf '  ######################## NIC statistics for port %d\n  RX-packets: 5\n\n  Throughput (since last show)\n' $port
  printf '  Rx-pps:      %d000000          Rx-bps: 7\n  Tx-pps:      9\n' $n; done; sleep 0.1; done)";

TEST(Testpmd, ASampleIsTheSecondPrintAfterItGoesOn) {
  auto testpmd = Testpmd::start(counting);
  ASSERT_TRUE(testpmd) << testpmd.error().message;
  const auto first = (*testpmd)->sample();  // prints 1 and 2 were its start
  ASSERT_TRUE(first);
  EXPECT_GE(*first, 2 * 4);
  std::this_thread::sleep_for(1500ms);  // fifteen prints, if it did not stand still
  const auto second = (*testpmd)->sample();
  ASSERT_TRUE(second);
  EXPECT_GE(*second, *first + 2 * 2);
  EXPECT_LE(*second, *first + 2 * 10);
}

TEST(Testpmd, WhyThereIsNoRateIsSaid) {
  const auto ended = Testpmd::start("echo 'EAL: no memory'");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "ended without a rate");
  auto idle = Testpmd::start("while :; do echo 'Rx-pps: 0'; echo 'Rx-pps: 0'; sleep 0.05; done");
  ASSERT_TRUE(idle);
  const auto rate = (*idle)->sample();
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().message, "forwards nothing");
}

}  // namespace
}  // namespace sluice::cli::bench
