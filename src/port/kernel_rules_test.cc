// What is read of rules, and which of them the fast path does not follow.
#include "port/kernel_rules.h"

#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "../tests/support/net_namespace.h"
#include "port/kernel_tables.h"

namespace sluice::port {
namespace {

TEST(KernelRules, AreReadAndSaid) {
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
  ASSERT_EQ(space.run("ip link add w0 type veth peer name w1 && ip link set w0 up && ip link set w1 up && "
                      "ip addr add 192.0.2.1/24 dev w0 && ip route add 10.9.0.0/24 via 192.0.2.9 table 100 && "
                      "ip route add default via 192.0.2.9 table 51820"),
            0);
  ASSERT_EQ(
      space.run("ip rule add pref 80 lookup main && ip rule add pref 91 iif lo lookup 100 && "
                "ip rule add pref 92 oif lo lookup 100 && ip rule add pref 93 fwmark 1 lookup 100 && "
                "ip rule add pref 94 not fwmark 2 lookup 51820 && ip rule add pref 95 to 10.9.0.0/24 blackhole && "
                "ip rule add pref 96 iif sl-lan lookup 1554 && ip -6 rule add pref 97 to 2001:db8::/32 prohibit"),
      0);
  EXPECT_EQ(
      find_rules_that_lead_elsewhere(std::array{1554U}),
      (Rules{"ip rule 90: from 10.1.0.0/24 lookup 100", "ip rule 94: not from all lookup 51820",
             "ip rule 95: from all to 10.9.0.0/24 blackhole", "ip -6 rule 97: from all to 2001:db8::/32 prohibit"}));
  EXPECT_EQ(find_rules_that_lead_elsewhere({}).size(), 4U) << "table 1554 is empty";
  ASSERT_EQ(space.run("ip route add 10.9.0.0/24 via 192.0.2.9 table 1554"), 0);
  EXPECT_EQ(find_rules_that_lead_elsewhere({}).size(), 5U);
}

// strongSwan's charon makes the rule whether it makes routes or not.
TEST(KernelRules, OfATableThatLeadsAsMainAreNone) {
  if (!test::NetNamespace::permitted()) GTEST_SKIP() << test::NetNamespace::skip_line;
  test::NetNamespace space;
  const auto inside = space.enter();
  if (space.run("ip rule add pref 220 lookup 220 2> /dev/null && ip -6 rule add pref 220 lookup 220") != 0) {
    GTEST_SKIP() << "needs a kernel with rules for routing";
  }
  ASSERT_EQ(space.run("ip link add w0 type veth peer name w1 && ip link set w0 up && ip link set w1 up && "
                      "ip addr add 192.0.2.1/24 dev w0 && ip addr add 198.51.100.1/24 dev w1 && "
                      "ip addr add 2001:db8::1/64 dev w0 nodad && ip route add default via 192.0.2.9"),
            0);
  const std::string four = "ip rule 220: from all lookup 220", six = "ip -6 rule 220: from all lookup 220";
  using Rules = std::vector<std::string>;
  const struct {
    const char* what;
    std::string change;
    Rules rules;
  } steps[] = {
      {"no routes", "true", {}},
      {"as the default route", "ip route add 10.2.0.0/24 via 192.0.2.9 src 192.0.2.1 table 220", {}},
      {"as a route of its own", "ip route add 10.2.0.0/16 via 192.0.2.9 metric 5", {}},
      {"a worse one of the same prefix", "ip route add 10.2.0.0/16 via 198.51.100.9 metric 9", {}},
      {"not for the half of it", "ip route add 10.2.0.0/25 via 198.51.100.9", {four}},
      {"for all again", "ip route del 10.2.0.0/25", {}},
      {"by another gateway", "ip route replace 10.2.0.0/24 via 192.0.2.8 table 220", {four}},
      {"thrown back", "ip route del 10.2.0.0/24 table 220 && ip route add throw 10.2.0.0/24 table 220", {}},
      {"dropped", "ip route add blackhole 10.3.0.0/24 table 220", {four}},
      {"of IPv6, where main has none", "ip -6 route add 2001:db8:9::/48 via 2001:db8::9 table 220", {four, six}},
      {"as main's", "ip -6 route add default via 2001:db8::9 && ip route flush table 220", {}},
      {"by another interface", "ip -6 route replace 2001:db8:9::/48 dev w1 table 220", {six}},
  };
  for (const auto& step : steps) {
    ASSERT_EQ(space.run(step.change), 0) << step.what;
    EXPECT_EQ(find_rules_that_lead_elsewhere({}), step.rules) << step.what;
  }
  std::string many = "true";
  for (std::size_t i = 0; i <= compared_routes; ++i) {
    many += " && ip route add 10.4." + std::to_string(i) + ".0/24 via 192.0.2.9 table 220";
  }
  ASSERT_EQ(space.run("ip -6 route flush table 220 && " + many), 0);
  EXPECT_EQ(find_rules_that_lead_elsewhere({}), Rules{four}) << "too many to compare";
}

}  // namespace
}  // namespace sluice::port
