// Which neighbours get a host route, those that do not fit, and where gateways lie.
#include "function/route/route_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::function {
namespace {

constexpr std::uint32_t capacity = 4;
constexpr packet::MacAddress mac_of_port[] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};

class RouteTableTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fib = lookup::Fib::create({.name = "table", .max_routes4 = capacity, .max_routes6 = capacity});
    ASSERT_TRUE(fib) << fib.error().message;
    fib_ = std::move(*fib);
    table_ = std::make_unique<RouteTable>(*fib_, adjacencies_, 2);
  }
  Expected<void> add(const char* prefix, PortIndex port, const char* gateway, std::uint32_t metric = 0) {
    const packet::IpAddress via = *gateway == 0 ? packet::IpAddress{} : *packet::IpAddress::parse(gateway);
    return table_->add_route({*packet::IpPrefix::parse(prefix), RouteKind::unicast, {{port, via, 1}}, metric, 0});
  }
  Expected<void> remove(const char* prefix, std::uint32_t metric = 0) {
    return table_->remove_route(*packet::IpPrefix::parse(prefix), metric);
  }
  Expected<void> add_neighbour(PortIndex port, const char* address) {
    return table_->add_neighbour(port, *packet::IpAddress::parse(address), mac_of_port[port]);
  }
  Expected<void> remove_neighbour(PortIndex port, const char* address) {
    return table_->remove_neighbour(port, *packet::IpAddress::parse(address));
  }
  Expected<void> add_blackhole(const char* prefix) {
    return table_->add_route({*packet::IpPrefix::parse(prefix), RouteKind::blackhole, {}, 0, 0});
  }
  // Where frames for the address go: "port 0" to the neighbour itself, "via 10.0.0.1", "link" (to be resolved) or
  // the kind of route.
  std::string way_to(const char* text) const {
    const packet::IpAddress address = *packet::IpAddress::parse(text);
    lookup::NextHopId id = 0;
    if (address.family == 4) {
      const std::uint32_t key = address.v4_host_order();
      fib_->lookup4(&key, &id, 1);
    } else {
      std::uint8_t key[1][16];
      std::copy(address.bytes.begin(), address.bytes.end(), key[0]);
      fib_->lookup6(key, &id, 1);
    }
    const std::vector<NextHop> hops = table_->next_hops(id);
    if (hops.empty()) {
      return id == AdjacencyTable::blackhole_id ? "blackhole" : id == AdjacencyTable::local_id ? "local" : "no route";
    }
    const PortIndex port = hops[0].port;
    if (hops[0].gateway.empty()) {
      return hops.size() == 1 ? "link" : "links";
    }
    if (!(hops[0].gateway == address)) {
      return "via " + hops[0].gateway.str();
    }
    EXPECT_EQ(adjacencies_.at(id).kind(), AdjacencyKind::forward) << text;
    EXPECT_EQ(adjacencies_.at(id).mac_word(), mac_of_port[port].word()) << text;
    return "port " + std::to_string(port);
  }
  Adjacency at(const char* prefix) const { return adjacencies_.at(fib_->find(*packet::IpPrefix::parse(prefix))); }

  std::unique_ptr<lookup::Fib> fib_;
  AdjacencyTable adjacencies_;
  std::unique_ptr<RouteTable> table_;
};

TEST_F(RouteTableTest, ListsItsRoutesInOrder) {
  for (const char* prefix : {"20.0.0.0/8", "9.0.0.0/16", "9.0.0.0/8"}) {
    ASSERT_TRUE(add(prefix, 0, "10.0.0.1"));
  }
  ASSERT_TRUE(add("2001:db8::/32", 0, "fd00::1"));
  ASSERT_TRUE(add("::/0", 0, "fd00::1"));
  std::uint64_t matching = 0;
  std::vector<std::string> first;
  for (const Route& route : table_->list([](const packet::IpPrefix&) { return true; }, 4, matching)) {
    first.push_back(route.prefix.str());
  }
  EXPECT_EQ(matching, 5U);
  EXPECT_EQ(first, (std::vector<std::string>{"9.0.0.0/8", "9.0.0.0/16", "20.0.0.0/8", "::/0"}));
}

