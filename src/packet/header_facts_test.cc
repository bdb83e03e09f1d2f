#include "packet/header_facts.h"

#include <gtest/gtest.h>

#include <random>

#include "packet/builder.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

HeaderFacts read(const Bytes& frame) {
  static Bytes last;  // views go on to it; ends where the frame does
  last = frame;
  last.shrink_to_fit();
  HeaderFacts facts;
  read_headers({reinterpret_cast<const char*>(last.data()), last.size()}, facts);
  return facts;
}

PacketBuilder v4() {
  return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2");
}
PacketBuilder v6() {
  return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
}

TEST(HeaderFacts, Tcp) {
  const HeaderFacts facts = read(v4().tcp(1234, 80)
                                     .tcp_flags(tcp_ack)
                                     .tcp_sequence(0x01020304, 0x05060708)
                                     .payload(Bytes{'a', 'b', 'c'})
                                     .pad_to(80)
                                     .build());
  EXPECT_EQ(facts.family, 4);
  EXPECT_TRUE(facts.whole && facts.has_tcp && facts.has_ports && !facts.fragment());
  EXPECT_EQ(facts.source.str(), "10.0.0.1");
  EXPECT_EQ(facts.destination.str(), "10.0.0.2");
  EXPECT_EQ(facts.source_port, 1234);
  EXPECT_EQ(facts.destination_port, 80);
  EXPECT_EQ(facts.tcp_flags, tcp_ack);
  EXPECT_EQ(facts.tcp_sequence, 0x01020304U);
  EXPECT_EQ(facts.tcp_acknowledgement, 0x05060708U);
  EXPECT_EQ(facts.ip_length, 43U);
  EXPECT_EQ(facts.ip_header.size(), 20U);
  EXPECT_EQ(facts.transport_header.size(), 20U);
  EXPECT_EQ(facts.payload, "abc") << "without Ethernet's padding";
}

// Which protocols have ports is said in two places, of all and of those that are read here; all else follows them.
TEST(HeaderFacts, OfEachProtocolPortsAreReadAsItIsSaid) {
  for (unsigned number = 0; number <= 0xff; ++number) {
    SCOPED_TRACE(number);
    const auto protocol = static_cast<std::uint8_t>(number);
    const auto frame = [&](std::uint8_t port) {
      // A TCP header without options, and a UDP header of a datagram of 40 bytes.
      Bytes bytes(40, 0);
      bytes[1] = port;
      bytes[5] = 40;
      bytes[12] = 0x50;
      return v4().protocol(protocol).payload(bytes).build();
    };
    const Bytes one = frame(1), other = frame(2);
    EXPECT_EQ(read(one).has_ports, facts_have_ports(protocol));
    EXPECT_TRUE(has_ports(protocol) || !facts_have_ports(protocol));
    const auto hash_of = [](const Bytes& bytes) {
      FrameView view{};
      const auto length = static_cast<std::uint32_t>(bytes.size());
      EXPECT_EQ(parse_frame(bytes.data(), length, view), no_reason);
      return flow_hash(bytes.data(), length, view);
    };
    EXPECT_EQ(hash_of(one) != hash_of(other), has_ports(protocol));
  }
}

TEST(HeaderFacts, AUdpPayloadEndsWhereItsLengthSays) {
  Bytes frame = v4().udp(1, 2).payload(10).build();
  const auto with = [&](std::uint16_t length) {
    frame[14 + 20 + 4] = static_cast<std::uint8_t>(length >> 8);
    frame[14 + 20 + 5] = static_cast<std::uint8_t>(length);
    return read(frame).payload.size();
  };
  EXPECT_EQ(with(18), 10U);
  EXPECT_EQ(with(12), 4U);
  EXPECT_EQ(with(500), 10U);
  EXPECT_EQ(with(8), 0U);
  EXPECT_EQ(with(0), 0U);

  // Over IPv6 0 stands for all of it.
  Bytes jumbo = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2).payload(10).build();
  jumbo[14 + 40 + 4] = jumbo[14 + 40 + 5] = 0;
  EXPECT_EQ(read(jumbo).payload.size(), 10U);
  jumbo[14 + 40 + 5] = 7;
  EXPECT_EQ(read(jumbo).payload.size(), 0U);
}

TEST(HeaderFacts, TagsAreLookedBehindHoweverMany) {
  for (const std::uint16_t outer : {ethertype_vlan, ethertype_qinq, ethertype_old_qinq}) {
    for (const unsigned tags : {1U, 2U, 5U, 40U}) {
      PacketBuilder builder = v4();
      for (unsigned i = 0; i < tags; ++i) builder.vlan(7);
      Bytes frame = builder.udp(5000, 53).payload(5).build();
      header_at<EthernetHeader>(frame.data(), 0).ethertype = be16(outer);
      const HeaderFacts facts = read(frame);
      EXPECT_EQ(facts.family, 4) << outer << ", " << tags;
      EXPECT_EQ(facts.destination_port, 53);
      EXPECT_EQ(facts.payload.size(), 5U);
    }
  }
  // Of no other type, and no tunnel.
  for (const std::uint16_t type : {0x9200, 0x8847, 0x8864, 0x0032}) {
    Bytes frame = v4().vlan(7).udp(5000, 53).build();
    header_at<EthernetHeader>(frame.data(), 0).ethertype = be16(type);
    EXPECT_EQ(read(frame).family, 0) << type;
  }
  const HeaderFacts gre = read(v4().protocol(47).payload(40).build());
  EXPECT_EQ(gre.protocol, 47);
  EXPECT_FALSE(gre.has_ports);
  const HeaderFacts lite = read(v4().protocol(protocol_udp_lite).payload(40).build());
  EXPECT_FALSE(lite.has_ports);
  EXPECT_EQ(lite.payload.size(), 40U) << "all behind IP";
}

