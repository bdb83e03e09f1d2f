// Neighbours that do not fit, the same neighbour on two links, and where gateways lie.
#include "function/route/route_table.h"

#include <gtest/gtest.h>

namespace sluice::function {
namespace {

constexpr std::uint32_t room = 4;

class RouteTableTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fib = lookup::Fib::create({.name = "table", .max_routes4 = room, .max_routes6 = room});
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
    return table_->add_neighbour(port, *packet::IpAddress::parse(address), mac_);
  }
  Adjacency at(const char* prefix) const { return adjacencies_.at(fib_->find(*packet::IpPrefix::parse(prefix))); }

  packet::MacAddress mac_{{2, 0, 0, 0, 0, 1}};
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
  for (const char* prefix : {"20.0.0.0/8", "21.0.0.0/8", "22.0.0.0/8", "23.0.0.0/8"}) {
    ASSERT_TRUE(add(prefix, 0, "10.0.0.1"));
  }
  const std::uint32_t used = adjacencies_.used();
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));  // still not there, and still said so
  EXPECT_EQ(adjacencies_.used(), used);
  // A full table does not stop routes through it, and it can be taken back.
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::forward);
  ASSERT_TRUE(table_->remove_neighbour(0, *packet::IpAddress::parse("10.0.0.1")));
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::unresolved);
  EXPECT_FALSE(add_neighbour(0, "10.0.0.1"));
  ASSERT_TRUE(remove("23.0.0.0/8"));
  ASSERT_TRUE(add_neighbour(0, "10.0.0.1"));
  EXPECT_EQ(at("10.0.0.1").kind(), AdjacencyKind::forward);
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::forward);
  ASSERT_TRUE(table_->remove_neighbour(0, *packet::IpAddress::parse("10.0.0.1")));
  EXPECT_EQ(at("20.0.0.0/8").kind(), AdjacencyKind::unresolved);
}

TEST_F(RouteTableTest, TheSameNeighbourAddressOnTwoLinksIsTwoNeighbours) {
  const packet::IpAddress shared = *packet::IpAddress::parse("fe80::1");
  const std::vector<std::pair<PortIndex, PortIndex>> orders = {{0, 1}, {1, 0}};
  for (const auto& [first, second] : orders) {
    ASSERT_TRUE(add_neighbour(0, "fe80::1"));
    ASSERT_TRUE(add_neighbour(1, "fe80::1"));
    EXPECT_EQ(table_->neighbours().size(), 2U);
    ASSERT_TRUE(table_->remove_neighbour(first, shared));
    EXPECT_EQ(at("fe80::1").kind(), AdjacencyKind::forward);
    EXPECT_EQ(at("fe80::1").port(), second);
    ASSERT_TRUE(table_->remove_neighbour(second, shared));
    EXPECT_EQ(fib_->size6(), 0U);
    EXPECT_EQ(adjacencies_.used(), 0U);
  }
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

}  // namespace
}  // namespace sluice::function
