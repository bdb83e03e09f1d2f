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
    "alert ip any any -> any any (ip_proto:17; fragoffset:>0; sid:17;)\n";

PacketFacts random_packet(std::mt19937& random) {
  static constexpr std::uint8_t protocols[] = {packet::protocol_tcp, packet::protocol_udp, packet::protocol_icmp, 2,
                                               132};
  static constexpr std::uint16_t ports[] = {80, 21, 25, 110, 6000, 6010, 6011, 139, 53, 67, 68, 1024, 1023, 0, 65535};
  PacketFacts facts;
  facts.family = 4;
  facts.source = *packet::IpAddress::parse("10.0.0.1");
  facts.destination = *packet::IpAddress::parse("10.0.0.2");
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

TEST(HeaderIndex, finds_every_rule_that_may_hold_and_few_others) {
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
    for (const HeaderIndex::Entry& entry : entries) {
      if (!admits(*entry.rule, packet, {})) continue;
      ++admitted;
      EXPECT_TRUE(found.contains(entry.rank)) << "sid " << entry.rule->sid << " protocol " << unsigned{packet.protocol};
    }
  }
  EXPECT_GT(admitted, 10'000U);
  EXPECT_LT(found_in_all, admitted * 3) << "of " << 20'000 * entries.size();
}

}  // namespace
}  // namespace sluice::match
