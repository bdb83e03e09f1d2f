// What the mirror follows, against a real kernel.
#include <gtest/gtest.h>

#include <optional>

#include "control/netlink/mirror_trial_test.h"

namespace sluice::control {
namespace {

TEST_F(MirrorTest, ReadsWhatIsThereAtStart) {
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2 && ip -6 route add 2001:db8:1::/48 via 2001:db8:a::2");
  kernel("ip route add 240.0.0.0/8 via 10.0.0.2 && ip route add 255.1.0.0/16 via 10.0.0.2");
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud reachable dev sl-a");
  kernel("ip neigh add 255.1.0.1 lladdr 02:00:00:00:00:03 nud reachable dev sl-a");
  start();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"10.0.0.0/24", "unicast 0"},
      {"10.0.1.0/24", "unicast 1"},
      {"10.0.0.1", "local"},
      {"10.0.0.255", "local"},
      {"10.0.9.0/24", "local"},  // out of mgmt
      {"127.0.0.0/8", "local"},
      {"192.0.2.0/24", "unicast 0 via 10.0.0.2"},
      {"240.0.0.0/8", "unicast 0 via 10.0.0.2"},
      {"255.1.0.0/16", "unicast 0 via 10.0.0.2"},
      {"255.255.255.255", "local"},
      {"2001:db8:a::/64", "unicast 0"},
      {"2001:db8:a::1", "local"},
      {"2001:db8:a::", "local"},  // the subnet-router anycast address
      {"2001:db8:1::/48", "unicast 0 via 2001:db8:a::2"},
      {"fe80::/10", "local"},
      {"ff00::/8", "local"},
      {"224.0.0.0/4", "local"},
      {"fe80::/64", "none"},
  };
  for (const auto& [prefix, route] : expected) EXPECT_EQ(plane_.route(prefix), route) << prefix;
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "02:00:00:00:00:02");
  EXPECT_EQ(plane_.neighbour(0, "255.1.0.1"), "02:00:00:00:00:03");
  EXPECT_EQ(plane_.links.at(0), (std::pair{true, 1500U}));
  EXPECT_EQ(mirror_->stats().mended, 0U);
}

// The kernel brings a hop back with an address, and says nothing.
TEST_F(MirrorTest, AHopReturnsWithTheAddressOfItsLink) {
  start();
  change("ip route add 192.0.2.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2");
  change("ip addr del 10.0.1.1/24 dev sl-b");
  settle_until([&] { return plane_.route("192.0.2.0/24") == "unicast 0 via 10.0.0.2"; });
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  change("ip addr add 10.0.1.1/24 dev sl-b");
  settle_until([&] { return plane_.route("192.0.2.0/24") == "unicast 0 via 10.0.0.2, 1 via 10.0.1.2"; });
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2");
  expect_as_fresh();
}

TEST_F(MirrorTest, AHopWhoseLinkIsDownIsLeftOutWhereTheKernelIgnoresIt) {
  start();
  change("ip route add 192.0.2.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2");
  change("ip -6 route add 2001:db8:1::/48 nexthop via 2001:db8:a::2 nexthop via 2001:db8:b::2");
  const auto expect = [&](const std::string& four, const std::string& six) {
    settle_until([&] { return plane_.route("192.0.2.0/24") == four && plane_.route("2001:db8:1::/48") == six; });
    EXPECT_EQ(plane_.route("192.0.2.0/24"), four);
    EXPECT_EQ(plane_.route("2001:db8:1::/48"), six);
  };
  const std::string both4 = "unicast 0 via 10.0.0.2, 1 via 10.0.1.2";
  const std::string both6 = "unicast 0 via 2001:db8:a::2, 1 via 2001:db8:b::2";
  ASSERT_TRUE(twins_[1].set_carrier(false));
  expect(both4, both6);
  kernel("sysctl -qw net.ipv4.conf.sl-b.ignore_routes_with_linkdown=1");
  kernel("sysctl -qw net.ipv6.conf.sl-b.ignore_routes_with_linkdown=1");
  expect("unicast 0 via 10.0.0.2", "unicast 0 via 2001:db8:a::2");
  ASSERT_TRUE(twins_[1].set_carrier(true));
  expect(both4, both6);
  expect_as_fresh();
}

