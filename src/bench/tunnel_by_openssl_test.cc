// What OpenSSL seals it opens, and nothing else. That the element says the same of it: ipsec_bed_test.cc.
#include "bench/tunnel_by_openssl.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/ipsec_tunnels.h"
#include "bench/sealed_packets.h"

namespace sluice::cli::bench {
namespace {

using Bytes = TunnelByOpenssl::Bytes;

Bytes inner_packet(std::uint32_t length) {
  const Bytes frame = clear_frame(ipsec::Direction::out, 3, length, 7);
  return {frame.begin() + 14, frame.end()};
}

TEST(TunnelByOpenssl, OpensWhatItSeals) {
  for (const IpsecAlgorithm& algorithm : ipsec_algorithms()) {
    SCOPED_TRACE(algorithm.name);
    const IpsecTunnels tunnels = IpsecTunnels::make(algorithm.name, 8).value();
    const TunnelByOpenssl by(tunnels.sa(ipsec::Direction::out, 3));
    for (const std::uint32_t length : {64U, 65U, 66U, 67U, 79U, 80U, 1408U, 1518U}) {
      const Bytes inner = inner_packet(length);
      const auto sealed = by.seal(inner, 99);
      ASSERT_TRUE(sealed) << sealed.error().message;
      // Whether the inner packet can be seen: of AH and NULL it can.
      const bool is_seen = std::search(sealed->begin(), sealed->end(), inner.begin(), inner.end()) != sealed->end();
      EXPECT_EQ(is_seen, algorithm.name == std::string("null-sha256") || algorithm.name == std::string("ah-sha1"));
      const auto opened = by.open(*sealed);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_EQ(opened->inner, inner);
      EXPECT_EQ(opened->sequence, 99U);
    }
  }
}

TEST(TunnelByOpenssl, RefusesWhatIsNotRight) {
  for (const IpsecAlgorithm& algorithm : ipsec_algorithms()) {
    SCOPED_TRACE(algorithm.name);
    const IpsecTunnels tunnels = IpsecTunnels::make(algorithm.name, 8).value();
    const TunnelByOpenssl by(tunnels.sa(ipsec::Direction::out, 3));
    const Bytes sealed = by.seal(inner_packet(100), 5).value();
    for (std::size_t at = 0; at < sealed.size(); ++at) {
      Bytes tampered = sealed;
      tampered[at] ^= 0x10;
      EXPECT_FALSE(by.open(tampered)) << at;
    }
    for (const std::size_t length : {std::size_t{0}, std::size_t{30}, sealed.size() - 1}) {
      EXPECT_FALSE(by.open(std::span(sealed).first(length))) << length;
    }
    EXPECT_FALSE(TunnelByOpenssl(tunnels.sa(ipsec::Direction::out, 4)).open(sealed));
  }
}

// A packet that was opened in place and comes again with its ends written anew is authentic with the ICV of its round.
TEST(TunnelByOpenssl, OpensAgainWhatWasOpenedInPlace) {
  constexpr std::size_t head = 32, tail = 48, rounds = 5;
  for (const IpsecAlgorithm& algorithm : ipsec_algorithms()) {
    if (algorithm.protocol == ipsec::Protocol::ah) continue;
    SCOPED_TRACE(algorithm.name);
    const IpsecTunnels tunnels = IpsecTunnels::make(algorithm.name, 8).value();
    const ipsec::SaSettings sa = tunnels.sa(ipsec::Direction::in, 3);
    const TunnelByOpenssl by(sa);
    const Bytes inner = inner_packet(1408);
    const Bytes sealed = by.seal(inner, 5).value();
    const auto icvs = by.icvs_in_place(sealed, head, tail, rounds);
    ASSERT_TRUE(icvs) << icvs.error().message;
    ASSERT_EQ(icvs->size(), rounds);
    const std::size_t text = 20 + by.clear_bytes(), icv = sealed.size() - sa.transform.icv_length;
    Bytes packet = sealed;
    for (std::size_t round = 0; round < rounds; ++round) {
      std::ranges::copy((*icvs)[round], packet.begin() + static_cast<std::ptrdiff_t>(icv));
      if (round == 0) {
        EXPECT_EQ(packet, sealed);
      }
      const auto opened = by.open(packet);
      ASSERT_TRUE(opened) << "round " << round << ": " << opened.error().message;
      ASSERT_EQ(opened->inner.size(), inner.size());
      EXPECT_TRUE(std::equal(inner.begin(), inner.begin() + head, opened->inner.begin())) << "its headers are the same";
      for (std::size_t at = head; at < icv - tail - text; ++at) packet[text + at] = opened->inner[at];
    }
  }
}

}  // namespace
}  // namespace sluice::cli::bench
