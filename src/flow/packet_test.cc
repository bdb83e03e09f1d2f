#include "flow/packet.h"

#include <gtest/gtest.h>

#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::flow {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

// The IP packet of a built frame, in memory that ends with it.
bool read(const Bytes& frame, Packet& out) {
  static Bytes ip;
  ip.assign(frame.begin() + 14, frame.end());
  return read_packet(ip.data(), static_cast<std::uint32_t>(ip.size()), out);
}

TEST(ReadPacket, Tcp) {
  Packet packet;
  ASSERT_TRUE(read(PacketBuilder()
                       .ipv4("10.0.0.1", "10.0.0.2")
                       .tcp(1234, 80)
                       .tcp_flags(tcp_ack | tcp_fin)
                       .tcp_sequence(0x01020304, 0x05060708)
                       .payload(Bytes{'a', 'b', 'c'})
                       .pad_to(80)
                       .build(),
                   packet));
  EXPECT_EQ(packet.family, 4);
  EXPECT_EQ(packet.protocol, 6);
  EXPECT_EQ(packet.source[3], 1);
  EXPECT_EQ(packet.source[4], 0);
  EXPECT_EQ(packet.destination[3], 2);
  EXPECT_EQ(packet.source_port, 1234);
  EXPECT_EQ(packet.destination_port, 80);
  EXPECT_EQ(packet.tcp_flags, tcp_ack | tcp_fin);
  EXPECT_EQ(packet.sequence, 0x01020304U);
  EXPECT_EQ(packet.acknowledgment, 0x05060708U);
  EXPECT_EQ(packet.payload, "abc") << "without Ethernet's padding";
  EXPECT_EQ(packet.ip_length, 43U);
  EXPECT_FALSE(packet.fragment);
}

TEST(ReadPacket, WithoutALengthBeforeHopByHopOptionsItIsAsLongAsTheFrame) {
  Packet packet;
  ASSERT_TRUE(read(PacketBuilder()
                       .ipv6("2001:db8::1", "2001:db8::2")
                       .extension(packet::protocol_hop_by_hop, Bytes{1, 4, 0, 0, 0, 0})
                       .ip_length(0)
                       .tcp(4000, 80)
                       .payload(5)
                       .build(),
                   packet));
  EXPECT_EQ(packet.ip_length, 40U + 8 + 20 + 5);
  EXPECT_EQ(packet.protocol, packet::protocol_tcp);
  EXPECT_EQ(packet.payload.size(), 5U);
}

TEST(ReadPacket, UdpBehindIpv6Extensions) {
  Packet packet;
  ASSERT_TRUE(read(PacketBuilder()
                       .ipv6("2001:db8::1", "2001:db8::2")
                       .extension(packet::protocol_destination_options, Bytes(6))
                       .extension(packet::protocol_routing, Bytes(14))
                       .udp(5000, 53)
                       .payload(5)
                       .build(),
                   packet));
  EXPECT_EQ(packet.family, 6);
  EXPECT_EQ(packet.protocol, 17);
  EXPECT_EQ(packet.source_port, 5000);
  EXPECT_EQ(packet.payload.size(), 5U);
}

TEST(ReadPacket, FragmentsHaveNoPorts) {
  Packet packet;
  for (const bool first : {true, false}) {
    const std::uint16_t offset = first ? 0 : 64;
    ASSERT_TRUE(read(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").fragment(offset, first).udp(1, 2).payload(64).build(),
                     packet));
    EXPECT_TRUE(packet.fragment);
    EXPECT_EQ(packet.source_port, 0);
    ASSERT_TRUE(
        read(PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").fragment(offset, first).udp(1, 2).payload(64).build(),
             packet));
    EXPECT_TRUE(packet.fragment);
    EXPECT_EQ(packet.protocol, 17);
    EXPECT_EQ(packet.source_port, 0);
  }
}

TEST(ReadPacket, EchoAndReplyAreOneFlow) {
  Packet request;
  Packet reply;
  ASSERT_TRUE(read(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").icmp(8, 0, 0x12340001).build(), request));
  ASSERT_TRUE(read(PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").icmp(0, 0, 0x12340001).build(), reply));
  EXPECT_EQ(request.source_port, 0x1234);
  EXPECT_EQ(reply.destination_port, 0x1234);
}

TEST(ReadPacket, WindowScaleOfASyn) {
  // NOP, window scale 7, end; then an option that runs over the end.
  Bytes frame =
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).tcp_flags(tcp_syn).payload(Bytes{1, 3, 3, 7}).build();
  frame[14 + 20 + 12] = 6 << 4;
  Packet packet;
  ASSERT_TRUE(read(frame, packet));
  EXPECT_EQ(packet.window_scale, 7);
  EXPECT_TRUE(packet.payload.empty());
  frame[frame.size() - 2] = 9;
  ASSERT_TRUE(read(frame, packet));
  EXPECT_EQ(packet.window_scale, 0xff);
}

TEST(ReadPacket, FastOpenOfASyn) {
  const auto has = [](const Bytes& options) {
    const Bytes frame =
        PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).tcp_flags(tcp_syn).payload(options).build();
    return has_fast_open({reinterpret_cast<const char*>(frame.data()) + 14 + 20, 20 + options.size()});
  };
  EXPECT_TRUE(has({34, 6, 1, 2, 3, 4, 1, 1}));
  EXPECT_TRUE(has({1, 1, 34, 2})) << "asks for a cookie";
  EXPECT_TRUE(has({2, 4, 5, 180, 254, 4, 0xf9, 0x89})) << "as before RFC 7413";
  EXPECT_TRUE(has({253, 4, 0xf9, 0x89}));
  EXPECT_FALSE(has({254, 4, 0xf9, 0x88})) << "another experiment";
  EXPECT_FALSE(has({3, 3, 7, 0, 34, 2, 1, 1})) << "behind the end";
  EXPECT_FALSE(has({34, 1, 1, 1})) << "no length";
  EXPECT_FALSE(has({1, 1, 1, 34})) << "cut";
  EXPECT_FALSE(has({}));
  EXPECT_FALSE(has_fast_open("short"));
}

// Cut anywhere, a packet is refused, or what is read lies within it.
TEST(ReadPacket, CutAnywhereStaysInside) {
  const Bytes frame =
      PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(0, Bytes(6)).tcp(1, 2).payload(9).build();
  for (std::size_t size = 14; size <= frame.size(); ++size) {
    Packet packet;
    const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(read(cut, packet), size == frame.size());
  }
  Bytes bad = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).build();
  bad[14 + 20 + 12] = 4 << 4;  // a TCP header of 16 bytes
  Packet packet;
  EXPECT_FALSE(read(bad, packet));
  bad[14 + 20 + 12] = 15 << 4;
  EXPECT_FALSE(read(bad, packet));
}

}  // namespace
}  // namespace sluice::flow
