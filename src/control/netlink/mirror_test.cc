// Against a real kernel: each test has a namespace of its own, two TAP twins (ports 0 and 1) and an interface that is
// no twin.
#include "control/netlink/mirror.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <thread>

#include "../tests/support/net_namespace.h"
#include "control/netlink/recording_plane.h"
#include "port/tap_twin.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using netlink::RecordingPlane;
using test::NetNamespace;

class MirrorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    if (access("/dev/net/tun", F_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
    kernel("sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    for (const std::string name : {"sl-a", "sl-b"}) {
      auto twin =
          port::TapTwin::open(name, packet::MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(name[3])}}, 1500);
      ASSERT_TRUE(twin) << twin.error().message;
      twins_.push_back(std::move(*twin));
    }
    kernel(
        "ip link set lo up && ip link add mgmt type veth peer name mgmt1 && ip link set mgmt up && ip link set mgmt1 "
        "up");
    kernel("ip addr add 10.0.0.1/24 dev sl-a && ip addr add 10.0.1.1/24 dev sl-b && ip addr add 10.0.9.1/24 dev mgmt");
    kernel("ip addr add 2001:db8:a::1/64 dev sl-a && ip addr add 2001:db8:b::1/64 dev sl-b");
    options_.twins = {{0, "sl-a"}, {1, "sl-b"}};
    options_.resync_pause = 1ms;
  }

  void start() {
    auto mirror = NetlinkMirror::open(options_, plane_);
    ASSERT_TRUE(mirror) << mirror.error().message;
    mirror_ = std::move(*mirror);
    const auto started = mirror_->start();
    ASSERT_TRUE(started) << started.error().message;
    settle();
  }

  void kernel(const std::string& command) { ASSERT_EQ(space_.run(command), 0) << command; }

  // Runs a command and then the mirror until nothing more comes.
  void change(const std::string& command) {
    kernel(command);
    settle();
  }
  void settle() {
    pollfd ready{mirror_->fd(), POLLIN, 0};
    ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
    while (poll(&ready, 1, 30) > 0 || !mirror_->settled()) {
      const auto done = mirror_->process();
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
    }
    EXPECT_EQ(mirror_->stats().malformed, 0U);
    EXPECT_EQ(mirror_->stats().refusals, 0U) << mirror_->stats().last_refusal;
  }
  template <typename Condition>
  void settle_until(Condition reached) {
    const auto deadline = NetlinkMirror::Clock::now() + 5s;
    do settle();
    while (!reached() && NetlinkMirror::Clock::now() < deadline);
  }
  // What a mirror that starts now is told must be what ours has been told so far.
  void expect_as_fresh() {
    RecordingPlane fresh;
    auto mirror = NetlinkMirror::open(options_, fresh);
    ASSERT_TRUE(mirror) << mirror.error().message;
    const auto started = (*mirror)->start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(fresh.routes.size(), plane_.routes.size());
    EXPECT_TRUE(fresh.routes == plane_.routes);
    EXPECT_TRUE(fresh.neighbours == plane_.neighbours);
    EXPECT_TRUE(fresh.links == plane_.links);
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
  std::vector<port::TapTwin> twins_;
  MirrorOptions options_;
  RecordingPlane plane_;
  std::unique_ptr<NetlinkMirror> mirror_;
};

TEST_F(MirrorTest, ReadsWhatIsThereAtStart) {
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2 && ip -6 route add 2001:db8:1::/48 via 2001:db8:a::2");
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud reachable dev sl-a");
  start();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"10.0.0.0/24", "unicast 0"},
      {"10.0.1.0/24", "unicast 1"},
      {"10.0.0.1", "local"},
      {"10.0.0.255", "local"},
      {"10.0.9.0/24", "local"},  // out of mgmt
      {"127.0.0.0/8", "local"},
      {"192.0.2.0/24", "unicast 0 via 10.0.0.2"},
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
TEST_F(MirrorTest, TellsTheAddressToSpeakFrom) {
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
  // Another interface becomes the twin.
  change("ip link set sl-a down && ip link set sl-a name gone && ip link set gone up");
  EXPECT_EQ(plane_.links.at(0).first, false);
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "local");
  change("ip link set gone down && ip link set gone name sl-a && ip link set sl-a up");
  EXPECT_EQ(plane_.links.at(0).first, true);
  EXPECT_EQ(plane_.route("10.0.0.0/24"), "unicast 0");
  expect_as_fresh();
}

TEST_F(MirrorTest, SaysWhichTwinIsMissing) {
  options_.twins.push_back({2, "sl-c"});
  auto mirror = NetlinkMirror::open(options_, plane_);
  ASSERT_TRUE(mirror);
  const auto started = (*mirror)->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "there is no interface 'sl-c', the TAP twin of port 2");
}

