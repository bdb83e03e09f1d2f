// The router as a table: a frame in, and where it must come out, changed how, or why it must not. Every case runs
// through the real data path (captures in, captures out) on the CPU and on the GPU's code.
#include "function/route/route.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "function/route/route_trial_test.h"

namespace sluice::function {
namespace {

// Ports have no twins here, so what would go to the host is a drop under its own name.
std::vector<Case> cases() {
  return {
      {"gateway route", v4("203.0.113.7").udp(1, 2).payload(100).build(), ""},
      {"more specific route", v4("203.0.113.129").udp(1, 2).payload(10).build(), "", "02:00:00:00:00:98"},
      {"neighbour on the link", v4("10.2.0.7").tcp(5, 80).payload(7).build(), "", "02:00:00:00:00:97"},
      {"default route", v4("8.8.8.8").udp(1, 2).payload(1400).build(), ""},
      {"TTL of two", v4("203.0.113.7").ttl(2).udp(1, 2).payload(30).build(), ""},
      {"TTL of one", v4("203.0.113.7").ttl(1).udp(1, 2).payload(30).build(), "ttl_expired"},
      {"TTL of zero", v4("203.0.113.7").ttl(0).udp(1, 2).payload(30).build(), "ttl_expired"},
      {"largest that fits", v4("203.0.113.7").udp(1, 2).payload(1500 - 28).build(), ""},
      {"one byte too large", v4("203.0.113.7").udp(1, 2).payload(1501 - 28).build(), "too_big"},
      {"first fragment", v4("203.0.113.7").fragment(0, true).udp(1, 2).payload(64).build(), ""},
      {"last fragment", v4("203.0.113.7").fragment(1480, false).udp(1, 2).payload(64).build(), ""},
      {"link destination without neighbour", v4("10.2.0.200").udp(1, 2).payload(5).build(), "unresolved"},
      {"unresolved gateway", v4("198.51.100.1").udp(1, 2).payload(5).build(), "unresolved"},
      {"blackhole", v4("192.0.2.1").udp(1, 2).payload(5).build(), "blackholed"},
      {"unreachable route", v4("192.0.3.1").udp(1, 2).payload(5).build(), "unreachable"},
      {"own address", v4("10.1.0.1").udp(1, 2).payload(5).build(), "no_twin"},
      {"IPv4 options", v4("203.0.113.7").options({7, 4, 5, 0}).udp(1, 2).payload(5).build(), "no_twin"},
      {"link-local source", from("169.254.7.7", "203.0.113.7").udp(1, 2).payload(5).build(), "link_local"},
      {"link-local source and options", from("169.254.7.7", "203.0.113.7").options({7, 4, 5, 0}).udp(1, 2).build(),
       "link_local"},
      {"link-local destination by the default route", v4("169.254.9.9").udp(1, 2).payload(5).build(), "link_local"},
      {"link-local neighbour of another link", v4("169.254.2.7").udp(1, 2).payload(5).build(), "link_local"},
      {"link-local source to an own address", from("169.254.7.7", "10.1.0.1").udp(1, 2).payload(5).build(), "no_twin"},
      {"link-local source to a group", from("169.254.7.7", "224.0.0.251").udp(1, 2).payload(5).build(), "no_twin"},
      {"beside link-local", v4("169.253.255.255").udp(1, 2).payload(5).build(), ""},
      {"ARP", PacketBuilder().arp_request("10.1.0.9", "10.1.0.1").build(), "no_twin"},
      {"bad header checksum", v4("203.0.113.7").udp(1, 2).payload(5).ip_checksum(0x1234).build(), "bad_checksum"},
      {"cut in the header", v4("203.0.113.7").udp(1, 2).payload(5).cut_to(30).build(), "frame_too_short"},
      {"IPv6 gateway route", v6("2001:db8:77::1").udp(1, 2).payload(99).build(), ""},
      {"IPv6 default route", v6("2a00::1").tcp(1, 2).payload(1).build(), ""},
      {"IPv6 neighbour on the link", v6("2001:db8:2::7").udp(1, 2).payload(3).build(), "", "02:00:00:00:00:96"},
      {"IPv6 hop limit of one", v6("2001:db8:77::1").ttl(1).udp(1, 2).payload(5).build(), "ttl_expired"},
      {"IPv6 too large", v6("2001:db8:77::1").udp(1, 2).payload(1501 - 48).build(), "too_big"},
      {"IPv6 without neighbour", v6("2001:db8:2::200").udp(1, 2).payload(5).build(), "unresolved"},
  };
}

TEST(Router, PacketsInPacketsOut) {
  expect_cases(cases(), fill);
}

TEST(Router, LeavesFramesForOthersAlone) {
  const Result result = route({v4("203.0.113.7").udp(1, 2).payload(5).build(), v6("2001:db8:77::1").udp(1, 2).build()},
                              "cpu", fill, false);
  EXPECT_TRUE(result.sent.empty());
  EXPECT_EQ(result.stats.total.dropped, 2U);
  EXPECT_EQ(drops_named(result.stats, "other_host"), 2U);
  EXPECT_EQ(result.stats.imbalance(), 0);
}

TEST(Router, EcmpUsesEveryHopByWeightAndKeepsAFlowOnOne) {
  for (const std::string& device : devices()) {
    if (const std::string why = missing(device); !why.empty()) {
      GTEST_SKIP() << "the CPU's part passed; " << why;
    }
    std::vector<Bytes> frames;
    for (unsigned repeat = 0; repeat < 3; ++repeat) {
      for (unsigned flow = 0; flow < 600; ++flow) {
        frames.push_back(v4("203.0.113.7").udp(static_cast<std::uint16_t>(2000 + flow), 53).payload(16).build());
      }
    }
    const Result result = route(frames, device, [](RouteTable& table) {
      add(table, "10.2.0.0/24", "");
      neighbour(table, "10.2.0.2", "02:00:00:00:00:02");
      neighbour(table, "10.2.0.3", "02:00:00:00:00:03");
      Route route;
      route.prefix = *packet::IpPrefix::parse("203.0.113.0/24");
      route.next_hops = {{1, *packet::IpAddress::parse("10.2.0.2"), 1}, {1, *packet::IpAddress::parse("10.2.0.3"), 3}};
      ASSERT_TRUE(table.add_route(route));
    });
    ASSERT_EQ(result.sent.size(), frames.size());
    std::map<unsigned, unsigned> by_flow;
    unsigned second = 0;
    for (const Bytes& frame : result.sent) {
      const unsigned port = static_cast<unsigned>(frame[34] << 8 | frame[35]);
      const unsigned hop = frame[5];
      EXPECT_EQ(by_flow.emplace(port, hop).first->second, hop) << "flow " << port << " moved";
      second += hop == 3;
    }
    EXPECT_NEAR(second, result.sent.size() * 3 / 4, result.sent.size() / 12) << device;
  }
}

TEST(Router, AFreedIdIsUsedAgainInEveryModeOfTheEngine) {
  if (const std::string why = missing("cuda:0"); !why.empty()) {
    GTEST_SKIP() << why;
  }
  for (const engine::Mode mode : {engine::Mode::full, engine::Mode::zero_load, engine::Mode::collector_only}) {
    SCOPED_TRACE(static_cast<int>(mode));
    engine::Options options;
    options.device = "cuda:0";
    options.deadline = std::chrono::milliseconds(20);
    options.batch = 256;
    options.mode = mode;
    options.ports.resize(1);
    options.ports[0].name = "in";
    options.ports[0].device = "replay,frames=1024,rate=1000";
    Router::RouterOptions router_options;
    router_options.max_ipv4 = router_options.max_ipv6 = 10000;
    auto engine = engine::Engine::create(
        options, [&](const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Pipeline>> {
          return alone(std::make_unique<Router>(router_options, ports));
        });
    ASSERT_TRUE(engine) << engine.error().message;
    (*engine)->start();
    auto& router = static_cast<Router&>(*(*engine)->pipeline().elements().front());
    const packet::IpPrefix prefix = *packet::IpPrefix::parse("203.0.113.0/24");
    const auto id_through = [&](const std::string& gateway) {
      const Route route{prefix, RouteKind::unicast, {{0, *packet::IpAddress::parse(gateway), 1}}};
      EXPECT_TRUE(router.table().add_route(route));
      const lookup::NextHopId id = router.fib().find(prefix);
      EXPECT_TRUE(router.table().remove_route(prefix, 0));
      return id;
    };
    const lookup::NextHopId first = id_through("10.0.0.1");
    lookup::NextHopId again = 0;
    for (int gateway = 2; gateway < 60 && again != first; ++gateway) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      again = id_through("10.0.0." + std::to_string(gateway));
    }
    EXPECT_EQ(again, first);
    (*engine)->stop();
  }
}

TEST(RouteTable, MetricsNeighboursAndLateGateways) {
  auto fib = lookup::Fib::create({.name = "metrics", .max_routes4 = 1000, .max_routes6 = 1000});
  ASSERT_TRUE(fib);
  AdjacencyTable adjacencies;
  RouteTable table(**fib, adjacencies, 2);
  const auto kind_of = [&](const char* address) {
    const std::uint32_t key = packet::IpAddress::parse(address)->v4_host_order();
    lookup::NextHopId id = 0;
    (*fib)->lookup4(&key, &id, 1);
    return adjacencies.at(id);
  };
  const auto with_metric = [](const char* gateway, std::uint32_t metric) {
    Route route;
    route.prefix = *packet::IpPrefix::parse("192.0.2.0/24");
    route.metric = metric;
    route.next_hops = {{AdjacencyTable::any_port, *packet::IpAddress::parse(gateway), 1}};
    return route;
  };
  // A gateway whose link nobody has set yet, then its link, then its MAC.
  ASSERT_TRUE(table.add_route(with_metric("10.2.0.2", 20)));
  EXPECT_EQ(kind_of("192.0.2.1").kind(), AdjacencyKind::awaited);
  add(table, "10.2.0.0/24", "");
  neighbour(table, "10.2.0.2", next_mac);
  EXPECT_EQ(kind_of("192.0.2.1").kind(), AdjacencyKind::forward);
  EXPECT_EQ(kind_of("192.0.2.1").port(), 1);
  // A better metric takes over, and gives back.
  ASSERT_TRUE(table.add_route(with_metric("10.2.0.5", 10)));
  EXPECT_EQ(kind_of("192.0.2.1").kind(), AdjacencyKind::awaited);
  ASSERT_TRUE(table.remove_route(*packet::IpPrefix::parse("192.0.2.0/24"), 10));
  EXPECT_EQ(kind_of("192.0.2.1").kind(), AdjacencyKind::forward);
  EXPECT_FALSE(table.remove_route(*packet::IpPrefix::parse("192.0.2.0/24"), 10));
  // An explicit host route hides a neighbour until it goes.
  add(table, "10.2.0.2/32", "", RouteKind::blackhole);
  EXPECT_EQ(kind_of("10.2.0.2").kind(), AdjacencyKind::blackhole);
  ASSERT_TRUE(table.remove_route(*packet::IpPrefix::parse("10.2.0.2/32"), 0));
  EXPECT_EQ(kind_of("10.2.0.2").kind(), AdjacencyKind::forward);
  // The neighbour's loss reaches every route through it at once.
  ASSERT_TRUE(table.remove_neighbour(1, *packet::IpAddress::parse("10.2.0.2")));
  EXPECT_EQ(kind_of("192.0.2.1").kind(), AdjacencyKind::awaited);
  EXPECT_EQ(kind_of("10.2.0.2").kind(), AdjacencyKind::unresolved);
  EXPECT_FALSE(table.remove_neighbour(1, *packet::IpAddress::parse("10.2.0.2")));
  // All ids go back when their last route goes.
  const std::uint32_t used = adjacencies.used();
  ASSERT_TRUE(table.remove_route(*packet::IpPrefix::parse("192.0.2.0/24"), 20));
  EXPECT_EQ(adjacencies.used(), used - 1);
}

// A router between a port that sends without a pause and one that receives, with two of three next hops for everything.
class Running : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
    engine::Options options;
    options.device = GetParam();
    options.deadline = std::chrono::milliseconds(20);
    options.batch = 1024;
    options.cpu_below = 0;
    options.admission = engine::Admit::all;  // however slow the machine
    options.memory.frames = 4096;
    options.ports.resize(2);
    options.ports[0].name = "in";
    options.ports[0].device = "replay,frames=2048,refresh=50";
    options.ports[1].name = "out";
    options.ports[1].device = "replay,frames=2048,rate=1,refresh=50";
    Router::RouterOptions router_options;
    router_options.max_ipv4 = router_options.max_ipv6 = 10000;
    router_options.any_mac = true;
    auto engine = engine::Engine::create(
        options, [&](const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Pipeline>> {
          return alone(std::make_unique<Router>(router_options, ports));
        });
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
    add(table(), "10.2.0.0/24", "");
    for (const char* address : {"10.2.0.2", "10.2.0.3", "10.2.0.4"}) neighbour(table(), address, next_mac);
    send_by("10.2.0.2", "10.2.0.3");
  }
  RouteTable& table() { return engine_->pipeline().first<Routing>()->table(); }
  void send_by(const char* a, const char* b) {
    Route route;
    route.prefix = *packet::IpPrefix::parse("0.0.0.0/0");
    route.next_hops = {{1, *packet::IpAddress::parse(a), 1}, {1, *packet::IpAddress::parse(b), 1}};
    ASSERT_TRUE(table().add_route(route));
  }
  void expect_nothing_lost() {
    // A machine that is busy with something else may be slow to begin.
    for (int wait = 0; wait < 1000 && GetParam() != "cpu" && engine_->stats().total.frames_gpu == 0; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    engine_->stop();
    const auto stats = engine_->stats();
    EXPECT_GT(stats.total.tx_frames, 0u);
    for (packet::Reason reason = 1; reason < packet::reason_count(); ++reason)
      EXPECT_EQ(stats.drops[reason], 0u) << packet::reason_name(reason);
    EXPECT_EQ(stats.total.frames_gpu != 0, GetParam() != "cpu");
  }
  std::unique_ptr<engine::Engine> engine_;
};

// Routes that were there before the first frame: a GPU has them before it takes part.
TEST_P(Running, StartsWithItsRoutes) {
  engine_->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  expect_nothing_lost();
}

// Batches under way, and a GPU whose tables are not up to date yet, name the group of before.
TEST_P(Running, ChangesAGroupWithoutLoss) {
  engine_->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int i = 0; i < 10; ++i) {
    send_by("10.2.0.2", i % 2 != 0 ? "10.2.0.3" : "10.2.0.4");
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  expect_nothing_lost();
}

INSTANTIATE_TEST_SUITE_P(devices, Running, testing::Values("cpu", "cuda:0"), [](const auto& info) {
  return info.param == "cpu" ? std::string("cpu") : std::string("gpu");
});

TEST(RouteTable, RefusesAPortThatIsNotThere) {
  auto fib = lookup::Fib::create({.name = "ports", .max_routes4 = 1000, .max_routes6 = 1000});
  ASSERT_TRUE(fib);
  AdjacencyTable adjacencies;
  RouteTable table(**fib, adjacencies, 2);
  Route route;
  route.prefix = *packet::IpPrefix::parse("192.0.2.0/24");
  route.next_hops = {{7, *packet::IpAddress::parse("10.2.0.2"), 1}};
  const auto added = table.add_route(route);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, "route 192.0.2.0/24: there is no port number 7");
  EXPECT_EQ(adjacencies.used(), 0U);
}

}  // namespace
}  // namespace sluice::function