TEST_F(RouteTableTest, ARefusedNeighbourIsTriedAgain) {
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));
  for (const char* prefix : {"20.0.0.0/8", "21.0.0.0/8", "22.0.0.0/8"}) {
    ASSERT_TRUE(add(prefix, 0, "10.0.0.1"));
  }
  const std::uint32_t used = adjacencies_.used();
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));  // still not there, and still said so
  EXPECT_EQ(adjacencies_.used(), used);
  // A full table does not stop routes through it, and it can be taken back.
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::forward);
  ASSERT_TRUE(remove_neighbour(0, "10.0.0.1"));
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::unresolved);
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));
  ASSERT_TRUE(remove("22.0.0.0/8"));
  EXPECT_EQ(way_to("10.0.0.1"), "port 0");
  ASSERT_TRUE(add_neighbour(0, "10.0.0.1"));
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::forward);
  ASSERT_TRUE(remove_neighbour(0, "10.0.0.1"));
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::unresolved);
}

TEST_F(RouteTableTest, ANeighbourWithoutCapacityGetsItAsSoonAsThereIs) {
  for (const char* address : {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "2001:db8::1"}) {
    ASSERT_TRUE(add_neighbour(0, address)) << "nothing says yet that it is on the link";
  }
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));  // and capacity for three of the four
  EXPECT_EQ(fib_->size4(), capacity);
  EXPECT_EQ(way_to("10.0.0.3"), "port 0");
  EXPECT_EQ(way_to("10.0.0.4"), "link");
  ASSERT_TRUE(add("2001:db8::/64", 0, ""));
  EXPECT_EQ(way_to("2001:db8::1"), "port 0");
  ASSERT_TRUE(remove_neighbour(0, "10.0.0.2"));
  EXPECT_EQ(way_to("10.0.0.4"), "port 0");
  EXPECT_EQ(way_to("10.0.0.2"), "link");
  ASSERT_TRUE(remove("10.0.0.0/24"));
  EXPECT_EQ(fib_->size4(), 0U);
  EXPECT_EQ(adjacencies_.used(), 2U) << "the IPv6 link and neighbour";
}

TEST_F(RouteTableTest, TheNumberOfRoutesLeavesNeighboursOut) {
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));
  ASSERT_TRUE(add("2001:db8::/64", 0, ""));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.2"));
  ASSERT_TRUE(add_neighbour(0, "2001:db8::2"));
  EXPECT_EQ(fib_->size4() + fib_->size6(), 4U) << "with their host routes";
  EXPECT_EQ(table_->size(4), 1U);
  EXPECT_EQ(table_->size(6), 1U);
  EXPECT_EQ(table_->neighbour_count(), 2U);
  ASSERT_TRUE(add("10.0.0.0/24", 0, "", 7));
  ASSERT_TRUE(add("10.0.0.2/32", 1, "10.9.9.9"));
  EXPECT_EQ(table_->size(4), 2U) << "a prefix counts once, a route for the host itself does";
  ASSERT_TRUE(remove("10.0.0.2/32"));
  ASSERT_TRUE(remove("10.0.0.0/24"));
  EXPECT_EQ(table_->size(4), 1U);
  ASSERT_TRUE(remove("10.0.0.0/24", 7));
  EXPECT_EQ(table_->size(4), 0U);
}

TEST_F(RouteTableTest, AnAddressThatIsNotOnTheLinkCannotBeTaken) {
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));
  ASSERT_TRUE(add("10.1.0.0/24", 1, ""));
  ASSERT_TRUE(add("0.0.0.0/0", 1, "10.1.0.1"));
  ASSERT_TRUE(add("2001:db8:1::/64", 1, ""));
  // By ARP requests and neighbour solicitations on port 0 with senders of elsewhere, nowhere and another link.
  for (const char* address : {"8.8.8.8", "10.1.0.1", "2001:db8:ffff::8", "2001:db8:1::1"}) {
    ASSERT_TRUE(add_neighbour(0, address));
  }
  EXPECT_EQ(way_to("8.8.8.8"), "via 10.1.0.1");
  EXPECT_EQ(way_to("10.1.0.1"), "link");
  EXPECT_EQ(way_to("2001:db8:ffff::8"), "no route");
  EXPECT_EQ(way_to("2001:db8:1::1"), "link");
  EXPECT_EQ(fib_->size4() + fib_->size6(), 4U);
  EXPECT_EQ(at("0.0.0.0/0").kind(), AdjacencyKind::unresolved);
  ASSERT_TRUE(add_neighbour(1, "10.1.0.1"));
  EXPECT_EQ(way_to("10.1.0.1"), "port 1");
  EXPECT_EQ(at("0.0.0.0/0").mac_word(), mac_of_port[1].word());
}

