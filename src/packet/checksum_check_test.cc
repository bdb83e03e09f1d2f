#include "packet/checksum_check.h"

#include <gtest/gtest.h>

#include "packet/builder.h"
#include "packet/headers.h"
#include "packet/offload.h"

namespace sluice::packet {
namespace {

PacketBuilder frame_of(unsigned family, bool tcp) {
  PacketBuilder builder;
  family == 4 ? builder.ipv4("10.0.0.1", "10.1.0.1") : builder.ipv6("2001:db8::1", "2001:db8:1::1");
  tcp ? builder.tcp(1234, 80) : builder.udp(1234, 80);
  return builder.payload(33);
}

ChecksumState check(const Bytes& frame) {
  return check_transport(frame.data(), frame.size());
}

Bytes spoiled(Bytes frame) {
  frame.back() ^= 1;
  return frame;
}

// The frame inside a VXLAN datagram without a checksum of its own, as Linux sends it over IPv4.
Bytes tunnelled(const Bytes& inner) {
  Bytes payload = {0x08, 0, 0, 0, 0, 0, 1, 0};
  payload.insert(payload.end(), inner.begin(), inner.end());
  Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(5555, 4789).payload(payload).build();
  const auto places = find_headers(frame.data(), frame.size());
  frame[places->transport + 6] = frame[places->transport + 7] = 0;
  return frame;
}

TEST(ChecksumCheck, RightAndWrongAreReported) {
  for (const unsigned family : {4U, 6U}) {
    for (const bool tcp : {true, false}) {
      const Bytes frame = frame_of(family, tcp).build();
      EXPECT_EQ(check(frame), ChecksumState::right) << family << tcp;
      EXPECT_EQ(check(spoiled(frame)), ChecksumState::wrong) << family << tcp;
      Bytes padded = frame;
      padded.resize(frame.size() + 5, 0xff);
      EXPECT_EQ(check(padded), ChecksumState::right) << "what is behind the packet is none of it";
      for (std::size_t length = 0; length < frame.size(); ++length) {
        EXPECT_EQ(check_transport(frame.data(), length), ChecksumState::none) << length;
      }
    }
  }
  EXPECT_EQ(check(frame_of(4, true).vlan(7).build()), ChecksumState::right);
}

TEST(ChecksumCheck, WhereThereIsNoneNothingIsWrong) {
  Bytes without = frame_of(4, false).build();
  const auto places = find_headers(without.data(), without.size());
  without[places->transport + 6] = without[places->transport + 7] = 0;
  EXPECT_EQ(check(without), ChecksumState::none);
  EXPECT_EQ(check(PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").fragment(0, true).udp(1, 2).payload(64).build()),
            ChecksumState::none);
  EXPECT_EQ(check(PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").protocol(47).payload(64).build()), ChecksumState::none);
  EXPECT_EQ(check(PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build()), ChecksumState::none);
}

TEST(ChecksumCheck, InsideATunnelTheFrameInsideDecides) {
  const Bytes inner = frame_of(6, true).build();
  EXPECT_EQ(check(tunnelled(inner)), ChecksumState::right);
  EXPECT_EQ(check(tunnelled(spoiled(inner))), ChecksumState::wrong);
  EXPECT_EQ(check(tunnelled(PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build())), ChecksumState::none);
}

TEST(ChecksumCheck, OneTunnelIsLookedInto) {
  const Bytes wrong = spoiled(frame_of(6, true).build());
  Bytes nested = tunnelled(wrong);
  while (nested.size() < 8900) {
    nested = tunnelled(nested);
    EXPECT_EQ(check(nested), ChecksumState::none) << nested.size() << ": the datagram inside has no checksum";
  }
  Bytes datagram = tunnelled(wrong);
  const auto places = find_headers(datagram.data(), datagram.size());
  datagram[places->transport + 6] = datagram[places->transport + 7] = 1;
  EXPECT_EQ(check(tunnelled(datagram)), ChecksumState::wrong) << "its own checksum, not that of what it holds";
}

}  // namespace
}  // namespace sluice::packet
