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

TEST(PacketFacts, reads_what_the_headers_say) {
  const Packet packet = tcp();
  EXPECT_EQ(packet.facts.source.str(), "10.0.0.1");
  EXPECT_EQ(packet.facts.destination_port, 80);
  EXPECT_EQ(packet.facts.payload.size(), 5u);
  EXPECT_EQ(packet.facts.ip_id, 7u);
  EXPECT_EQ(packet.facts.tcp_flags, packet::tcp_ack | packet::tcp_psh);
  EXPECT_FALSE(packet.facts.fragment());
}

TEST(PacketFacts, walks_ipv6_extensions_and_fragments) {
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

TEST(PacketFacts, a_frame_cut_anywhere_is_read_without_harm) {
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

TEST(HeaderMatch, protocol_addresses_and_ports) {
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

TEST(HeaderMatch, fields) {
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

TEST(HeaderMatch, flow) {
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
}

}  // namespace
}  // namespace sluice::match