// net.ipv6.route.skip_notify_on_dev_down: the kernel takes IPv6 routes away without a word.
TEST_F(MirrorTest, RoutesThatGoWithoutAWordAreForgotten) {
  kernel("sysctl -qw net.ipv6.route.skip_notify_on_dev_down=1");
  kernel("ip -6 route add 2001:db8:1::/48 via 2001:db8:b::2");
  start();
  for (const std::string off : {"sysctl -qw net.ipv6.conf.sl-b.disable_ipv6=1", "ip link set sl-b down"}) {
    SCOPED_TRACE(off);
    EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1 via 2001:db8:b::2");
    change(off);
    settle_until([&] { return plane_.route("2001:db8:1::/48") == "none"; });
    EXPECT_EQ(plane_.route("2001:db8:1::/48"), "none");
    EXPECT_EQ(plane_.route("2001:db8:b::/64"), "none");
    kernel("sysctl -qw net.ipv6.conf.sl-b.disable_ipv6=0; ip link set sl-b up");
    kernel("ip -6 addr replace 2001:db8:b::1/64 dev sl-b nodad && ip -6 route add 2001:db8:1::/48 via 2001:db8:b::2");
    settle_until([&] { return plane_.route("2001:db8:1::/48") != "none"; });
  }
  EXPECT_NE(mirror_->stats().mended, 0U);
  expect_as_fresh();
}

TEST_F(MirrorTest, ARouteEndsWhenItExpires) {
  start();
  change("ip -6 route add 2001:db8:1::/48 via 2001:db8:b::2 expires 1");
  change("ip -6 route add 2001:db8:1::/48 via 2001:db8:a::2 metric 2000");
  change("ip -6 route add 2001:db8:2::/48 via 2001:db8:b::2 expires 1000");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1 via 2001:db8:b::2");
  settle_until([&] { return plane_.route("2001:db8:1::/48") == "unicast 0 via 2001:db8:a::2"; });
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 0 via 2001:db8:a::2");
  EXPECT_EQ(plane_.route("2001:db8:2::/48"), "unicast 1 via 2001:db8:b::2");
}

// RFC 4191: of two routes of one metric the router that says so is better.
TEST_F(MirrorTest, ThePreferredOfTwoRoutesIsTaken) {
  start();
  change("ip -6 route add 2001:db8:1::/48 dev sl-a pref low");
  change("ip -6 route append 2001:db8:1::/48 dev sl-b pref high");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1");
  expect_as_fresh();
  change("ip -6 route del 2001:db8:1::/48 dev sl-b");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 0");
  change("ip -6 route append 2001:db8:1::/48 dev sl-b");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1") << "medium";
  expect_as_fresh();
}

// Nothing happens that would give occasion, and no message comes: the kernel's tables are changed behind its back.
TEST_F(MirrorTest, WhatChangedWithoutAWordIsFoundInTime) {
  options_.verify_interval = 1s;
  kernel("ip -6 addr flush dev sl-b && ip link set sl-b addrgenmode none && ip -6 addr flush dev sl-b");
  kernel("sysctl -qw net.ipv6.route.skip_notify_on_dev_down=1 && ip -6 route add 2001:db8:1::/48 dev sl-b");
  start();
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1");
  change("sysctl -qw net.ipv6.conf.sl-b.disable_ipv6=1");
  settle_until([&] { return plane_.route("2001:db8:1::/48") == "none"; });
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "none");
  EXPECT_GE(mirror_->stats().mended, 1U);
  EXPECT_EQ(mirror_->stats().last_mended, "2001:db8:1::/48");
}

