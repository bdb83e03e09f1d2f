// What a gate does not let pass does not hold; and it lets little pass that does not.
#include "match/detect/header_gate.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "match/confirm/header_match.h"
#include "match/confirm/payload_matcher.h"
#include "match/rules/rule_set.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

PacketFacts packet_with(std::uint8_t protocol, std::uint16_t source, std::uint16_t destination,
                        std::string_view payload) {
  PacketFacts facts;
  facts.family = 4;
  facts.source = *packet::IpAddress::parse("10.0.0.1");
  facts.destination = *packet::IpAddress::parse("10.0.0.2");
  facts.protocol = protocol;
  facts.has_ports = protocol != packet::protocol_icmp;
  facts.has_tcp = protocol == packet::protocol_tcp;
  facts.has_icmp = protocol == packet::protocol_icmp;
  facts.source_port = source;
  facts.destination_port = destination;
  facts.payload = payload;
  return facts;
}

struct Case {
  const char* rule;
  std::uint8_t protocol;
  std::uint16_t source, destination;
  std::uint8_t flags;
  std::size_t payload, inspected;
  bool passes;
};

constexpr std::uint8_t tcp = packet::protocol_tcp, udp = packet::protocol_udp, icmp = packet::protocol_icmp;
constexpr std::size_t unknown = HeaderGate::unknown;

