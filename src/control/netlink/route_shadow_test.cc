// What a real kernel does not do on demand: lost messages, huge weights, churn of hop sets. The rest is in
// mirror_test.cc.
#include "control/netlink/route_shadow.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "control/netlink/recording_plane.h"

namespace sluice::control::netlink {
namespace {

using Join = RouteShadow::Join;

Hop hop(int ifindex, const std::string& gateway, std::uint32_t weight = 1) {
  return {ifindex, packet::IpAddress::parse(gateway).value(), weight, false, false};
}

RouteMessage route(const std::string& prefix, std::vector<Hop> hops, std::uint32_t metric = 0) {
  RouteMessage message;
  message.prefix = packet::IpPrefix::parse(prefix).value();
  message.type = RTN_UNICAST;
  message.table = RT_TABLE_MAIN;
  message.metric = metric;
  message.hops = std::move(hops);
  return message;
}

RouteMessage route_by_id(const std::string& prefix, std::uint32_t id) {
  RouteMessage message = route(prefix, {});
  message.nexthop_id = id;
  return message;
}

NexthopMessage nexthop(std::uint32_t id, const Hop& single) {
  NexthopMessage message;
  message.id = id;
  message.hop = single;
  return message;
}

// Interfaces 5 and 6 are the twins of ports 0 and 1.
class RouteShadowTest : public testing::Test {
 protected:
  void SetUp() override {
    shadow_.hops().set_port(5, 0);
    shadow_.hops().set_port(6, 1);
  }
  RecordingPlane plane_;
  RouteShadow shadow_{plane_};
};

TEST(RouteShadow, ReadsTheFlagsOfNotifications) {
  EXPECT_EQ(RouteShadow::join_of(NLM_F_CREATE | NLM_F_EXCL, 4), Join::only);
  EXPECT_EQ(RouteShadow::join_of(NLM_F_REPLACE, 4), Join::replace);
  EXPECT_EQ(RouteShadow::join_of(NLM_F_CREATE | NLM_F_APPEND, 4), Join::append);
  EXPECT_EQ(RouteShadow::join_of(NLM_F_CREATE, 4), Join::prepend);
  EXPECT_EQ(RouteShadow::join_of(NLM_F_CREATE, 6), Join::append);
}

TEST_F(RouteShadowTest, ARouteThatVanishedSilentlyIsReplacedByTheNext) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}), Join::only);
  shadow_.add(route("192.0.2.0/24", {hop(6, "10.0.1.2")}), Join::only);
  shadow_.remove(route("192.0.2.0/24", {hop(6, "10.0.1.2")}));
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "none");
  EXPECT_EQ(shadow_.prefixes(), 0U);
}

TEST_F(RouteShadowTest, OfMoreNextHopsThanARouteCanHaveTheFirstAreAnnouncedAndItIsCountedOnce) {
  const auto hops = [](unsigned count) {
    std::vector<Hop> all;
    for (unsigned i = 0; i < count; ++i) all.push_back(hop(5, "10.0.0." + std::to_string(i + 1)));
    return all;
  };
  const auto announced = [this](const char* prefix) {
    return plane_.routes[{packet::IpPrefix::parse(prefix).value(), 0}].next_hops;
  };
  shadow_.add(route("192.0.2.0/24", hops(64)), Join::only);
  EXPECT_EQ(announced("192.0.2.0/24").size(), 64U);
  EXPECT_EQ(shadow_.hops().shortened(), 0U);
  for (const char* prefix : {"198.51.100.0/24", "203.0.113.0/24"}) {  // of one set
    shadow_.add(route(prefix, hops(70)), Join::only);
    ASSERT_EQ(announced(prefix).size(), 64U);
    EXPECT_EQ(announced(prefix).back().gateway.str(), "10.0.0.64");
  }
  EXPECT_EQ(shadow_.hops().shortened(), 1U);
  shadow_.hops().set_port(5, 1);
  shadow_.settle();
  EXPECT_EQ(announced("203.0.113.0/24").front().port, 1);
  EXPECT_EQ(shadow_.hops().shortened(), 1U);
}

TEST_F(RouteShadowTest, ABetterRouteIsAnnouncedBeforeTheOldOneIsWithdrawn) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}, 100), Join::only);
  plane_.route_limit = 1;  // refuses a second route beside the first
  shadow_.add(route("192.0.2.0/24", {hop(6, "10.0.1.2")}, 50), Join::only);
  EXPECT_EQ(shadow_.refusals(), 1U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");  // still there
  plane_.route_limit = 2;
  shadow_.begin_dump(4);
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}, 100), Join::dumped);
  shadow_.add(route("192.0.2.0/24", {hop(6, "10.0.1.2")}, 50), Join::dumped);
  shadow_.end_dump(4);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.routes.size(), 1U);
}