// 50,000 routes: `verb` is "add", "del" or "replace".
std::string batch(const std::string& verb, const std::string& hop) {
  const std::string path = testing::TempDir() + "/mirror_test_batch-" + std::to_string(getpid());
  std::ofstream file(path);
  for (unsigned i = 0; i < 50000; ++i) {
    file << "route " << verb << " " << 20 + i / 65536 << "." << i / 256 % 256 << "." << i % 256 << ".0/24 " << hop
         << "\n";
  }
  return "ip -batch " + path;
}

TEST_F(MirrorTest, FollowsAFullTable) {
  std::size_t told = 0;
  options_.progress = [&](std::string_view what, std::size_t count) {
    told = what == "IPv4 routes" ? count : told;
    return true;
  };
  kernel(batch("add", "via 10.0.0.2"));
  start();
  EXPECT_GT(told, 50000U);
  const std::size_t others = plane_.routes.size() - 50000;
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 0 via 10.0.0.2");
  change(batch("replace", "via 10.0.1.2"));
  EXPECT_EQ(plane_.routes.size(), 50000 + others);
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 1 via 10.0.1.2");
  change(batch("del", "via 10.0.1.2"));
  EXPECT_EQ(plane_.routes.size(), others);
  EXPECT_EQ(mirror_->stats().overruns, 0U);
  EXPECT_EQ(mirror_->stats().resyncs, 0U);
}

TEST_F(MirrorTest, ComesBackFromLostNotificationsWithoutAHole) {
  options_.receive_buffer = 16 << 10;
  kernel(batch("add", "via 10.0.0.2"));
  start();
  const std::size_t calls = plane_.route_calls;
  kernel(batch("add", "via 10.0.0.2 table 77"));  // not ours, but it fills the buffer
  kernel(
      "ip route add 192.0.2.0/24 via 10.0.0.2 && ip route del 20.1.2.0/24 && ip route change 20.1.3.0/24 via 10.0.1.2");
  settle();
  EXPECT_GE(mirror_->stats().overruns, 1U);
  EXPECT_GE(mirror_->stats().resyncs, 1U);
  EXPECT_EQ(plane_.route("20.1.2.0/24"), "none");
  EXPECT_EQ(plane_.route("20.1.3.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(plane_.route_calls - calls, 3U);  // the differences and nothing else
  expect_as_fresh();
}

// Routes change while a dump runs: what notifications say must not be undone by what the dump read before.
TEST_F(MirrorTest, AgreesWithTheKernelAfterChangesDuringADump) {
  kernel(batch("add", "via 10.0.0.2"));
  start();
  std::thread churn([this] {
    space_.run(batch("del", "via 10.0.0.2"));
    space_.run(batch("add", "via 10.0.1.2"));
  });
  for (int i = 0; i < 5; ++i) {
    mirror_->resync();
    settle();
  }
  churn.join();
  settle();
  expect_as_fresh();
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 1 via 10.0.1.2");
}

TEST_F(MirrorTest, TellsRefusedRoutesAgain) {
  start();
  plane_.route_limit = plane_.routes.size();
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  EXPECT_EQ(mirror_->stats().refusals, 1U);
  EXPECT_EQ(mirror_->stats().last_refusal, "the route table is full");
  plane_.route_limit = SIZE_MAX;
  mirror_->resync();
  for (int i = 0; i < 100 && !mirror_->settled(); ++i) {
    std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(mirror_->process());
  }
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
}

TEST_F(MirrorTest, TakesARefusedNeighbourBackWhenTheKernelGivesItUp) {
  start();
  plane_.refuse_neighbours = true;
  const auto told = [this] {
    std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(mirror_->process());
    return plane_.neighbour(0, "10.0.0.2");
  };
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev sl-a");
  EXPECT_EQ(told(), "02:00:00:00:00:02");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
  EXPECT_EQ(mirror_->stats().refused, 1U);
  EXPECT_EQ(mirror_->stats().neighbours, 0U);
  kernel("ip neigh del 10.0.0.2 dev sl-a");
  EXPECT_EQ(told(), "none");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
}

TEST_F(MirrorTest, TellsWhatWasRefusedAtTheNextTickWithRoom) {
  start();
  plane_.refuse_neighbours = true;
  plane_.route_limit = 0;
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev sl-a");
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  EXPECT_EQ(mirror_->stats().refused, 2U);
  plane_.refuse_neighbours = false;
  plane_.route_limit = SIZE_MAX;
  ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
  EXPECT_EQ(mirror_->stats().refused, 0U);
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "02:00:00:00:00:02");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
}

TEST_F(MirrorTest, StopsReadingWhenTold) {
  auto options = options_;
  options.progress = [](std::string_view what, std::size_t) { return what != "neighbours"; };
  auto mirror = NetlinkMirror::open(std::move(options), plane_);
  ASSERT_TRUE(mirror) << mirror.error().message;
  const auto started = (*mirror)->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "interrupted while the kernel's tables were read");
}

