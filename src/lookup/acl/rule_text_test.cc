#include "lookup/acl/rule_text.h"

#include <gtest/gtest.h>

#include "base/settings.h"
#include "lookup/acl/acl_settings.h"

namespace sluice::lookup::acl {
namespace {

AclRule rule_of(const std::string& keys) {
  Diagnostics diagnostics;
  auto file = Settings::from_text("[[acl.rule]]\naction = \"permit\"\n" + keys, "a.toml", diagnostics);
  EXPECT_TRUE(file) << keys;
  Settings section = file->section("acl");
  auto rules = read_rules(section);
  EXPECT_TRUE(diagnostics.ok()) << keys;
  return rules.at(0);
}

TEST(RuleText, MatchesAreWrittenAsInTheConfiguration) {
  EXPECT_EQ(match_text(rule_of("")), "any");
  EXPECT_EQ(match_text(rule_of("source = \"192.0.2.0/24\"\ndestination = \"198.51.100.7\"\n")),
            "source=192.0.2.0/24 destination=198.51.100.7/32");
  EXPECT_EQ(match_text(rule_of("source = \"2001:db8::/32\"\nsource_port = \"53\"\ndestination_port = \"1024-65535\"\n"
                               "protocol = \"udp\"\n")),
            "source=2001:db8::/32 source_port=53 destination_port=1024-65535 protocol=udp");
  EXPECT_EQ(match_text(rule_of("destination_port = \"0\"\nprotocol = \"33\"\n")), "destination_port=0 protocol=33");
  EXPECT_EQ(match_text(rule_of("protocol = \"tcp\"\ntcp_flags = \"!ack,syn\"\n")), "protocol=tcp tcp_flags=syn,!ack");
  EXPECT_EQ(match_text(rule_of("protocol = \"icmp\"\nicmp_type = 8\n")), "protocol=icmp icmp_type=8");
  EXPECT_EQ(match_text(rule_of("protocol = \"icmpv6\"\nicmp_type = 0\n")), "protocol=icmpv6 icmp_type=0");
}

TEST(RuleText, WhatOnlyClassbenchSaysHasValueAndMask) {
  AclRule rule;
  rule.protocol = {0x04, 0xfc};
  rule.flags = {0x10, 0x30};
  EXPECT_EQ(match_text(rule), "protocol=0x04/0xfc flags=0x10/0x30");
  rule.protocol = {1, 0xff};
  EXPECT_EQ(match_text(rule), "protocol=icmp flags=0x10/0x30") << "no whole type";
}

TEST(RuleText, Actions) {
  EXPECT_EQ(action_text({}), "permit");
  EXPECT_EQ(action_text({.kind = ActionKind::deny}), "deny");
  EXPECT_EQ(action_text({.kind = ActionKind::mark, .mark = 46}), "mark 46");
  EXPECT_EQ(action_text({.kind = ActionKind::police, .rate_bits = 8'000'000, .burst_bytes = 32768}),
            "police 8000000 bit/s, burst 32768 bytes");
}

}  // namespace
}  // namespace sluice::lookup::acl
