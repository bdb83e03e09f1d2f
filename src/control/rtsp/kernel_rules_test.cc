// Which rules of a host come before the proxy's.
#include "control/rtsp/kernel_rules.h"

#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "../tests/support/net_namespace.h"

namespace sluice::control::rtsp {
namespace {

packet::IpPrefix prefix(const char* text) {
  return *packet::IpPrefix::parse(text);
}

KernelRule rule_of(const char* from, const char* to) {
  KernelRule rule;
  rule.priority = 100;
  rule.action = FR_ACT_TO_TBL;
  rule.table = RT_TABLE_MAIN;
  rule.from = prefix(from);
  rule.to = prefix(to);
  rule.family = rule.from.address.family;
  return rule;
}

TEST(KernelRules, that_come_first) {
  function::RtspOptions options;
  options.servers = {prefix("10.2.0.0/24")};
  options.ports = {554};
  const char *all = "0.0.0.0/0", *servers = "10.2.0.0/24";
  const auto with = [&](auto change) {
    KernelRule rule = rule_of(all, servers);
    change(rule);
    return rule;
  };
  const std::tuple<const char*, KernelRule, bool> cases[] = {
      {"to servers", rule_of(all, servers), true},
      {"from servers", rule_of(servers, all), true},
      {"of everything", rule_of(all, all), true},
      {"to some of them", rule_of(all, "10.2.0.80/32"), true},
      {"to more than them", rule_of(all, "10.0.0.0/8"), true},
      {"to others, from others", rule_of("10.3.0.0/24", "10.3.0.0/24"), false},
      {"to others, from all", rule_of(all, "10.3.0.0/24"), true},  // the servers' answers
      {"of IPv6", rule_of("::/0", "::/0"), false},
      {"later", with([](KernelRule& rule) { rule.priority = 1555; }), false},
      {"at the same place", with([](KernelRule& rule) { rule.priority = 1554; }), true},
      {"the proxy's", with([](KernelRule& rule) { rule.table = 1554; }), false},
      {"of the host's own addresses", with([](KernelRule& rule) { rule.table = RT_TABLE_LOCAL; }), false},
      {"drops", with([](KernelRule& rule) { rule.action = FR_ACT_BLACKHOLE; }), true},
      {"does nothing", with([](KernelRule& rule) { rule.action = FR_ACT_NOP; }), false},
      {"jumps over", with([](KernelRule& rule) {
         rule.action = FR_ACT_GOTO;
         rule.target = 2000;
       }),
       true},
      {"jumps to", with([](KernelRule& rule) {
         rule.action = FR_ACT_GOTO;
         rule.target = 1554;
       }),
       false},
      {"from a twin", with([](KernelRule& rule) { rule.iif = "sl-lan"; }), true},
      {"from elsewhere", with([](KernelRule& rule) { rule.iif = "eth9"; }), false},
      {"of what the host sends", with([](KernelRule& rule) { rule.oif = "sl-lan"; }), false},
      {"of TCP", with([](KernelRule& rule) { rule.protocol = 6; }), true},
      {"of UDP", with([](KernelRule& rule) { rule.protocol = 17; }), false},
      {"of its port", with([](KernelRule& rule) {
         rule.destination_ports = {500, 600};
       }),
       true},
      {"of other ports, both ways", with([](KernelRule& rule) {
         rule.from = prefix("10.1.0.0/24");
         rule.destination_ports = {80, 80};
       }),
       false},
      {"of marked packets", with([](KernelRule& rule) { rule.conditional = true; }), false},
      {"of unmarked ones", with([](KernelRule& rule) { rule.conditional = rule.inverted = true; }), true},
  };
  for (const auto& [name, rule, expected] : cases) {
    EXPECT_EQ(comes_first(rule, options, {"sl-lan", "sl-wan"}), expected) << name << ", " << rule.str();
  }
  options.servers = {};
  EXPECT_FALSE(comes_first(rule_of(all, all), options, {"sl-lan"}));
}

TEST(KernelRules, are_read_and_said) {
  std::vector<std::byte> bytes;
  const auto append = [&](const void* from, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + size);
    bytes.resize((bytes.size() + 3) & ~std::size_t{3});
  };
  const auto attribute = [&](std::uint16_t type, const void* value, std::size_t size) {
    const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + size), type};
    append(&head, sizeof head);
    append(value, size);
  };
  fib_rule_hdr head{};
  head.family = AF_INET;
  head.dst_len = 24;
  head.action = FR_ACT_TO_TBL;
  append(&head, sizeof head);
  const std::uint32_t priority = 100, table = 1000;
  const std::uint8_t to[4] = {10, 2, 0, 0};
  const fib_rule_port_range ports{554, 555};
  attribute(FRA_PRIORITY, &priority, sizeof priority);
  attribute(FRA_TABLE, &table, sizeof table);
  attribute(FRA_DST, to, sizeof to);
  attribute(FRA_IIFNAME, "sl-lan", 7);
  attribute(FRA_DPORT_RANGE, &ports, sizeof ports);
  const auto rule = parse_rule(bytes);
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->str(), "100: from all to 10.2.0.0/24 iif sl-lan lookup 1000");
  EXPECT_EQ(rule->destination_ports.first, 554);
  EXPECT_EQ(rule->destination_ports.last, 555);
  EXPECT_FALSE(rule->conditional);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    (void)parse_rule({bytes.data(), size});  // for the sanitizers
  }
  EXPECT_FALSE(parse_rule({bytes.data(), sizeof head - 1}));
  EXPECT_FALSE(parse_rule({bytes.data(), sizeof head})) << "a prefix of no address";
}

// What the fast path does not follow is named at the start.
TEST(KernelRules, ThatLeadElsewhere) {
  if (!test::NetNamespace::permitted()) GTEST_SKIP() << test::NetNamespace::skip_line;
  test::NetNamespace space;
  const auto inside = space.enter();
  using Rules = std::vector<std::string>;
  if (space.run("ip rule add pref 90 from 10.1.0.0/24 lookup 100 2> /dev/null") != 0) {
    GTEST_SKIP() << "needs a kernel with rules for routing";
  }
  ASSERT_EQ(
      space.run("ip rule add pref 80 lookup main && ip rule add pref 91 iif lo lookup 100 && "
                "ip rule add pref 92 oif lo lookup 100 && ip rule add pref 93 fwmark 1 lookup 100 && "
                "ip rule add pref 94 not fwmark 2 lookup 51820 && ip rule add pref 95 to 10.9.0.0/24 blackhole && "
                "ip rule add pref 96 iif sl-lan lookup 1554 && ip -6 rule add pref 97 to 2001:db8::/32 prohibit"),
      0);
  EXPECT_EQ(
      find_rules_that_lead_elsewhere(1554),
      (Rules{"ip rule 90: from 10.1.0.0/24 lookup 100", "ip rule 94: not from all lookup 51820",
             "ip rule 95: from all to 10.9.0.0/24 blackhole", "ip -6 rule 97: from all to 2001:db8::/32 prohibit"}));
  EXPECT_EQ(find_rules_that_lead_elsewhere(0).size(), 5U);
}

}  // namespace
}  // namespace sluice::control::rtsp