TEST_F(RouteShadowTest, ADumpLeavesWhatItNamesAndAnnouncesDifferencesOnly) {
  shadow_.pin_local(packet::IpPrefix::parse("224.0.0.0/4").value());
  for (const char* prefix : {"192.0.2.0/24", "192.0.3.0/24", "192.0.4.0/24"}) {
    shadow_.add(route(prefix, {hop(5, "10.0.0.2")}), Join::only);
  }
  shadow_.add(route("2001:db8::/32", {hop(5, "fe80::2")}), Join::only);
  const auto calls = plane_.route_calls;
  shadow_.begin_dump(4);
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}), Join::dumped);
  shadow_.add(route("192.0.3.0/24", {hop(6, "10.0.1.2")}), Join::dumped);
  shadow_.end_dump(4);
  EXPECT_EQ(plane_.route_calls - calls, 2U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.route("192.0.4.0/24"), "none");
  EXPECT_EQ(plane_.route("224.0.0.0/4"), "local");
  EXPECT_EQ(plane_.route("2001:db8::/32"), "unicast 0 via fe80::2");  // not of this family
}

TEST_F(RouteShadowTest, ADumpKeepsAppendedRoutesInTheirOrder) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.9")}), Join::only);
  for (int round = 0; round < 2; ++round) {
    shadow_.begin_dump(4);
    shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}), Join::dumped);
    shadow_.add(route("192.0.2.0/24", {hop(6, "10.0.1.2")}), Join::dumped);
    shadow_.end_dump(4);
    EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  }
  shadow_.remove(route("192.0.2.0/24", {hop(5, "10.0.0.2")}));
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.1.2");
}

TEST_F(RouteShadowTest, ADumpBringsTheKernelsOrder) {
  const auto first = route("192.0.2.0/24", {hop(5, "10.0.0.2")});
  const auto second = route("192.0.2.0/24", {hop(6, "10.0.1.2")});
  shadow_.add(first, Join::only);
  shadow_.add(second, Join::append);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  for (const auto& [before, behind, announced] :
       {std::tuple{second, first, "unicast 1 via 10.0.1.2"}, {first, second, "unicast 0 via 10.0.0.2"}}) {
    shadow_.begin_dump(4);
    shadow_.add(before, Join::dumped);
    shadow_.add(behind, Join::dumped);
    shadow_.end_dump(4);
    EXPECT_EQ(plane_.route("192.0.2.0/24"), announced);
  }
  shadow_.remove(first);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.1.2");
}

TEST_F(RouteShadowTest, RoutesThatDifferInTheirProtocolAloneAreTwo) {
  auto other = route("192.0.2.0/24", {hop(5, "10.0.0.2")});
  shadow_.add(other, Join::only);
  other.protocol = RTPROT_BGP;
  shadow_.add(other, Join::append);
  shadow_.remove(other);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
}

TEST_F(RouteShadowTest, TheKernelForwardsByAnObjectThatIsNotKnownYet) {
  shadow_.add(route_by_id("192.0.2.0/24", 11), Join::only);
  shadow_.settle();
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "local");
  shadow_.nexthops().apply(nexthop(11, hop(5, "10.0.0.2")));
  shadow_.settle();
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
}

TEST_F(RouteShadowTest, AGroupGainsAMemberThatWasLost) {
  NexthopMessage group;
  group.id = 20;
  group.group = {{11, 1}, {12, 2}};
  shadow_.nexthops().apply(nexthop(11, hop(5, "10.0.0.2")));
  shadow_.nexthops().apply(group);
  shadow_.add(route_by_id("192.0.2.0/24", 20), Join::only);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  shadow_.nexthops().apply(nexthop(12, hop(6, "10.0.1.2")));
  shadow_.settle();
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2, 1 via 10.0.1.2 *2");
}

TEST_F(RouteShadowTest, ObjectsThatADumpDoesNotNameAreForgotten) {
  shadow_.nexthops().apply(nexthop(11, hop(5, "10.0.0.2")));
  shadow_.add(route_by_id("192.0.2.0/24", 11), Join::only);
  shadow_.nexthops().begin_dump();
  shadow_.nexthops().end_dump();
  shadow_.settle();
  EXPECT_EQ(shadow_.nexthops().size(), 0U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "local");
}

TEST_F(RouteShadowTest, AnObjectThatIsRemovedUnderItsRoutesStaysUntilTheyAreGone) {
  shadow_.nexthops().apply(nexthop(11, hop(5, "10.0.0.2")));
  shadow_.nexthops().apply(nexthop(12, hop(5, "10.0.0.3")));
  shadow_.add(route_by_id("192.0.2.0/24", 11), Join::only);
  for (const std::uint32_t id : {11, 12}) {
    auto removed = nexthop(id, {});
    removed.removed = true;
    shadow_.nexthops().apply(removed);
  }
  EXPECT_EQ(shadow_.nexthops().size(), 1U);  // 12 was of no use
  shadow_.settle();
  const auto calls = plane_.route_calls;
  shadow_.nexthops().begin_dump();
  shadow_.begin_dump(4);
  shadow_.end_dump(4);
  shadow_.nexthops().end_dump();
  shadow_.settle();
  EXPECT_EQ(plane_.route_calls - calls, 1U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "none");
  EXPECT_EQ(shadow_.nexthops().size(), 0U);
  EXPECT_FALSE(shadow_.nexthops().in_use(11));
}