TEST_F(MirrorTest, FollowsRoutesAndAddresses) {
  start();
  struct Case {
    std::string command;
    std::string prefix;
    std::string route;
  };
  const std::vector<Case> cases = {
      {"ip route add 192.0.2.0/24 via 10.0.0.2", "192.0.2.0/24", "unicast 0 via 10.0.0.2"},
      {"ip route replace 192.0.2.0/24 via 10.0.1.2", "192.0.2.0/24", "unicast 1 via 10.0.1.2"},
      {"ip route add 192.0.2.0/24 via 10.0.0.3 metric 50", "192.0.2.0/24", "unicast 1 via 10.0.1.2"},
      {"ip route del 192.0.2.0/24 via 10.0.1.2", "192.0.2.0/24", "unicast 0 via 10.0.0.3"},
      {"ip route append 192.0.2.0/24 via 10.0.0.4 metric 50", "192.0.2.0/24", "unicast 0 via 10.0.0.3"},
      {"ip route prepend 192.0.2.0/24 via 10.0.0.5 metric 50", "192.0.2.0/24", "unicast 0 via 10.0.0.5"},
      {"ip route del 192.0.2.0/24 via 10.0.0.5 metric 50", "192.0.2.0/24", "unicast 0 via 10.0.0.3"},
      {"ip route del 192.0.2.0/24 via 10.0.0.3 metric 50", "192.0.2.0/24", "unicast 0 via 10.0.0.4"},
      {"ip route flush 192.0.2.0/24", "192.0.2.0/24", "none"},
      {"ip route add default via 10.0.0.9", "0.0.0.0/0", "unicast 0 via 10.0.0.9"},
      {"ip -6 route add default via fe80::9 dev sl-b", "::/0", "unicast 1 via fe80::9"},
      {"ip route add blackhole 198.51.100.0/24", "198.51.100.0/24", "blackhole"},
      {"ip route add unreachable 198.51.101.0/24", "198.51.101.0/24", "unreachable"},
      {"ip route add prohibit 198.51.102.0/24", "198.51.102.0/24", "unreachable"},
      {"ip route add throw 198.51.103.0/24", "198.51.103.0/24", "unreachable"},
      {"ip -6 route add blackhole 2001:db8:dead::/48", "2001:db8:dead::/48", "blackhole"},
      {"ip route add local 203.0.113.0/24 dev lo", "203.0.113.0/24", "local"},
      {"ip route add 203.0.114.0/24 via 10.0.9.2", "203.0.114.0/24", "local"},
      {"ip route add 203.0.115.0/24 via inet6 fe80::1 dev sl-a", "203.0.115.0/24", "unicast 0 via fe80::1"},
      {"ip route add 203.0.116.0/24 via 10.0.0.2 table 77", "203.0.116.0/24", "none"},
      {"ip route add 203.0.117.0/24 via 10.0.0.2 && ip route add 203.0.117.0/24 tos 0x10 via 10.0.0.3",
       "203.0.117.0/24", "local"},
      {"ip route del 203.0.117.0/24 tos 0x10", "203.0.117.0/24", "unicast 0 via 10.0.0.2"},
      {"ip addr add 10.5.0.1/16 dev sl-b", "10.5.0.0/16", "unicast 1"},
      {"true", "10.5.0.1", "local"},
      {"ip addr del 10.5.0.1/16 dev sl-b", "10.5.0.0/16", "none"},
      {"true", "10.5.0.1", "none"},
      {"ip addr add 2001:db8:5::1/64 dev sl-b", "2001:db8:5::/64", "unicast 1"},
      {"true", "2001:db8:5::1", "local"},
      {"ip addr del 2001:db8:5::1/64 dev sl-b", "2001:db8:5::/64", "none"},
      {"true", "2001:db8:5::1", "none"},
      // The local table goes before the main one.
      {"ip route add 10.0.0.1/32 via 10.0.1.2", "10.0.0.1", "local"},
      {"ip addr del 10.0.0.1/24 dev sl-a", "10.0.0.1", "unicast 1 via 10.0.1.2"},
  };
  for (const auto& step : cases) {
    change(step.command);
    EXPECT_EQ(plane_.route(step.prefix), step.route) << step.command;
  }
  expect_as_fresh();
}

TEST_F(MirrorTest, FollowsSeveralHops) {
  start();
  const std::string two = " nexthop via 10.0.0.2 weight 1 nexthop via 10.0.1.2 weight 3";
  change("ip route add 192.0.2.0/24" + two);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2 *3");
  change("ip route add 192.0.3.0/24 nexthop via 10.0.0.2 nexthop via 10.0.9.2");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "local");  // a share of it leaves through mgmt
  const std::string v6 = "ip -6 route append 2001:db8:1::/48 via 2001:db8:";
  change(v6 + "a::2");
  change(v6 + "b::2");
  change(v6 + "a::3");
  EXPECT_EQ(plane_.route("2001:db8:1::/48").size(),
            std::string("unicast 0 via 2001:db8:a::2, 1 via 2001:db8:b::2, 0 via 2001:db8:a::3").size());
  change("ip -6 route del 2001:db8:1::/48 via 2001:db8:a::2");
  EXPECT_EQ(plane_.route("2001:db8:1::/48").find("a::2"), std::string::npos) << plane_.route("2001:db8:1::/48");
  change("ip -6 route del 2001:db8:1::/48 via 2001:db8:a::3");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 1 via 2001:db8:b::2");
  change("ip -6 route replace 2001:db8:1::/48 nexthop via 2001:db8:a::7 nexthop via 2001:db8:b::7");
  expect_as_fresh();
  change("ip -6 route del 2001:db8:1::/48 nexthop via 2001:db8:a::7 nexthop via 2001:db8:b::7");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "none");
}