// The kernel itself has no traffic for the neighbour, so it would never look whether its MAC is still right.
TEST_F(MirrorTest, ProbesStaleNeighbours) {
  kernel("sysctl -qw net.ipv4.neigh.sl-a.delay_first_probe_time=0 net.ipv4.neigh.sl-a.retrans_time_ms=50");
  start();
  change("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud stale dev sl-a");
  EXPECT_EQ(mirror_->stats().probes, 1U);
  // Nobody answers: the kernel gives the address up, and so does the router.
  settle_until([this] { return plane_.neighbours.empty(); });
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "none");
  // The kernel did ask the old MAC for it.
  std::array<std::byte, 2048> frame;
  bool asked = false;
  for (auto length = twins_[0].read(frame); length && *length > 0; length = twins_[0].read(frame)) {
    asked |= *length >= 42 && frame[12] == std::byte{8} && frame[13] == std::byte{6} && frame[0] == std::byte{2} &&
             frame[5] == std::byte{2};
  }
  EXPECT_TRUE(asked);
}

// The twins need no address, and the kernel no route.
TEST_F(MirrorTest, MakesTheKernelAskForANeighbourThatItHasNoRouteTo) {
  kernel("ip addr flush dev sl-b scope global && sysctl -qw net.ipv4.neigh.sl-b.retrans_time_ms=50");
  start();
  for (const char* address : {"172.16.0.9", "2001:db8:ffff::9"}) {
    const auto sent = mirror_->resolve(1, packet::IpAddress::parse(address).value());
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_TRUE(*sent);
  }
  settle();
  EXPECT_TRUE(plane_.neighbours.empty()) << "nobody has answered";
  std::array<std::byte, 2048> frame;
  unsigned arp = 0, nd = 0;
  for (auto length = twins_[1].read(frame); length && *length > 0; length = twins_[1].read(frame)) {
    arp += *length >= 42 && frame[12] == std::byte{8} && frame[13] == std::byte{6} && frame[38] == std::byte{172} &&
           frame[41] == std::byte{9};
    nd += *length >= 78 && frame[12] == std::byte{0x86} && frame[54] == std::byte{135} && frame[77] == std::byte{9};
  }
  EXPECT_GE(arp, 1U);
  EXPECT_GE(nd, 1U);
  change("ip neigh replace 172.16.0.9 lladdr 02:00:00:00:00:09 dev sl-b");
  EXPECT_EQ(plane_.neighbour(1, "172.16.0.9"), "02:00:00:00:00:09");
  EXPECT_FALSE(mirror_->resolve(7, packet::IpAddress::v4(1)).value()) << "no twin: nobody to ask";
}

// Puts a socket that takes no message (its buffer is full) in the place of the mirror's own.
class FullSocket {
 public:
  explicit FullSocket(int fd) : fd_(fd), saved_(dup(fd)) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair_) != 0) return;
    const char byte = 0;
    while (send(pair_[0], &byte, 1, 0) == 1) full_ = true;
    dup2(pair_[0], fd_);
  }
  ~FullSocket() {
    dup2(saved_, fd_);
    for (const int fd : {saved_, pair_[0], pair_[1]}) close(fd);
  }
  bool full() const { return full_; }

 private:
  int fd_;
  int saved_;
  int pair_[2] = {-1, -1};
  bool full_ = false;
};

TEST_F(MirrorTest, ProbesAgainWhatTheKernelDidNotTake) {
  start();
  change("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev sl-a nud reachable");
  const std::uint64_t before = mirror_->stats().probes;
  kernel("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev sl-a nud stale");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  {
    const FullSocket full(mirror_->fd());
    ASSERT_TRUE(full.full());
    const auto ticked = mirror_->tick(NetlinkMirror::Clock::now());
    ASSERT_TRUE(ticked) << ticked.error().message;
    EXPECT_EQ(mirror_->stats().probes, before);
    EXPECT_EQ(mirror_->stats().unsent, 1U);
  }
  ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
  EXPECT_EQ(mirror_->stats().probes, before + 1);
  EXPECT_EQ(mirror_->stats().unsent, 1U);
}

TEST_F(MirrorTest, ReadsEverythingLaterWhenTheKernelDoesNotTakeTheRequest) {
  start();
  const std::uint64_t resyncs = mirror_->stats().resyncs;
  std::this_thread::sleep_for(50ms);  // until another comparison is allowed
  mirror_->resync();
  {
    const FullSocket full(mirror_->fd());
    ASSERT_TRUE(full.full());
    const auto done = mirror_->process();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(mirror_->stats().unsent, 1U);
    EXPECT_FALSE(mirror_->settled());
  }
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  settle();
  EXPECT_EQ(mirror_->stats().resyncs, resyncs + 1);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  expect_as_fresh();
}

}  // namespace
}  // namespace sluice::control
