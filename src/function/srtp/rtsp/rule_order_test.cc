// Which rules of a host come before the proxy's.
#include "function/srtp/rtsp/rule_order.h"

#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include <tuple>

namespace sluice::function::rtsp {
namespace {

using port::KernelRule;

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

TEST(RuleOrder, ThatComeFirst) {
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

}  // namespace
}  // namespace sluice::function::rtsp