TEST_F(RouteTableTest, AMoreSpecificRouteInsideTheConnectedPrefixGoesBeforeTheNeighbour) {
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.2"));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.130"));
  ASSERT_TRUE(add("10.0.0.128/25", 0, "10.0.0.2"));
  EXPECT_EQ(way_to("10.0.0.130"), "via 10.0.0.2");
  EXPECT_EQ(way_to("10.0.0.2"), "port 0") << "outside the new route";
  ASSERT_TRUE(add_blackhole("10.0.0.128/25"));
  EXPECT_EQ(way_to("10.0.0.130"), "blackhole");
  ASSERT_TRUE(add("10.0.0.128/25", 0, ""));  // on the link once more
  EXPECT_EQ(way_to("10.0.0.130"), "port 0");
  ASSERT_TRUE(add("10.0.0.128/25", 1, ""));  // on another link
  EXPECT_EQ(way_to("10.0.0.130"), "link");
  ASSERT_TRUE(add("0.0.0.0/0", 0, "10.0.0.2"));  // shorter than what decides: changes nothing
  EXPECT_EQ(way_to("10.0.0.130"), "link");
  ASSERT_TRUE(remove("10.0.0.128/25"));
  EXPECT_EQ(way_to("10.0.0.130"), "port 0");
  // A worse route for the connected prefix takes over when the better one goes.
  ASSERT_TRUE(add("10.0.0.0/24", 1, "10.1.0.1", 100));
  EXPECT_EQ(way_to("10.0.0.130"), "port 0");
  ASSERT_TRUE(remove("10.0.0.0/24"));
  EXPECT_EQ(way_to("10.0.0.130"), "via 10.1.0.1");
}

TEST_F(RouteTableTest, ANeighbourFollowsItsConnectedPrefix) {
  const std::vector<std::pair<const char*, const char*>> cases = {{"10.0.0.0/24", "10.0.0.2"},
                                                                  {"2001:db8::/64", "2001:db8::2"}};
  for (const auto& [prefix, address] : cases) {
    ASSERT_TRUE(add_neighbour(0, address));
    EXPECT_EQ(way_to(address), "no route");
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(add(prefix, 0, ""));
      EXPECT_EQ(way_to(address), "port 0");
      ASSERT_TRUE(remove(prefix));
      EXPECT_EQ(way_to(address), "no route") << "every route to it is gone";
    }
    ASSERT_TRUE(remove_neighbour(0, address));
  }
  EXPECT_EQ(fib_->size4() + fib_->size6(), 0U);
  EXPECT_EQ(adjacencies_.used(), 0U);
}

TEST_F(RouteTableTest, ARouteForTheHostItselfDecidesLikeAnyOther) {
  ASSERT_TRUE(add("10.0.0.0/24", 0, ""));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.2"));
  ASSERT_TRUE(add("10.0.0.2/32", 0, ""));  // on the link: to the neighbour
  EXPECT_EQ(way_to("10.0.0.2"), "port 0");
  ASSERT_TRUE(add("10.0.0.2/32", 0, "10.0.0.2", 5));  // worse, and shares the neighbour's next hop
  ASSERT_TRUE(remove("10.0.0.2/32"));
  EXPECT_EQ(way_to("10.0.0.2"), "port 0");
  ASSERT_TRUE(add("10.0.0.2/32", 0, "10.0.0.9"));
  EXPECT_EQ(way_to("10.0.0.2"), "via 10.0.0.9");
  ASSERT_TRUE(remove("10.0.0.2/32"));
  ASSERT_TRUE(remove("10.0.0.2/32", 5));
  EXPECT_EQ(way_to("10.0.0.2"), "port 0");
  ASSERT_TRUE(add("10.0.0.2/32", 0, ""));
  ASSERT_TRUE(remove_neighbour(0, "10.0.0.2"));
  EXPECT_EQ(way_to("10.0.0.2"), "link");
  EXPECT_EQ(fib_->size4(), 2U);
}

