// What is read of rules, and which of them the fast path does not follow.
#include "port/kernel_rules.h"

#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>

#include "../tests/support/net_namespace.h"

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
  EXPECT_EQ(find_rules_that_lead_elsewhere({}).size(), 5U);
}

}  // namespace
}  // namespace sluice::port