// With and without nexthop_compat_mode: without, routes name objects only and nothing is said when an object changes.
TEST_F(MirrorTest, FollowsNexthopObjects) {
  kernel("sysctl -qw net.ipv4.nexthop_compat_mode=0");
  start();
  change("ip nexthop add id 11 via 10.0.0.2 dev sl-a && ip nexthop add id 12 via 10.0.1.2 dev sl-b");
  change("ip nexthop add id 20 group 11/12,3 && ip nexthop add id 30 blackhole");
  change("ip route add 192.0.2.0/24 nhid 11 && ip route add 192.0.3.0/24 nhid 20 && ip route add 192.0.4.0/24 nhid 30");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2 *3");
  EXPECT_EQ(plane_.route("192.0.4.0/24"), "blackhole");
  change("ip nexthop replace id 11 via 10.0.0.7 dev sl-a");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.7");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 0 via 10.0.0.7, 1 via 10.0.1.2 *3");
  change("ip nexthop replace id 20 group 12");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 1 via 10.0.1.2");
  change("ip -6 nexthop add id 41 via 2001:db8:a::2 dev sl-a && ip -6 route add 2001:db8:1::/48 nhid 41");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "unicast 0 via 2001:db8:a::2");
  expect_as_fresh();
  change("ip nexthop del id 12");  // the group loses its last member: the kernel takes 192.0.3.0/24 away silently
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "none");
  change("ip nexthop del id 41");
  EXPECT_EQ(plane_.route("2001:db8:1::/48"), "none");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.7");
  expect_as_fresh();
}

TEST_F(MirrorTest, FollowsNeighbours) {
  start();
  change("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud reachable dev sl-a");
  change("ip neigh add fe80::2 lladdr 02:00:00:00:00:02 nud permanent dev sl-b");
  change("ip neigh add 10.0.9.2 lladdr 02:00:00:00:00:02 nud permanent dev mgmt");
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "02:00:00:00:00:02");
  EXPECT_EQ(plane_.neighbour(1, "fe80::2"), "02:00:00:00:00:02");
  EXPECT_EQ(plane_.neighbours.size(), 2U);
  change("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:03 nud stale dev sl-a");
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "02:00:00:00:00:03");
  change("ip neigh change 10.0.0.2 nud failed dev sl-a");
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "none");
  change("ip neigh del fe80::2 dev sl-b");
  EXPECT_TRUE(plane_.neighbours.empty());
}

