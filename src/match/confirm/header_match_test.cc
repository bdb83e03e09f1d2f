#include "match/confirm/header_match.h"

#include <gtest/gtest.h>

#include "match/rules/rule_set.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

// Keeps the frame alive beside what was read from it.
struct Packet {
  Bytes frame;
  PacketFacts facts;
  explicit Packet(const PacketBuilder& builder)
      : frame(builder.build()), facts(facts_of({reinterpret_cast<const char*>(frame.data()), frame.size()})) {}
};

Packet tcp(std::uint8_t flags = packet::tcp_ack | packet::tcp_psh) {
  return Packet(
      PacketBuilder().ipv4("10.0.0.1", "192.0.2.80").ttl(63).id(7).tcp(40000, 80).tcp_flags(flags).payload(5));
}

bool admitted(const std::string& header, const std::string& options, const Packet& packet, const FlowFacts& flow = {}) {
  const auto rule = read_rule(header + " (msg:\"t\"; " + options + " sid:1;)");
  EXPECT_TRUE(rule) << (rule ? "" : rule.error().message);
  return rule && admits(*rule, packet.facts, flow);
}

TEST(PacketFacts, ReadsWhatTheHeadersSay) {
  const Packet packet = tcp();
  EXPECT_EQ(packet.facts.source.str(), "10.0.0.1");
  EXPECT_EQ(packet.facts.destination_port, 80);
  EXPECT_EQ(packet.facts.payload.size(), 5u);
  EXPECT_EQ(packet.facts.ip_id, 7u);
  EXPECT_EQ(packet.facts.tcp_flags, packet::tcp_ack | packet::tcp_psh);
  EXPECT_FALSE(packet.facts.fragment());
}

