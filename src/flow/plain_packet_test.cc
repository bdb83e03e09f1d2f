// What is read of a plain frame is what the long way reads, and every other frame is left to it.
#include "flow/plain_packet.h"

#include <gtest/gtest.h>

#include <random>

#include "packet/builder.h"

namespace sluice::flow {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

std::string_view view(const Bytes& frame) {
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

bool read_long(std::string_view frame, Packet& packet) {
  packet::HeaderFacts facts;
  packet::read_headers(frame, facts);
  return read_packet(facts, packet);
}

void expect_same(const Packet& one, const Packet& other) {
  EXPECT_EQ(one.source, other.source);
  EXPECT_EQ(one.destination, other.destination);
  EXPECT_EQ(one.source_port, other.source_port);
  EXPECT_EQ(one.destination_port, other.destination_port);
  EXPECT_EQ(one.family, other.family);
  EXPECT_EQ(one.protocol, other.protocol);
  EXPECT_EQ(one.fragment, other.fragment);
  EXPECT_EQ(one.ip_length, other.ip_length);
  EXPECT_EQ(one.tcp_flags, other.tcp_flags);
  EXPECT_EQ(one.window_scale, other.window_scale);
  EXPECT_EQ(one.payload.size(), other.payload.size());
  if (!one.payload.empty()) {
    EXPECT_EQ(one.payload.data(), other.payload.data());
  }
  if (one.protocol != packet::protocol_tcp) return;
  EXPECT_EQ(one.window, other.window);
  EXPECT_EQ(one.sequence, other.sequence);
  EXPECT_EQ(one.acknowledgment, other.acknowledgment);
}

PacketBuilder v4() {
  return PacketBuilder().ipv4("10.1.2.3", "192.0.2.7");
}
PacketBuilder v6() {
  return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
}

TEST(PlainPacket, IsWhatMostFramesAre) {
  struct Case {
    const char* what;
    Bytes frame;
    bool plain;
  };
  for (const Case& one : {
           Case{"UDP", v4().udp(1, 53).payload(9).build(), true},
           Case{"UDP without payload", v4().udp(1, 53).build(), true},
           Case{"TCP", v4().tcp(1, 80).payload(9).pad_to(90).build(), true},
           Case{"TCP over IPv6", v6().tcp(1, 80).payload(9).build(), true},
           Case{"UDP over IPv6", v6().udp(1, 80).payload(9).build(), true},
           Case{"may not be fragmented", v4().dont_fragment().udp(1, 53).payload(9).build(), true},
           Case{"a SYN", v4().tcp(1, 80).tcp_flags(tcp_syn).build(), false},
           Case{"a first fragment", v4().fragment(0, true).udp(1, 53).payload(16).build(), false},
           Case{"a later fragment", v4().fragment(8, false).udp(1, 53).payload(16).build(), false},
           Case{"tagged", v4().vlan(7).udp(1, 53).payload(9).build(), false},
           Case{"options", v4().options(Bytes(4)).udp(1, 53).payload(9).build(), false},
           Case{"extension headers",
                v6().extension(packet::protocol_destination_options, Bytes(6)).udp(1, 53).payload(9).build(), false},
           Case{"ICMP", v4().icmp(8, 0).build(), false},
           Case{"cut", v4().udp(1, 53).payload(99).cut_to(80).build(), false},
           Case{"a jumbogram's length", v6().udp(1, 53).udp_length(0).payload(9).build(), false},
           Case{"ARP", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build(), false},
           Case{"nothing", Bytes(), false},
       }) {
    Packet packet;
    EXPECT_EQ(read_plain_packet(view(one.frame), packet), one.plain) << one.what;
  }
}

TEST(PlainPacket, IsReadAsTheLongWayReadsIt) {
  std::mt19937 random(1);
  unsigned plain = 0, other = 0;
  for (unsigned round = 0; round < 200'000; ++round) {
    PacketBuilder builder = random() % 2 == 0 ? v4() : v6();
    const auto port = [&] { return static_cast<std::uint16_t>(random()); };
    random() % 2 == 0 ? builder.udp(port(), port()) : builder.tcp(port(), port());
    Bytes frame = builder.payload(random() % 40).build();
    // Any byte of the headers, or the frame's end, may be anything.
    for (unsigned changes = random() % 3; changes > 0; --changes) {
      frame[12 + random() % std::min<std::size_t>(frame.size() - 12, 64)] = static_cast<std::uint8_t>(random());
    }
    if (random() % 8 == 0) frame.resize(random() % (frame.size() + 1));
    frame.shrink_to_fit();
    Packet packet, expected;
    if (!read_plain_packet(view(frame), packet)) {
      ++other;
      plain_source_port(view(frame));  // reads nothing behind the frame
      continue;
    }
    ++plain;
    ASSERT_TRUE(read_long(view(frame), expected)) << round;
    expect_same(packet, expected);
    EXPECT_EQ(plain_source_port(view(frame)), expected.source_port);
    if (HasFailure()) FAIL() << "in round " << round;
  }
  EXPECT_GT(plain, 50'000U);
  EXPECT_GT(other, 20'000U);
}

}  // namespace
}  // namespace sluice::flow
