// Routes that only Sluice has ([route] table): what it answers, forwards and drops where the kernel would otherwise
// have its say. As a table, on every device (route_trial_test.h).
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "function/route/route_trial_test.h"

namespace sluice::function {
namespace {

// Of the answers.
const Bytes time_exceeded{11, 0, 0, 0, 0, 0}, time_exceeded6{3, 0, 0, 0, 0, 0};
const Bytes too_big{3, 4, 0, 0, 0x05, 0xdc}, too_big6{2, 0, 0, 0, 0x05, 0xdc};

Case answered(const char* name, const PacketBuilder& frame, const Bytes& answer) {
  return {name, frame.build(), "", next_mac, answer};
}

// Through routes that the kernel does not have: 100.64.0.0/24 and 2001:db8:99::/48, whose next hop is known, and
// 100.65.0.0/24 and 2001:db8:98::/48, whose next hop is not.
std::vector<Case> own_cases() {
  const Bytes record_route{7, 7, 4, 0, 0, 0, 0}, padding{1, 4, 0, 0, 0, 0};
  return {
      {"own route", v4("100.64.0.7").udp(1, 2).payload(100).build(), ""},
      answered("own route, TTL of one", v4("100.64.0.7").ttl(1).udp(1, 2).payload(30), time_exceeded),
      answered("own route, TTL of zero, padded", v4("100.64.0.7").ttl(0).udp(1, 2).pad_to(60), time_exceeded),
      answered("own route, TTL of one, large", v4("100.64.0.7").ttl(1).udp(1, 2).payload(1472), time_exceeded),
      answered("own route, TTL of one, too large", v4("100.64.0.7").ttl(1).udp(1, 2).payload(1473), time_exceeded),
      answered("own route, echo with TTL of one", v4("100.64.0.7").ttl(1).icmp(8, 0, 7).payload(5), time_exceeded),
      {"own route, error with TTL of one", v4("100.64.0.7").ttl(1).icmp(11, 0).payload(28).build(), "ttl_expired"},
      {"own route, last fragment with TTL of one",
       v4("100.64.0.7").ttl(1).fragment(1480, false).udp(1, 2).payload(64).build(), "ttl_expired"},
      {"own route, largest", v4("100.64.0.7").dont_fragment().udp(1, 2).payload(1472).build(), ""},
      answered("own route, too large", v4("100.64.0.7").dont_fragment().udp(1, 2).payload(1473), too_big),
      {"own route, too large without DF", v4("100.64.0.7").udp(1, 2).payload(1473).build(), "needs_fragmentation"},
      {"own route, too large an error", v4("100.64.0.7").dont_fragment().icmp(3, 1).payload(1473).build(), "too_big"},
      {"own route, options", v4("100.64.0.7").options(record_route).udp(1, 2).payload(5).build(), ""},
      answered("own route, options, TTL of one", v4("100.64.0.7").ttl(1).options(record_route).udp(1, 2).payload(5),
               time_exceeded),
      {"own route, loose source route", v4("100.64.0.7").options({131, 7, 4, 10, 0, 0, 1}).udp(1, 2).build(),
       "source_route"},
      {"own route, options, broadcast frame",
       v4("100.64.0.7").eth(host_mac, "ff:ff:ff:ff:ff:ff").options(record_route).udp(1, 2).build(), "no_twin"},
      {"own route, options from a link-local address",
       from("169.254.7.7", "100.64.0.7").options(record_route).udp(1, 2).build(), "link_local"},
      {"own route, unresolved", v4("100.65.0.7").udp(1, 2).payload(5).build(), "unresolved"},
      answered("own route, unresolved, TTL of one", v4("100.65.0.7").ttl(1).udp(1, 2).payload(5), time_exceeded),
      {"own route, options, unresolved", v4("100.65.0.7").options(record_route).udp(1, 2).build(), "unresolved"},
      {"IPv6 own route", v6("2001:db8:99::1").udp(1, 2).payload(100).build(), ""},
      answered("IPv6 own route, hop limit of one", v6("2001:db8:99::1").ttl(1).udp(1, 2).payload(5), time_exceeded6),
      {"IPv6 own route, error with hop limit of one", v6("2001:db8:99::1").ttl(1).icmp6(1, 0).payload(48).build(),
       "ttl_expired"},
      answered("IPv6 own route, too large", v6("2001:db8:99::1").udp(1, 2).payload(1453), too_big6),
      {"IPv6 own route, hop-by-hop options", v6("2001:db8:99::1").extension(0, padding).udp(1, 2).build(), ""},
      {"IPv6 hop-by-hop options", v6("2001:db8:77::1").extension(0, padding).udp(1, 2).build(), "no_twin"},
      answered("IPv6 own route, hop-by-hop options, hop limit of one",
               v6("2001:db8:99::1").ttl(1).extension(0, padding).udp(1, 2), time_exceeded6),
      {"IPv6 own route, unresolved", v6("2001:db8:98::1").udp(1, 2).build(), "unresolved"},
      answered("IPv6 own route, unresolved, hop limit of one", v6("2001:db8:98::1").ttl(1).udp(1, 2), time_exceeded6),
  };
}

void add_own(RouteTable& table, const char* prefix, const char* gateway) {
  ASSERT_TRUE(table.add_route({*packet::IpPrefix::parse(prefix),
                               RouteKind::unicast,
                               {{AdjacencyTable::any_port, *packet::IpAddress::parse(gateway), 1}},
                               static_metric}));
}

void fill_own(RouteTable& table) {
  add_own(table, "100.64.0.0/24", "10.2.0.2");
  add_own(table, "100.65.0.0/24", "10.2.0.98");
  add_own(table, "2001:db8:99::/48", "2001:db8:2::2");
  add_own(table, "2001:db8:98::/48", "2001:db8:2::98");
}

void set_sources(RouteTable& table) {
  table.set_source(0, 4, *packet::IpAddress::parse("10.1.0.1"));
  table.set_source(std::nullopt, 6, *packet::IpAddress::parse("2001:db8:1::1"));
}

void fill_all(RouteTable& table) {
  fill(table);
  fill_own(table);
  set_sources(table);
}

TEST(OwnRoutes, PacketsInPacketsOut) {
  expect_cases(own_cases(), fill_all);
}

TEST(OwnRoutes, SendsNoErrorWithoutAnAddress) {
  const std::vector<Bytes> frames{v4("100.64.0.7").ttl(1).udp(1, 2).build(),
                                  v6("2001:db8:99::1").ttl(1).udp(1, 2).build()};
  const Result result = route(frames, "cpu", [](RouteTable& table) {
    fill_all(table);
    table.set_source(0, 4, {});
  });
  EXPECT_EQ(drops_named(result.stats, "ttl_expired"), 1U);
  EXPECT_EQ(result.sent_back.size(), 1U);
  EXPECT_EQ(result.stats.imbalance(), 0);
}

// A burst of a hundred, and one more for each millisecond that the rest takes.
TEST(OwnRoutes, SendsErrorsAtABoundedRate) {
  const std::vector<Bytes> frames(1500, v4("100.64.0.7").ttl(1).udp(1, 2).payload(30).build());
  const auto begin = std::chrono::steady_clock::now();
  const Result result = route(frames, "cpu", fill_all);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  EXPECT_GE(result.sent_back.size(), 100U);
  EXPECT_LE(result.sent_back.size(), 101U + static_cast<std::uint64_t>(ms.count()));
  EXPECT_LT(result.sent_back.size(), frames.size());
  EXPECT_EQ(result.sent_back.size() + drops_named(result.stats, "icmp_error_limit"), frames.size());
  EXPECT_EQ(result.stats.imbalance(), 0);
}

}  // namespace
}  // namespace sluice::function