TEST_F(RouteTableTest, TheSameNeighbourAddressOnTwoLinksIsTwoNeighbours) {
  const std::vector<std::pair<PortIndex, PortIndex>> orders = {{0, 1}, {1, 0}};
  for (const auto& [first, second] : orders) {
    ASSERT_TRUE(add_neighbour(first, "10.0.0.2"));
    ASSERT_TRUE(add_neighbour(second, "10.0.0.2"));
    EXPECT_EQ(table_->neighbours().size(), 2U);
    // The connected prefix moves from link to link, and the address with it.
    for (const PortIndex port : {first, second, first}) {
      ASSERT_TRUE(add("10.0.0.0/24", port, ""));
      EXPECT_EQ(way_to("10.0.0.2"), "port " + std::to_string(port));
      EXPECT_EQ(fib_->size4(), 2U);
    }
    ASSERT_TRUE(remove_neighbour(second, "10.0.0.2"));
    EXPECT_EQ(way_to("10.0.0.2"), "port " + std::to_string(first));
    ASSERT_TRUE(add_neighbour(second, "10.0.0.2"));
    ASSERT_TRUE(remove_neighbour(first, "10.0.0.2"));
    EXPECT_EQ(way_to("10.0.0.2"), "link") << "the other one is on another link";
    ASSERT_TRUE(remove_neighbour(second, "10.0.0.2"));
    ASSERT_TRUE(remove("10.0.0.0/24"));
    EXPECT_EQ(fib_->size4(), 0U);
    EXPECT_EQ(adjacencies_.used(), 0U);
  }
}

TEST_F(RouteTableTest, ALinkLocalNeighbourServesGatewaysOnly) {
  ASSERT_TRUE(table_->add_route({*packet::IpPrefix::parse("fe80::/10"), RouteKind::local, {}, 0, 0}));
  ASSERT_TRUE(add("2001:db8::/32", 1, "fe80::1"));
  ASSERT_TRUE(add_neighbour(1, "fe80::1"));
  EXPECT_EQ(way_to("fe80::1"), "local");
  EXPECT_EQ(at("2001:db8::/32").kind(), AdjacencyKind::forward);
  EXPECT_EQ(fib_->size6(), 2U);
}

TEST_F(RouteTableTest, KnowsTheHostsOwnAddresses) {
  Route elsewhere{*packet::IpPrefix::parse("172.16.0.0/12"), RouteKind::local, {}, 0, 0};
  elsewhere.elsewhere = true;
  ASSERT_TRUE(table_->add_route(elsewhere));
  ASSERT_TRUE(add("10.0.0.0/24", 1, ""));
  for (const char* const own : {"10.0.0.1/32", "2001:db8::1/128"}) {
    ASSERT_TRUE(table_->add_route({*packet::IpPrefix::parse(own), RouteKind::local, {}, 0, 0}));
  }
  const auto is_own = [&](const char* text) {
    const packet::IpAddress address = *packet::IpAddress::parse(text);
    return table_->is_own(address.family, address.bytes.data());
  };
  EXPECT_TRUE(is_own("10.0.0.1"));
  EXPECT_TRUE(is_own("2001:db8::1"));
  EXPECT_FALSE(is_own("10.0.0.2"));
  EXPECT_FALSE(is_own("2001:db8::2"));
  EXPECT_FALSE(is_own("172.16.0.1")) << "the kernel forwards it";
}

TEST_F(RouteTableTest, ALinkIsKnownAsLongAsOneRouteSaysSo) {
  ASSERT_TRUE(add("10.0.0.0/24", 1, "", 100));
  ASSERT_TRUE(add("10.0.0.0/24", 0, "", 50));
  const auto port_of = [&](const char* gateway) {
    EXPECT_TRUE(add("20.0.0.0/8", AdjacencyTable::any_port, gateway));
    const PortIndex port = adjacencies_.next_hops(fib_->find(*packet::IpPrefix::parse("20.0.0.0/8"))).at(0).port;
    EXPECT_TRUE(remove("20.0.0.0/8"));
    return port;
  };
  EXPECT_EQ(port_of("10.0.0.1"), 0);
  EXPECT_FALSE(remove("10.0.0.0/24", 7));
  EXPECT_EQ(port_of("10.0.0.2"), 0);
  ASSERT_TRUE(remove("10.0.0.0/24", 50));
  EXPECT_EQ(port_of("10.0.0.3"), 1);
  // A gateway takes the place of the link itself.
  ASSERT_TRUE(add("10.0.0.0/24", 1, "10.1.0.1", 100));
  EXPECT_EQ(port_of("10.0.0.4"), AdjacencyTable::any_port);
}