TEST_F(RouteShadowTest, AnObjectIsInUseWhileARouteNamesIt) {
  shadow_.add(route_by_id("192.0.2.0/24", 11), Join::only);
  shadow_.add(route_by_id("192.0.3.0/24", 11), Join::only);
  shadow_.add(route_by_id("192.0.3.0/24", 11), Join::replace);
  shadow_.add(route_by_id("192.0.3.0/24", 12), Join::replace);
  EXPECT_TRUE(shadow_.nexthops().in_use(12));
  shadow_.remove(route_by_id("192.0.3.0/24", 12));
  EXPECT_FALSE(shadow_.nexthops().in_use(12));
  EXPECT_TRUE(shadow_.nexthops().in_use(11));
  shadow_.remove(route_by_id("192.0.2.0/24", 11));
  EXPECT_FALSE(shadow_.nexthops().in_use(11));
}

TEST_F(RouteShadowTest, WeightsAboveAByteKeepTheirProportion) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2", 1), hop(5, "10.0.0.3", 500), hop(6, "10.0.1.2", 1000)}),
              Join::only);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2, 0 via 10.0.0.3 *127, 1 via 10.0.1.2 *255");
}

TEST_F(RouteShadowTest, ADeadHopIsLeftOutAndADeadRouteGivesWay) {
  auto dead = hop(5, "10.0.0.2");
  dead.dead = true;
  shadow_.add(route("192.0.2.0/24", {dead, hop(6, "10.0.1.2")}), Join::only);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.1.2");
  shadow_.add(route("192.0.3.0/24", {dead}), Join::only);
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "none");
  shadow_.add(route("192.0.3.0/24", {hop(6, "10.0.1.2")}, 9), Join::only);
  EXPECT_EQ(plane_.route("192.0.3.0/24"), "unicast 1 via 10.0.1.2");
}

TEST_F(RouteShadowTest, RefusedRoutesAreAnnouncedWhenThereIsCapacity) {
  const auto prefix = [](int i) { return "192.0." + std::to_string(i) + ".0/24"; };
  plane_.route_limit = 3;
  for (int i = 0; i < 10; ++i) shadow_.add(route(prefix(i), {hop(5, "10.0.0.2")}), Join::only);
  EXPECT_EQ(shadow_.prefixes_announced(), 3U);
  EXPECT_EQ(shadow_.refused(), 7U);
  EXPECT_EQ(shadow_.refusals(), 7U);
  shadow_.retry_refused(4);
  EXPECT_EQ(shadow_.refusals(), 7U) << "what is refused still is no news";
  // Capacity for one, in whose turn it is; one that the kernel took away needs none.
  shadow_.remove(route(prefix(0), {hop(5, "10.0.0.2")}));
  shadow_.remove(route(prefix(9), {hop(5, "10.0.0.2")}));
  EXPECT_EQ(shadow_.refused(), 6U);
  shadow_.retry_refused(4);
  EXPECT_EQ(shadow_.prefixes_announced(), 3U);
  EXPECT_EQ(shadow_.refused(), 5U);
  EXPECT_EQ(plane_.route(prefix(9)), "none");
  plane_.route_limit = SIZE_MAX;
  shadow_.retry_refused(1);
  EXPECT_EQ(shadow_.prefixes_announced(), 8U);
  EXPECT_EQ(shadow_.refused(), 0U);
}

TEST_F(RouteShadowTest, ARefusedMoveOfAPortIsAnnouncedWhenThereIsCapacity) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}), Join::only);
  plane_.route_limit = 0;
  shadow_.hops().set_port(5, 1);
  shadow_.settle();
  EXPECT_EQ(shadow_.refused(), 1U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  plane_.route_limit = SIZE_MAX;
  shadow_.retry_refused(1);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 1 via 10.0.0.2");
}

TEST_F(RouteShadowTest, EncapsulatedRoutesAreTheKernels) {
  auto mpls = hop(5, "10.0.0.2");
  mpls.encapsulated = true;
  shadow_.add(route("192.0.2.0/24", {mpls}), Join::only);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "local");
}

TEST_F(RouteShadowTest, PortsThatMoveAreAnnouncedAgain) {
  shadow_.add(route("192.0.2.0/24", {hop(5, "10.0.0.2")}), Join::only);
  shadow_.add(route("192.0.3.0/24", {hop(6, "10.0.1.2")}), Join::only);
  const auto calls = plane_.route_calls;
  shadow_.hops().set_port(5, std::nullopt);
  shadow_.hops().set_port(7, 0);
  shadow_.settle();
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "local");
  EXPECT_EQ(plane_.route_calls - calls, 1U);
}

TEST_F(RouteShadowTest, HopSetsDoNotPileUp) {
  for (unsigned i = 0; i < 100000; ++i) {
    const auto gateway = packet::IpAddress::v4(0x0a000000 + i).str();
    shadow_.add(route("192.0.2.0/24", {hop(5, gateway)}), Join::replace);
    shadow_.settle();
  }
  EXPECT_LT(shadow_.hops().ids(), 10000U);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.1.134.159");
}

}  // namespace
}  // namespace sluice::control::netlink