TEST(PacketFacts, WalksIpv6ExtensionsAndFragments) {
  const Packet extended(
      PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(60, Bytes(6)).udp(53, 1053).payload(9));
  EXPECT_EQ(extended.facts.protocol, packet::protocol_udp);
  EXPECT_EQ(extended.facts.destination_port, 1053);
  EXPECT_EQ(extended.facts.payload.size(), 9u);
  const Packet later(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").fragment(8, false).udp(1, 2).payload(24));
  EXPECT_TRUE(later.facts.fragment());
  EXPECT_FALSE(later.facts.has_ports);
  EXPECT_EQ(later.facts.payload.size(), 24u);
}

TEST(PacketFacts, AFrameCutAnywhereIsReadWithoutHarm) {
  for (const PacketBuilder& builder :
       {PacketBuilder().vlan(5).ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).payload(3),
        PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(0, Bytes(14)).tcp(1, 2).payload(3)}) {
    const Bytes frame = builder.build();
    for (std::size_t size = 0; size <= frame.size(); ++size) {
      const std::vector<char> part(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      const PacketFacts facts = facts_of({part.data(), part.size()});
      EXPECT_EQ(facts.has_tcp, size >= frame.size() - 3) << size;
    }
  }
}

TEST(HeaderMatch, ProtocolAddressesAndPorts) {
  const Packet packet = tcp();
  EXPECT_TRUE(admitted("alert tcp any any -> any 80", "", packet));
  EXPECT_TRUE(admitted("alert ip 10.0.0.0/8 any -> any any", "", packet));
  EXPECT_FALSE(admitted("alert udp any any -> any any", "", packet));
  EXPECT_FALSE(admitted("alert tcp any any -> any 81", "", packet));
  EXPECT_FALSE(admitted("alert tcp any 80 -> any any", "", packet));
  EXPECT_TRUE(admitted("alert tcp any 80 <> any any", "", packet));
  EXPECT_FALSE(admitted("alert tcp !10.0.0.1 any -> any any", "", packet));
  EXPECT_FALSE(admitted("alert http any any -> any any", "", packet));
  EXPECT_TRUE(admitted("alert http any any -> any any", "", packet, {.known = true, .application = Protocol::http}));
}

TEST(HeaderMatch, Fields) {
  const Packet packet = tcp();
  EXPECT_TRUE(admitted("alert tcp any any -> any any", "dsize:5;", packet));
  EXPECT_FALSE(admitted("alert tcp any any -> any any", "dsize:>5;", packet));
  EXPECT_TRUE(admitted("alert tcp any any -> any any", "ttl:<64; id:7;", packet));
  EXPECT_TRUE(admitted("alert tcp any any -> any any", "flags:PA;", packet));
  EXPECT_FALSE(admitted("alert tcp any any -> any any", "flags:S;", packet));
  EXPECT_TRUE(admitted("alert tcp any any -> any any", "flags:A+;", packet));
  EXPECT_TRUE(admitted("alert tcp any any -> any any", "flags:S,12;", tcp(packet::tcp_syn | 0xc0)));
  EXPECT_FALSE(admitted("alert ip any any -> any any", "itype:8;", packet));
  EXPECT_FALSE(admitted("alert ip any any -> any any", "sameip;", packet));
}

// Type and code are two numbers: what one of them is says nothing of the other.
TEST(HeaderMatch, TypesAndCodesOfIcmp) {
  const struct {
    const char* options;
    std::uint8_t type, code;
    bool admitted;
  } cases[] = {
      {"icode:3;", 9, 3, true},           {"icode:3;", 3, 4, false},          {"icode:!3;", 3, 4, true},
      {"icode:!3;", 9, 3, false},         {"icode:0;", 9, 0, true},           {"icode:<3;", 9, 2, true},
      {"icode:<3;", 2, 3, false},         {"icode:<=3;", 9, 3, true},         {"icode:<=3;", 3, 4, false},
      {"icode:>3;", 3, 4, true},          {"icode:>3;", 9, 3, false},         {"icode:>=3;", 1, 3, true},
      {"icode:>=3;", 9, 2, false},        {"icode:2<>5;", 9, 3, true},        {"icode:2<>5;", 9, 4, true},
      {"icode:2<>5;", 3, 2, false},       {"icode:2<>5;", 3, 5, false},       {"icode:255;", 9, 255, true},
      {"itype:3;", 3, 9, true},           {"itype:3;", 4, 3, false},          {"itype:<3;", 2, 9, true},
      {"itype:<3;", 3, 2, false},         {"itype:>3;", 4, 3, true},          {"itype:>3;", 3, 9, false},
      {"itype:2<>5;", 4, 9, true},        {"itype:2<>5;", 5, 3, false},       {"itype:3; icode:4;", 3, 4, true},
      {"itype:3; icode:4;", 4, 3, false}, {"itype:3; icode:4;", 3, 5, false},
  };
  for (const auto& [options, type, code, expected] : cases) {
    SCOPED_TRACE(options + (" " + std::to_string(type)) + "/" + std::to_string(code));
    const Packet v4(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").icmp(type, code).payload(9));
    const Packet v6(PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").icmp6(type, code).payload(9));
    for (const char* const protocol : {"icmp", "ip"}) {
      const std::string header = "alert " + std::string(protocol) + " any any -> any any";
      EXPECT_EQ(admitted(header, options, v4), expected) << protocol;
      EXPECT_EQ(admitted(header, options, v6), expected) << protocol;
    }
    EXPECT_EQ(admitted("alert icmpv4 any any -> any any", options, v4), expected);
    EXPECT_EQ(admitted("alert icmpv6 any any -> any any", options, v6), expected);
    EXPECT_FALSE(admitted("alert icmpv6 any any -> any any", options, v4));
    EXPECT_FALSE(admitted("alert icmpv4 any any -> any any", options, v6));
  }
}

// The bytes are there, and are no type and code: of another protocol, of a later fragment, of a message that is cut.
TEST(HeaderMatch, WhatHasNoHeaderOfIcmpHasNoTypeAndNoCode) {
  const Bytes zeros(24);
  const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); };
  const auto v6 = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); };
  const PacketBuilder packets[] = {v4().udp(0, 0).payload(zeros),
                                   v4().tcp(0, 0).payload(zeros),
                                   v6().udp(0, 0).payload(zeros),
                                   v4().protocol(packet::protocol_icmp).fragment(8, false).payload(zeros),
                                   v6().protocol(packet::protocol_icmpv6).fragment(8, false).payload(zeros),
                                   v4().protocol(packet::protocol_icmp).payload(Bytes(3)),
                                   v6().protocol(packet::protocol_icmpv6).payload(Bytes(3))};
  for (const PacketBuilder& builder : packets) {
    const Packet packet(builder);
    for (const char* const options : {"itype:0;", "icode:0;", "itype:!1;", "icode:!1;"}) {
      EXPECT_FALSE(admitted("alert ip any any -> any any", options, packet)) << options << &builder - packets;
    }
  }
}

TEST(HeaderMatch, Flow) {
  const Packet packet = tcp();
  const FlowFacts server{.known = true, .direction = FlowDirection::to_server, .established = true};
  const std::string any = "alert tcp any any -> any any";
  EXPECT_TRUE(admitted(any, "flow:to_server,established;", packet, server));
  EXPECT_FALSE(admitted(any, "flow:to_client;", packet, server));
  EXPECT_FALSE(admitted(any, "flow:established;", packet));
  EXPECT_TRUE(admitted(any, "flow:stateless;", packet));
  EXPECT_TRUE(admitted(any, "flow:not_established;", packet));
  EXPECT_FALSE(admitted(any, "flow:not_established;", packet, server));
  EXPECT_FALSE(admitted("alert tcp-stream any any -> any any", "content:\"a\";", packet, server));
  // What is in the stream, and what it did not take.
  FlowFacts in_stream = server;
  in_stream.reassembled = true;
  FlowFacts beside = in_stream;
  beside.beside_stream = true;
  EXPECT_TRUE(admitted("alert tcp-stream any any -> any any", "content:\"a\";", packet, in_stream));
  EXPECT_FALSE(admitted("alert tcp-stream any any -> any any", "content:\"a\";", packet, beside));
  EXPECT_TRUE(admitted(any, "flow:only_stream; content:\"a\";", packet, in_stream));
  EXPECT_FALSE(admitted(any, "flow:only_stream; content:\"a\";", packet, beside));
  EXPECT_TRUE(admitted(any, "content:\"a\";", packet, beside));
}

}  // namespace
}  // namespace sluice::match