// From which address errors are sent that only Sluice can send.
TEST_F(MirrorTest, AnnouncesTheAddressToSpeakFrom) {
  kernel("ip addr add 10.0.0.9/24 dev sl-a && ip addr add 198.51.100.1/32 dev lo");
  start();
  using Port = std::optional<function::PortIndex>;
  const auto source = [&](Port port, int family) {
    const auto found = plane_.sources.find({port, family});
    return found == plane_.sources.end() ? "none" : found->second;
  };
  EXPECT_EQ(source(0, 4), "10.0.0.1");
  EXPECT_EQ(source(0, 6), "2001:db8:a::1");
  EXPECT_EQ(source(1, 4), "10.0.1.1");
  EXPECT_EQ(source(1, 6), "2001:db8:b::1");
  EXPECT_EQ(source(Port(), 6), "2001:db8:a::1");
  const std::string any = source(Port(), 4);
  EXPECT_TRUE(any == "10.0.0.1" || any == "10.0.1.1") << any;
  // Neither link-local nor of the loopback, nor tentative or secondary before others.
  const struct {
    const char* command;
    int family;
    const char* of_a;
    const char* of_any;
  } steps[] = {
      {"ip addr del 10.0.1.1/24 dev sl-b", 4, "10.0.0.1", "10.0.0.1"},
      {"ip addr add 172.16.0.1/24 dev sl-a", 4, "10.0.0.1", "10.0.0.1"},
      {"ip addr del 10.0.0.1/24 dev sl-a", 4, "172.16.0.1", "172.16.0.1"},  // takes 10.0.0.9 with it
      {"ip addr del 172.16.0.1/24 dev sl-a", 4, "none", "198.51.100.1"},
      {"ip addr add 169.254.1.1/16 dev sl-a", 4, "none", "198.51.100.1"},
      {"ip addr add 172.16.0.1/24 dev sl-a scope link", 4, "none", "198.51.100.1"},
      {"ip addr del 198.51.100.1/32 dev lo", 4, "none", "10.0.9.1"},
      {"ip addr del 10.0.9.1/24 dev mgmt", 4, "none", "none"},
      {"ip addr add 10.0.0.1/24 dev sl-a", 4, "10.0.0.1", "10.0.0.1"},
      {"ip addr add 2001:db8:a::7/64 dev sl-a", 6, "2001:db8:a::1", "2001:db8:a::1"},
      {"ip addr change 2001:db8:a::1/64 dev sl-a preferred_lft 0", 6, "2001:db8:a::7", "2001:db8:b::1"},
      {"ip addr flush dev sl-a && ip addr flush dev sl-b", 6, "none", "none"},
  };
  for (const auto& step : steps) {
    change(step.command);
    EXPECT_EQ(source(0, step.family), step.of_a) << step.command;
    EXPECT_EQ(source(Port(), step.family), step.of_any) << step.command;
  }
}

TEST_F(MirrorTest, FollowsLinks) {
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2 && ip route add 192.0.2.0/24 via 10.0.1.2 metric 9");
  kernel("ip route add 192.0.3.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2");
  start();
  change("ip link set sl-a mtu 1400");
  EXPECT_EQ(plane_.links.at(0), (std::pair{true, 1400U}));
  change("ip link set sl-a down");
  EXPECT_EQ(plane_.links.at(0), (std::pair{false, 1400U}));
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "none");
  change("ip link set sl-a up");
  EXPECT_EQ(plane_.links.at(0), (std::pair{true, 1400U}));
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2");
  ASSERT_TRUE(twins_[1].set_carrier(false));
  settle_until([this] { return !plane_.links.at(1).first; });  // the kernel collects carrier changes for up to a second
  EXPECT_EQ(plane_.links.at(1), (std::pair{false, 1500U}));
  expect_as_fresh();
}

TEST_F(MirrorTest, ARenamedTwinStaysIt) {
  start();
  change("ip link set sl-a name other");
  EXPECT_EQ(plane_.links.at(0).first, true);
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
  change("ip link add sl-a type veth peer name sl-a1 && ip addr add 10.0.7.1/24 dev sl-a && ip link set sl-a up");
  change("ip link set sl-a1 up");
  EXPECT_EQ(plane_.route("10.0.7.0/24"), "local");
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
  change("ip link del sl-a && ip link set other name sl-a");
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
  expect_as_fresh();
}

// Moved to another network namespace and back, its number may be another one.
TEST_F(MirrorTest, ATwinThatGoesAndComesBackIsItAgain) {
  start();
  change("ip link del sl-a");
  EXPECT_EQ(plane_.links.at(0).first, false);
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "none");
  change("ip tuntap add dev sl-a mode tap && ip addr add 10.0.0.1/24 dev sl-a && ip link set sl-a up");
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
}

TEST_F(MirrorTest, LooksOftenAtWhatRoutersAdvertise) {
  options_.advertised_interval = 50ms;
  start();
  const auto resyncs = mirror_->stats().resyncs;
  change("ip -6 route add default via fe80::9 dev sl-a proto ra expires 1000");
  settle_until([&] { return mirror_->stats().resyncs > resyncs + 1; });
  EXPECT_GT(mirror_->stats().resyncs, resyncs + 1);
  change("ip -6 route del default");
  settle_until([&] { return mirror_->settled(); });
}

TEST_F(MirrorTest, SaysWhichTwinIsMissing) {
  options_.twins.push_back({2, "sl-c"});
  auto mirror = NetlinkMirror::open(options_, plane_);
  ASSERT_TRUE(mirror);
  const auto started = (*mirror)->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "there is no interface 'sl-c', the TAP twin of port 2");
}

}  // namespace
}  // namespace sluice::control
