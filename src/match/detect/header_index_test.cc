// Each rule that the header admits is among those found, whatever the header; and few others are.
#include "match/detect/header_index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "match/confirm/header_match.h"
#include "match/rules/rule_set.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

constexpr const char* rules_text =
    "alert tcp any any -> any 80 (sid:1;)\n"
    "alert tcp any 21 -> any any (sid:2;)\n"
    "alert tcp any 1024: -> any [25,110,6000:6010] (sid:3;)\n"
    "alert tcp any any -> any !80 (sid:4;)\n"
    "alert tcp any any -> any any (flags:SF; sid:5;)\n"
    "alert tcp any any <> any 139 (sid:6;)\n"
    "alert udp any any -> any 53 (sid:7;)\n"
    "alert udp any 67 -> any 68 (sid:8;)\n"
    "alert ip any any -> any any (ip_proto:2; sid:9;)\n"
    "alert ip any any -> any any (ip_proto:!6; sid:10;)\n"
    "alert ip any any -> any any (ttl:1; sid:11;)\n"
    "alert icmp any any -> any any (itype:8; sid:12;)\n"
    "alert tcp any any -> any any (flags:A+; sid:13;)\n"
    "alert udp any any -> any any (ttl:64; sid:14;)\n"
    "alert udp any any -> any any (fragoffset:>0; sid:15;)\n"
    "alert tcp any any -> any any (fragoffset:>0; sid:16;)\n"
    "alert ip any any -> any any (ip_proto:17; fragoffset:>0; sid:17;)\n"
    "alert ip [10.0.0.1,10.9.0.0/16] any -> any any (sid:18;)\n"
    "alert tcp any any -> 10.0.0.2 80 (sid:19;)\n"
    "alert udp 10.0.0.3 any <> any any (sid:20;)\n"
    "alert ip 2001:db8::/64 any -> any any (sid:21;)\n"
    "alert ip !10.0.0.1 any -> any 25 (sid:22;)\n"
    "alert ip 10.0.0.0/31 any -> 10.0.0.2/31 any (sid:23;)\n";

PacketFacts random_packet(std::mt19937& random) {
  static constexpr std::uint8_t protocols[] = {packet::protocol_tcp, packet::protocol_udp, packet::protocol_icmp, 2,
                                               132};
  static constexpr std::uint16_t ports[] = {80, 21, 25, 110, 6000, 6010, 6011, 139, 53, 67, 68, 1024, 1023, 0, 65535};
  PacketFacts facts;
  facts.family = 4;
  static const packet::IpAddress v4[] = {*packet::IpAddress::parse("10.0.0.1"), *packet::IpAddress::parse("10.0.0.2"),
                                         *packet::IpAddress::parse("10.0.0.3"), *packet::IpAddress::parse("10.9.1.1"),
                                         *packet::IpAddress::parse("192.0.2.1")};
  facts.source = v4[random() % std::size(v4)];
  facts.destination = v4[random() % std::size(v4)];
  if (random() % 8 == 0) {
    facts.family = 6;
    facts.source = *packet::IpAddress::parse(random() % 2 == 0 ? "2001:db8::5" : "2001:db8:1::5");
    facts.destination = *packet::IpAddress::parse("2001:db8:1::6");
  }
  facts.protocol = protocols[random() % std::size(protocols)];
  facts.ttl = random() % 8 != 0 ? 1 : 64;
  const bool tcp = facts.protocol == packet::protocol_tcp;
  facts.has_ports = (tcp || facts.protocol == packet::protocol_udp) && random() % 8 != 0;
  facts.has_tcp = tcp && facts.has_ports;
  // Without ports: cut, or a later fragment.
  if (!facts.has_ports && random() % 2 == 0) facts.fragment_offset = 185;
  facts.has_icmp = facts.protocol == packet::protocol_icmp && !facts.fragment();
  facts.icmp_type = random() % 2 == 0 ? 8 : 0;
  if (facts.has_ports) {
    facts.source_port = ports[random() % std::size(ports)];
    facts.destination_port = ports[random() % std::size(ports)];
  }
  if (facts.has_tcp) facts.tcp_flags = static_cast<std::uint8_t>(random());
  return facts;
}