TEST(HeaderGate, LetsPassWhatTheHeaderAndTheSizesMayAdmit) {
  const std::string bytes(70'000, 'x');
  for (const Case& one : {
           Case{"tcp any any -> any 80 (", tcp, 1, 80, 0, 9, 9, true},
           Case{"tcp any any -> any 80 (", tcp, 80, 1, 0, 9, 9, false},
           Case{"tcp any any -> any 80 (", udp, 1, 80, 0, 9, 9, false},
           Case{"tcp any any <> any 80 (", tcp, 80, 1, 0, 9, 9, true},
           Case{"tcp any any <> any 80 (", tcp, 81, 1, 0, 9, 9, false},
           Case{"udp any 53 -> any 1024: (", udp, 53, 1024, 0, 9, 9, true},
           Case{"udp any 53 -> any 1024: (", udp, 53, 1023, 0, 9, 9, false},
           Case{"tcp any any -> any [21,25,6000:6010] (", tcp, 1, 6005, 0, 9, 9, true},
           Case{"tcp any any -> any [21,25,6000:6010] (", tcp, 1, 80, 0, 9, 9, false},
           Case{"tcp any any -> any !80 (", tcp, 1, 81, 0, 9, 9, true},
           Case{"tcp any any -> any !80 (", tcp, 1, 80, 0, 9, 9, false},
           Case{"ip any any -> any any (", icmp, 0, 0, 0, 9, 9, true},
           Case{"icmp any any -> any any (itype:0; ", icmp, 0, 0, 0, 9, 9, true},
           Case{"icmp any any -> any any (itype:>7; ", icmp, 0, 0, 0, 9, 9, false},
           Case{"icmp any any -> any any (itype:!8; ", icmp, 0, 0, 0, 9, 9, true},
           Case{"ip any any -> any any (itype:0; ", udp, 1, 2, 0, 9, 9, false},
           Case{"tcp any any -> any any (flags:SF; ", tcp, 1, 2, 3, 9, 9, true},
           Case{"tcp any any -> any any (flags:SF; ", tcp, 1, 2, 0x13, 9, 9, false},
           Case{"tcp any any -> any any (flags:S,CE; ", tcp, 1, 2, 0xc2, 9, 9, true},
           Case{"tcp any any -> any any (flags:A+; ", tcp, 1, 2, 0x18, 9, 9, true},
           Case{"tcp any any -> any any (flags:A+; ", tcp, 1, 2, 0x08, 9, 9, false},
           Case{"tcp any any -> any any (flags:*SF; ", tcp, 1, 2, 0x08, 9, 9, true},
           Case{"tcp any any -> any any (dsize:9; ", tcp, 1, 2, 0, 9, 500, true},
           Case{"tcp any any -> any any (dsize:9; ", tcp, 1, 2, 0, 10, 500, false},
           Case{"tcp any any -> any any (dsize:!9; ", tcp, 1, 2, 0, 10, 10, true},
           Case{"udp any any -> any any (isdataat:9; ", udp, 1, 2, 0, 10, 10, true},
           Case{"udp any any -> any any (isdataat:9; ", udp, 1, 2, 0, 9, 9, false},
           Case{"udp any any -> any any (isdataat:!9; ", udp, 1, 2, 0, 9, 9, true},
           Case{"udp any any -> any any (isdataat:!9; ", udp, 1, 2, 0, 10, 10, false},
           Case{"tcp any any -> any any (isdataat:!9; ", tcp, 1, 2, 0, 10, 9, true},
           Case{"tcp any any -> any any (isdataat:!9; ", tcp, 1, 2, 0, 10, unknown, true},
           Case{"tcp any any -> any any (content:\"xxxx\"; offset:5; ", tcp, 1, 2, 0, 9, 9, true},
           Case{"tcp any any -> any any (content:\"xxxx\"; offset:5; ", tcp, 1, 2, 0, 8, 8, false},
           Case{"tcp any any -> any any (content:\"xxxx\"; offset:5; ", tcp, 1, 2, 0, 8, 9, true},
           Case{"tcp any any -> any any (content:\"xx\"; content:\"x\"; distance:-2; ", tcp, 1, 2, 0, 2, 2, true},
           Case{"tcp any any -> any any (content:!\"yyyy\"; ", tcp, 1, 2, 0, 1, 1, true},
           Case{"tcp any any -> any any (content:\"x\"; offset:65535; ", tcp, 1, 2, 0, 9, 70'000, true},
       }) {
    const std::string text = "alert " + std::string(one.rule) + "sid:1;)";
    const auto rule = read_rule(text);
    ASSERT_TRUE(rule) << text << rule.error().message;
    PacketFacts packet =
        packet_with(one.protocol, one.source, one.destination, std::string_view(bytes).substr(0, one.payload));
    packet.tcp_flags = one.flags;
    EXPECT_EQ(HeaderGate(*rule).passes(packet, one.inspected), one.passes) << text << " payload " << one.payload;
    if (one.inspected == unknown || one.passes) continue;
    Buffers buffers;
    buffers.set(Buffer::payload, std::string_view(bytes).substr(0, one.inspected));
    auto payload = PayloadMatcher::make(*rule);
    ASSERT_TRUE(payload);
    PayloadMatcher::Scratch scratch;
    EXPECT_FALSE(admits(*rule, packet, {}) && payload->matches(buffers, scratch) == PayloadVerdict::yes) << text;
  }
}

TEST(HeaderGate, AllThatAHeaderAdmitsPasses) {
  const auto set = read_rules_text(
      "alert tcp any any -> any 80 (flags:SF; sid:1;)\nalert tcp any [21,80:90] -> any !25 (flags:A+; sid:2;)\n"
      "alert tcp any 25 <> any [21,80] (flags:!SF; sid:3;)\nalert udp any 1024: -> any 53 (dsize:2<>9; sid:4;)\n"
      "alert ip any any -> any any (dsize:!5; sid:5;)\nalert tcp-pkt any any -> any any (flags:S,12; sid:6;)\n"
      "alert icmp any any -> any any (dsize:>5; sid:7;)\nalert ip any any -> any any (flags:*SF; sid:8;)\n",
      "test.rules");
  ASSERT_TRUE(set && set->refused.empty());
  std::mt19937 random(3);
  const std::string bytes(16, 'x');
  std::size_t admitted = 0, passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    constexpr std::uint8_t protocols[] = {tcp, udp, icmp};
    constexpr std::uint16_t ports[] = {21, 25, 53, 80, 85, 1024};
    PacketFacts packet = packet_with(protocols[random() % 3], ports[random() % 6], ports[random() % 6],
                                     std::string_view(bytes).substr(random() % 16));
    if (packet.has_tcp) packet.tcp_flags = static_cast<std::uint8_t>(random() % 4 * 16 + random() % 4);
    for (const Rule& rule : set->rules) {
      const bool passes = HeaderGate(rule).passes(packet, packet.payload.size());
      const bool admits = match::admits(rule, packet, {});
      EXPECT_TRUE(passes || !admits) << "sid " << rule.sid;
      admitted += admits ? 1 : 0;
      passed += passes ? 1 : 0;
    }
  }
  EXPECT_GT(admitted, 10'000U);
  EXPECT_LT(passed, 2 * admitted);
}

// By direction and state alone, and so for every rule that says no more of the flow.
TEST(HeaderGate, PassesTheFlowsThatARuleAdmits) {
  const PacketFacts packet = packet_with(tcp, 1, 2, "x");
  unsigned passed = 0;
  for (const char* const flow :
       {"", "flow:established; ", "flow:not_established; ", "flow:stateless; ", "flow:to_server; ",
        "flow:to_client,established; ", "flow:to_client,not_established; "}) {
    const auto rule = read_rule("alert tcp any any -> any any (" + std::string(flow) + "sid:1;)");
    ASSERT_TRUE(rule) << flow;
    for (unsigned bits = 0; bits < 8; ++bits) {
      FlowFacts facts;
      facts.known = (bits & 1) != 0;
      facts.established = facts.known && (bits & 2) != 0;
      if (facts.known) facts.direction = (bits & 4) != 0 ? FlowDirection::to_server : FlowDirection::to_client;
      EXPECT_EQ(HeaderGate(*rule).passes(facts), admits(*rule, packet, facts)) << flow << bits;
      passed += admits(*rule, packet, facts) ? 1 : 0;
    }
  }
  EXPECT_EQ(passed, 28U);
}

TEST(HeaderGate, APacketWithoutPortsPassesRulesOfAnyPortsOnly) {
  PacketFacts fragment = packet_with(tcp, 0, 0, "x");
  fragment.has_ports = fragment.has_tcp = false;
  EXPECT_TRUE(HeaderGate(*read_rule("alert tcp any any -> any any (sid:1;)")).passes(fragment, 1));
  EXPECT_FALSE(HeaderGate(*read_rule("alert tcp any any -> any !80 (sid:1;)")).passes(fragment, 1));
}

}  // namespace
}  // namespace sluice::match