// As `ip route get` and `ip route add ... via` answer, too.
TEST_F(RouteTableTest, UnderARouteThroughAGatewayALinkStillHasGatewaysButNoHostRoutes) {
  const auto expect_gateway_on_the_link = [&] {
    const lookup::NextHopId id = fib_->find(*packet::IpPrefix::parse("20.0.0.0/8"));
    EXPECT_EQ(adjacencies_.next_hops(id).at(0).port, 0);
    EXPECT_EQ(adjacencies_.at(id).mac_word(), mac_of_port[0].word());
  };
  ASSERT_TRUE(add("10.0.0.0/24", 0, "", 100));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.2"));
  ASSERT_TRUE(add("20.0.0.0/8", AdjacencyTable::any_port, "10.0.0.2"));
  EXPECT_EQ(way_to("10.0.0.2"), "port 0");
  expect_gateway_on_the_link();
  for (const char* prefix : {"10.0.0.0/24", "10.0.0.0/25"}) {  // of a better metric, and longer
    ASSERT_TRUE(add(prefix, 1, "10.1.0.1", 50));
    EXPECT_EQ(way_to("10.0.0.2"), "via 10.1.0.1") << prefix;
    expect_gateway_on_the_link();
    ASSERT_TRUE(remove(prefix, 50));
    EXPECT_EQ(way_to("10.0.0.2"), "port 0") << prefix;
    expect_gateway_on_the_link();
  }
}

TEST_F(RouteTableTest, AnOnLinkRouteOfSeveralPortsPutsNoGatewayOnOneOfThem) {
  const auto add_hops = [&](std::vector<NextHop> hops) {
    return table_->add_route({*packet::IpPrefix::parse("10.0.0.0/24"), RouteKind::unicast, std::move(hops), 0, 0});
  };
  const auto gateway_port = [&] {
    return adjacencies_.next_hops(fib_->find(*packet::IpPrefix::parse("20.0.0.0/8"))).at(0).port;
  };
  const packet::IpAddress router = *packet::IpAddress::parse("10.1.0.1");
  ASSERT_TRUE(add("10.0.0.0/8", 0, ""));
  ASSERT_TRUE(add("20.0.0.0/8", AdjacencyTable::any_port, "10.0.0.2"));
  EXPECT_EQ(gateway_port(), 0);
  ASSERT_TRUE(add_hops({{0, {}, 1}, {1, {}, 1}}));  // nexthop dev a nexthop dev b
  EXPECT_EQ(gateway_port(), AdjacencyTable::any_port) << "nor is it on the link of the shorter prefix";
  ASSERT_TRUE(add_hops({{1, {}, 1}, {1, {}, 2}}));
  EXPECT_EQ(gateway_port(), 1);
  ASSERT_TRUE(add_hops({{1, {}, 1}, {1, router, 1}}));
  EXPECT_EQ(gateway_port(), AdjacencyTable::any_port);
  ASSERT_TRUE(remove("10.0.0.0/24"));
  EXPECT_EQ(gateway_port(), 0);
}