TEST(HeaderFacts, AnyNumberOfExtensionsIsWalkedAndAhEndsThem) {
  PacketBuilder many = v6();
  for (int i = 0; i < 40; ++i) many.extension(protocol_destination_options, Bytes(6));
  EXPECT_EQ(read(PacketBuilder(many).udp(5000, 53).build()).destination_port, 53);
  const HeaderFacts ah = read(v6().protocol(51).payload(60).build());
  EXPECT_EQ(ah.protocol, 51);
  EXPECT_FALSE(ah.has_ports);
}

TEST(HeaderFacts, ExtensionsAreWalkedAndBelongToTheIpHeader) {
  const HeaderFacts facts = read(v6().extension(protocol_destination_options, Bytes(6))
                                     .extension(protocol_routing, Bytes(14))
                                     .udp(5000, 53)
                                     .payload(5)
                                     .build());
  EXPECT_TRUE(facts.whole);
  EXPECT_EQ(facts.protocol, protocol_udp);
  EXPECT_EQ(facts.ip_header.size(), 40U + 8 + 16);
  EXPECT_EQ(facts.destination_port, 53);
  EXPECT_EQ(facts.payload.size(), 5U);
}

// Hosts do not look for the option that would say how long it is.
TEST(HeaderFacts, WithoutALengthBeforeHopByHopOptionsItIsAsLongAsTheFrame) {
  const Bytes padding{1, 4, 0, 0, 0, 0}, jumbo{0xc2, 4, 0, 1, 0, 0};
  for (const Bytes& options : {padding, jumbo}) {
    const Bytes frame = v6().ip_length(0).extension(protocol_hop_by_hop, options).udp(1, 53).payload(5).build();
    const HeaderFacts facts = read(frame);
    EXPECT_TRUE(facts.whole && facts.has_ports);
    EXPECT_EQ(facts.ip_length, frame.size() - 14);
    EXPECT_EQ(facts.destination_port, 53);
    EXPECT_EQ(facts.payload.size(), 5U);
  }
  // Before anything else 0 means that nothing follows.
  const HeaderFacts other = read(v6().ip_length(0).extension(protocol_destination_options, padding).udp(1, 53).build());
  EXPECT_EQ(other.ip_length, 40U);
  EXPECT_FALSE(other.whole || other.has_ports);
}

// Only within a host does 0 stand for a packet that is too long to say it.
TEST(HeaderFacts, WithoutALengthItIsNoIpv4) {
  EXPECT_EQ(read(v4().ip_length(0).tcp(1, 2).payload(9).build()).family, 0);
}

TEST(HeaderFacts, AnExtensionLongerThanThePacketIsNotWhole) {
  Bytes frame = v6().extension(protocol_destination_options, Bytes(6)).udp(1, 2).payload(5).build();
  frame[14 + 40 + 1] = 9;
  const HeaderFacts facts = read(frame);
  EXPECT_EQ(facts.family, 6);
  EXPECT_FALSE(facts.whole);
  EXPECT_FALSE(facts.has_ports);
}

TEST(HeaderFacts, Fragments) {
  for (const bool family4 : {true, false}) {
    const auto built = [&](std::uint16_t offset, bool more) {
      return read((family4 ? v4() : v6()).fragment(offset, more).udp(1, 2).payload(64).build());
    };
    const HeaderFacts first = built(0, true), later = built(64, false);
    EXPECT_TRUE(first.fragment() && first.has_ports && first.whole);
    EXPECT_TRUE(later.fragment() && !later.has_ports && later.whole);
    EXPECT_EQ(later.fragment_offset, 8U);
    EXPECT_EQ(first.fragment_protocol, family4 ? 0 : protocol_udp);
    EXPECT_EQ(later.fragment_protocol, family4 ? 0 : protocol_udp);
    EXPECT_EQ(later.payload.size(), 64U);
  }
}

TEST(HeaderFacts, TheVersionMustBeTheEthertypes) {
  Bytes frame = v4().udp(1, 2).payload(40).build();
  frame[14] = 0x65;
  EXPECT_EQ(read(frame).family, 0);
  frame = v6().udp(1, 2).payload(40).build();
  frame[14] = 0x40;
  EXPECT_EQ(read(frame).family, 0);
}

// Cut or changed anywhere: views stay within the frame, and `whole` says what is not there.
TEST(HeaderFacts, CutAndChangedAnywhereStaysInside) {
  std::mt19937 random(3);
  const Bytes frames[] = {v4().tcp(1, 2).payload(9).build(), v4().icmp(8, 0, 7).build(),
                          v6().extension(0, Bytes(6)).tcp(1, 2).payload(9).build(),
                          v6().fragment(0, true).udp(1, 2).payload(9).build()};
  for (const Bytes& frame : frames) {
    for (std::size_t size = 0; size <= frame.size(); ++size) {
      EXPECT_EQ(read(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size))).whole,
                size == frame.size());
    }
    for (int round = 0; round < 5000; ++round) {
      Bytes changed = frame;
      for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      changed.resize(changed.size() - random() % 8);
      const HeaderFacts facts = read(changed);
      for (const std::string_view view : {facts.ip_header, facts.ip_options, facts.transport_header, facts.payload}) {
        EXPECT_LE(view.size(), changed.size());
      }
      EXPECT_LE(facts.ip_header.size() + facts.transport_header.size() + facts.payload.size(), changed.size());
    }
  }
}

}  // namespace
}  // namespace sluice::packet
