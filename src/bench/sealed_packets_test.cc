// That packets which come again and again have the sizes and algorithms of their mix.
#include "bench/sealed_packets.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::cli::bench {
namespace {

TEST(SealedPackets, ComeAsOftenAsEachOther) {
  constexpr std::uint32_t packets = 512, frames = 64;
  for (const char* const algorithm : {"aes128-sha1", "mixed"}) {
    const IpsecTunnels tunnels = IpsecTunnels::make(algorithm, 8).value();
    const SealedPackets sealed = SealedPackets::make(tunnels, 1, packets, "imix").value();
    std::vector<SealedPackets::Came> came(frames);
    std::vector<std::uint32_t> left(frames), often(packets);
    std::vector<std::uint8_t> bytes(2048);
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < packets * SealedPackets::rounds; ++i) {
      const std::uint32_t f = i % frames;
      left[f] = sealed.write(0, came[f], next, left[f], false, bytes.data()).clear_length;  // all are opened
      ++often[came[f].packet];
    }
    for (const std::uint32_t times : often) EXPECT_EQ(times, SealedPackets::rounds) << algorithm;
  }
}

}  // namespace
}  // namespace sluice::cli::bench