TEST_F(RouteTableTest, ARouteThatDoesNotForwardKeepsGatewaysOffTheLinkOfAShorterPrefix) {
  const auto port_of = [&](const char* route) {
    return adjacencies_.next_hops(fib_->find(*packet::IpPrefix::parse(route))).at(0).port;
  };
  ASSERT_TRUE(add("10.0.0.0/8", 0, ""));
  ASSERT_TRUE(add("20.0.0.0/8", AdjacencyTable::any_port, "10.0.0.2"));
  for (const RouteKind kind : {RouteKind::local, RouteKind::blackhole, RouteKind::unreachable}) {
    ASSERT_TRUE(table_->add_route({*packet::IpPrefix::parse("10.0.0.0/24"), kind, {}, 0, 0}));
    EXPECT_EQ(port_of("20.0.0.0/8"), AdjacencyTable::any_port);
    ASSERT_TRUE(add("10.0.0.0/24", 1, ""));
    EXPECT_EQ(port_of("20.0.0.0/8"), 1) << "the prefix is on a port's link now";
    ASSERT_TRUE(remove("10.0.0.0/24"));
    EXPECT_EQ(port_of("20.0.0.0/8"), 0);
  }
  // The mirror punts fe80::/10 always; a link that the configuration names has such gateways all the same.
  ASSERT_TRUE(table_->add_route({*packet::IpPrefix::parse("fe80::/10"), RouteKind::local, {}, 0, 0}));
  ASSERT_TRUE(add("fe80::/10", 1, "", static_metric));
  ASSERT_TRUE(add("2001:db8::/32", AdjacencyTable::any_port, "fe80::2"));
  EXPECT_EQ(port_of("2001:db8::/32"), 1);
}

TEST_F(RouteTableTest, ALinkIsUpWhenTheDeviceAndTheTwinBothSaySo) {
  for (const bool device : {false, true, false}) {
    for (const bool twin : {true, false, true}) {
      table_->set_carrier(1, device);
      table_->set_link(1, twin, 1400);
      EXPECT_EQ(table_->carries(1), device && twin ? 1400U : 0U);
      table_->set_link(1, twin, 1300);
      table_->set_carrier(1, device);  // last
      EXPECT_EQ(table_->carries(1), device && twin ? 1300U : 0U);
      EXPECT_EQ(table_->mtu(1), 1300U);
      EXPECT_EQ(table_->carries(0), 1500U);
    }
  }
}

TEST_F(RouteTableTest, AGatewayWithoutAPortFollowsTheLongestLinkAndNoRouteIsRewritten) {
  constexpr PortIndex any = AdjacencyTable::any_port;
  const auto expect_on = [&](PortIndex port, const char* what) {
    const lookup::NextHopId id = fib_->find(*packet::IpPrefix::parse("203.0.113.0/24"));
    EXPECT_EQ(adjacencies_.next_hops(id).at(0).port, port) << what;
    EXPECT_EQ(adjacencies_.next_hops(id).at(0).gateway.str(), "10.0.0.2") << what;
    return id;
  };
  ASSERT_TRUE(add("10.0.0.0/8", 1, ""));
  ASSERT_TRUE(add("203.0.113.0/24", any, "10.0.0.2"));
  const lookup::NextHopId id = expect_on(1, "the link was known when the gateway came");
  struct Step {
    const char* prefix;
    std::optional<PortIndex> port;  // nothing: the route of (prefix, metric) goes
    const char* gateway;
    std::uint32_t metric;
    PortIndex expected;
  };
  const Step steps[] = {
      {"10.0.0.0/24", 0, "", 100, 0},            // longer
      {"0.0.0.0/0", 1, "", 0, 0},                // the default route on a device
      {"10.0.0.0/8", 1, "", 0, 0},               // the shorter one once more
      {"0.0.0.0/0", std::nullopt, "", 0, 0},     // shorter
      {"10.0.0.0/24", 1, "", 50, 1},             // a better metric
      {"10.0.0.0/24", 0, "", 50, 0},             // replaced
      {"10.0.0.0/24", std::nullopt, "", 50, 0},  // the worse metric says the same
      {"10.0.0.0/24", 0, "10.1.0.1", 100, 1},    // not on a link any more: the /8 is next
      {"10.0.0.0/24", std::nullopt, "", 100, 1},
      {"0.0.0.0/0", 0, "", 0, 1},
      {"10.0.0.0/8", std::nullopt, "", 0, 0},
      {"0.0.0.0/0", std::nullopt, "", 0, any},
      {"10.0.0.0/24", 0, "", 0, 0},
  };
  for (const Step& step : steps) {
    const std::string what = std::string(step.prefix) + " metric " + std::to_string(step.metric);
    if (step.port) {
      ASSERT_TRUE(add(step.prefix, *step.port, step.gateway, step.metric)) << what;
    } else {
      ASSERT_TRUE(remove(step.prefix, step.metric)) << what;
    }
    EXPECT_EQ(expect_on(step.expected, what.c_str()), id) << what;
  }
}

}  // namespace
}  // namespace sluice::function