PlainFacts plain_facts_of(const PacketFacts& packet) {
  PlainFacts facts;
  facts.protocol = packet.protocol;
  facts.tcp_flags = packet.tcp_flags;
  facts.family = packet.family;
  facts.source = packet.source.bytes.data();
  facts.destination = packet.destination.bytes.data();
  facts.source_port = packet.source_port;
  facts.destination_port = packet.destination_port;
  return facts;
}

TEST(HeaderIndex, FindsEveryRuleThatMayHoldAndFewOthers) {
  auto set = read_rules_text(rules_text, "test.rules");
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(set->refused.empty()) << set->refused[0].message;
  std::vector<HeaderIndex::Entry> entries;
  for (std::uint32_t r = 0; r < set->rules.size(); ++r) entries.push_back({r, &set->rules[r]});
  const HeaderIndex index(entries, TrafficClasses(set->rules));
  std::mt19937 random(11);
  std::size_t admitted = 0, found_in_all = 0;
  for (int i = 0; i < 20'000; ++i) {
    const PacketFacts packet = random_packet(random);
    std::set<std::uint32_t> found;
    index.collect(packet, [&](std::uint32_t rank) { found.insert(rank); });
    found_in_all += found.size();
    if (packet.has_ports && packet.family == 4) {
      std::set<std::uint32_t> by_plain_facts;
      index.collect(plain_facts_of(packet), [&](std::uint32_t rank) { by_plain_facts.insert(rank); });
      EXPECT_EQ(by_plain_facts, found);
    }
    for (const HeaderIndex::Entry& entry : entries) {
      if (!admits(*entry.rule, packet, {})) continue;
      ++admitted;
      EXPECT_TRUE(found.contains(entry.rank)) << "sid " << entry.rule->sid << " protocol " << unsigned{packet.protocol};
    }
  }
  EXPECT_GT(admitted, 10'000U);
  EXPECT_LT(found_in_all, admitted * 3) << "of " << 20'000 * entries.size();
}

// A thousand lists of addresses, and the network that all of them name as well.
TEST(HeaderIndex, OfListsOfAddressesOnlyThoseOfThePacketAreFound) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    const std::string third = std::to_string(i / 4), last = std::to_string(i % 4 * 64);
    text += "alert ip [198.51." + third + "." + last + "/26,203.0." + third + "." + last +
            "] any -> 10.0.0.0/24 any (threshold: type limit, track by_src, count 1, seconds 3600; sid:" +
            std::to_string(i + 1) + ";)\n";
  }
  const auto set = read_rules_text(text, "test.rules");
  ASSERT_TRUE(set) << set.error().message;
  std::vector<HeaderIndex::Entry> entries;
  for (std::uint32_t r = 0; r < set->rules.size(); ++r) entries.push_back({r, &set->rules[r]});
  const HeaderIndex index(entries, TrafficClasses(set->rules));
  PacketFacts packet;
  packet.family = 4;
  packet.protocol = packet::protocol_udp;
  packet.has_ports = true;
  packet.destination = *packet::IpAddress::parse("10.0.0.7");
  const auto found_from = [&](const char* source) {
    packet.source = *packet::IpAddress::parse(source);
    std::vector<std::uint32_t> found;
    index.collect(packet, [&](std::uint32_t rank) { found.push_back(set->rules[rank].sid); });
    return found;
  };
  EXPECT_EQ(found_from("198.51.3.130"), std::vector<std::uint32_t>{15});
  EXPECT_EQ(found_from("203.0.249.192"), std::vector<std::uint32_t>{1000});
  EXPECT_TRUE(found_from("203.0.249.193").empty());
}

}  // namespace
}  // namespace sluice::match
