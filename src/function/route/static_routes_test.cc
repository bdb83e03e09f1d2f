// What a reload makes of a route table, and that a refused one leaves it as it was.
#include "function/route/static_routes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace sluice::function {
namespace {

constexpr unsigned capacity = 100;

class StaticRoutesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fib = lookup::Fib::create({.name = "static", .max_routes4 = capacity, .max_routes6 = capacity});
    ASSERT_TRUE(fib) << fib.error().message;
    fib_ = std::move(*fib);
    table_ = std::make_unique<RouteTable>(*fib_, adjacencies_, 2);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // `count` routes 10.FIRST.0.0/16, ... through `gateway`.
  StaticOptions routes(unsigned first, unsigned count, const std::string& gateway = "192.0.2.1") {
    std::ofstream file(path_);
    for (unsigned i = first; i < first + count; ++i) {
      file << "10." << i << ".0.0/16 " << gateway << "\n";
    }
    StaticOptions options;
    options.table = path_;
    return options;
  }
  // "10.1.0.0/16 192.0.2.1" for each route in force, and "192.0.2.7 MAC" for each neighbour.
  std::set<std::string> in_force() const {
    std::uint64_t matching = 0;
    std::set<std::string> all;
    for (const Route& route : table_->list([](const packet::IpPrefix&) { return true; }, 1000, matching)) {
      all.insert(route.prefix.str() + " " + route.next_hops.at(0).gateway.str());
    }
    for (const NeighbourRow& row : table_->neighbours()) {
      all.insert(row.address.str() + " " + row.mac.str());
    }
    return all;
  }
  Expected<void> apply(const StaticOptions& options, const LoadProgress& progress = {}) {
    const auto read = StaticRoutes::read(options, {});
    if (!read) return tl::unexpected(read.error());
    return statics_.apply(*read, options.neighbours, *table_, progress);
  }

  std::string path_ = testing::TempDir() + "static_routes_" + std::to_string(getpid());
  std::unique_ptr<lookup::Fib> fib_;
  AdjacencyTable adjacencies_;
  std::unique_ptr<RouteTable> table_;
  StaticRoutes statics_;
};

StaticNeighbour neighbour(const char* address, const char* mac) {
  return {1, *packet::IpAddress::parse(address), *packet::MacAddress::parse(mac)};
}

TEST_F(StaticRoutesTest, ATableIsSwappedForOneThatDoesNotFitBesideIt) {
  ASSERT_TRUE(apply(routes(0, 90)));
  const auto swapped = apply(routes(100, 90));
  ASSERT_TRUE(swapped) << swapped.error().message;
  EXPECT_EQ(statics_.size(), 90U);
  EXPECT_EQ(in_force().size(), 90U);
  EXPECT_TRUE(in_force().contains("10.100.0.0/16 192.0.2.1"));
  EXPECT_FALSE(in_force().contains("10.0.0.0/16 192.0.2.1"));
  EXPECT_EQ(adjacencies_.used(), 1U);
}

TEST_F(StaticRoutesTest, ARefusedReloadLeavesEverythingAsItWas) {
  StaticOptions first = routes(0, 90);
  first.neighbours = {neighbour("192.0.2.1", "02:00:00:00:00:01"), neighbour("192.0.2.2", "02:00:00:00:00:02")};
  ASSERT_TRUE(apply(first));
  const auto before = in_force();
  const std::uint32_t used = adjacencies_.used();
  StaticOptions second = routes(80, 120, "192.0.2.9");
  second.neighbours = {neighbour("192.0.2.1", "02:00:00:00:00:99"), neighbour("192.0.2.3", "02:00:00:00:00:03")};
  const auto refused = apply(second);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("raise [route] max_ipv4"), std::string::npos) << refused.error().message;
  EXPECT_EQ(in_force(), before);
  EXPECT_EQ(statics_.size(), 90U);
  EXPECT_EQ(adjacencies_.used(), used);
  // Nothing of the refused one stays behind for the next.
  ASSERT_TRUE(apply(routes(150, 3)));
  EXPECT_EQ(in_force(),
            (std::set<std::string>{"10.150.0.0/16 192.0.2.1", "10.151.0.0/16 192.0.2.1", "10.152.0.0/16 192.0.2.1"}));
}

TEST_F(StaticRoutesTest, ANeighbourThatTheKernelTookBackDoesNotStopAReload) {
  StaticOptions options;
  options.neighbours = {neighbour("192.0.2.1", "02:00:00:00:00:01")};
  ASSERT_TRUE(apply(options));
  ASSERT_TRUE(table_->remove_neighbour(1, options.neighbours[0].address));
  const auto applied = apply({});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(in_force().empty());
}

TEST_F(StaticRoutesTest, EveryNextHopIsOnTheLongestConnectedPrefixWhateverTheOrder) {
  for (const PortIndex longest : {PortIndex{0}, PortIndex{1}}) {  // at start, then by a reload
    StaticOptions options = routes(100 + 50U * longest, 40, "10.0.0.2");
    options.connected = {{longest, *packet::IpPrefix::parse("10.0.0.0/24")},
                         {static_cast<PortIndex>(1 - longest), *packet::IpPrefix::parse("10.0.0.0/8")}};
    ASSERT_TRUE(apply(options));
    std::uint64_t matching = 0;
    std::set<PortIndex> ports;
    for (const Route& route : table_->list([](const packet::IpPrefix& p) { return p.length == 16; }, 100, matching)) {
      ports.insert(route.next_hops.at(0).port);
    }
    EXPECT_EQ(matching, 40U);
    EXPECT_EQ(ports, std::set{longest});
  }
}

TEST_F(StaticRoutesTest, EveryBadNextHopIsNamedWithItsLine) {
  std::ofstream(path_) << "10.0.0.0/8 192.0.2.1\n10.1.0.0/16 gateway\n10.2.0.0/16\n";
  StaticOptions options;
  options.table = path_;
  const auto read = StaticRoutes::read(options, {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            path_ + ":2: next hop 'gateway' is not an IPv4 or IPv6 address; each line is \"prefix gateway\"\n" + path_ +
                ":3: has no gateway; each line is \"prefix gateway\"");
  options.table = "/nowhere/7";
  EXPECT_EQ(StaticRoutes::read(options, {}).error().message, "[route] table: /nowhere/7: No such file or directory");
}

// What follows FILE:2 when that line stands behind "10.0.0.0/8 192.0.2.1"; empty: the file is taken.
class StaticRoutesLine : public StaticRoutesTest {
 protected:
  std::string said_of(const std::string& line) {
    std::ofstream(path_) << "10.0.0.0/8 192.0.2.1\n" << line << "\n";
    StaticOptions options;
    options.table = path_;
    options.connected = {{1, *packet::IpPrefix::parse("192.0.2.0/24")}, {1, *packet::IpPrefix::parse("fe80::/64")}};
    const auto read = StaticRoutes::read(options, {});
    if (read) return "";
    const std::string& said = read.error().message;
    const std::string place = path_ + ":2: ";
    return said.starts_with(place) ? said.substr(place.size()) : said;
  }
};

TEST_F(StaticRoutesLine, ANextHopThatNoRouterHasIsRefused) {
  const std::string give = ": give the address that the next router has on its link";
  const std::pair<const char*, std::string> cases[] = {
      {"10.1.0.0/16 via 192.0.2.1", "'192.0.2.1' is too much; each line is \"prefix gateway\""},
      {"10.1.0.0/16 0.0.0.0", "next hop 0.0.0.0 is the unspecified address" + give},
      {"10.1.0.0/16 127.0.0.1", "next hop 127.0.0.1 is a loopback address" + give},
      {"10.1.0.0/16 224.0.0.5", "next hop 224.0.0.5 is a multicast address" + give},
      {"10.1.0.0/16 255.255.255.255", "next hop 255.255.255.255 is the broadcast address" + give},
      {"2001:db8::/32 ::", "next hop :: is the unspecified address" + give},
      {"2001:db8::/32 ::1", "next hop ::1 is the loopback address" + give},
      {"2001:db8::/32 ff02::5", "next hop ff02::5 is a multicast address" + give},
      {"2001:db8::/32 192.0.2.1",
       "next hop 192.0.2.1 is IPv4 and the prefix is IPv6: give the next router's IPv6 address"},
      {"2001:db8::/32 fe80:0:0:1::1",
       "next hop fe80:0:0:1::1 is a link-local address and no [[route.connected]] prefix says on which link: give a "
       "global address"},
      {"10.1.0.0/16 169.254.0.1", ""},
      {"10.1.0.0/16 223.255.255.254", ""},
      {"10.1.0.0/16 2001:db8::1", ""},  // RFC 8950
      {"2001:db8::/32 fe80::1", ""},    // on the one link that has fe80::/64
  };
  for (const auto& [line, expected] : cases) {
    EXPECT_EQ(said_of(line), expected) << line;
  }
}

TEST(StaticNeighbours, NoNeighbourHasAnAddressOfMany) {
  const std::string give = ": give the address that the neighbour has on its link";
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"10.0.0.1", ""},
      {"fe80::1", ""},
      {"224.0.0.5", "is a multicast address" + give},
      {"ff02::1", "is a multicast address" + give},
      {"255.255.255.255", "is the broadcast address" + give},
      {"127.0.0.1", "is a loopback address" + give},
      {"::", "is the unspecified address" + give},
  };
  for (const auto& [address, expected] : cases) {
    EXPECT_EQ(wrong_neighbour(*packet::IpAddress::parse(address)), expected) << address;
  }
}

TEST(StaticNeighbours, AMacAddressIsOfOneInterface) {
  const std::string give = ": give the one of the neighbour's interface";
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"02:00:00:00:00:01", ""},
      {"00:00:00:00:00:01", ""},
      {"00:00:00:00:00:00", "is no address" + give},
      {"ff:ff:ff:ff:ff:ff", "is the broadcast address" + give},
      {"01:00:5e:00:00:05", "is a multicast address" + give},
      {"33:33:00:00:00:01", "is a multicast address" + give},
  };
  for (const auto& [mac, expected] : cases) {
    EXPECT_EQ(wrong_neighbour(*packet::MacAddress::parse(mac)), expected) << mac;
  }
}

TEST(StaticConnectedPrefix, LiesWhereRoutersHaveAddresses) {
  for (const char* good :
       {"0.0.0.0/0", "::/0", "10.0.0.0/8", "fe80::/64", "169.254.0.0/16", "126.0.0.0/7", "2001::/16", "240.0.0.0/4"}) {
    EXPECT_EQ(wrong_connected(*packet::IpPrefix::parse(good)), "") << good;
  }
  for (const char* bad :
       {"224.0.0.0/4", "127.0.0.0/8", "127.1.0.0/16", "0.0.0.0/32", "ff00::/8", "::1/128", "::/127", "::/128"}) {
    EXPECT_NE(wrong_connected(*packet::IpPrefix::parse(bad)), "") << bad;
  }
  EXPECT_EQ(wrong_connected(*packet::IpPrefix::parse("224.0.0.0/4")),
            "begins with 224.0.0.0, which is a multicast address: give the prefix of a link");
}

TEST(StaticRoutePrefix, HasAddressesThatAreForwardedTo) {
  for (const char* good : {"0.0.0.0/0", "0.0.0.0/1", "::/0", "::/3", "10.0.0.0/8", "128.0.0.0/1", "126.0.0.0/7",
                           "169.0.0.0/8", "169.254.247.0/30", "fe00::/8", "fe80::/9", "64:ff9b::/96", "2001::/16",
                           "0.0.0.0/8", "240.0.0.0/4", "255.255.255.254/32", "::ffff:0:0/96"}) {
    EXPECT_EQ(wrong_route(*packet::IpPrefix::parse(good)), "") << good;
  }
  for (const char* bad : {"224.0.0.0/4", "239.1.2.3/32", "127.0.0.0/8", "0.0.0.0/32", "255.255.255.255/32", "ff00::/8",
                          "ff02::1/128", "fe80::/10", "fe80::/64", "::1/128", "::/127", "::/128"}) {
    EXPECT_NE(wrong_route(*packet::IpPrefix::parse(bad)), "") << bad;
  }
}

TEST_F(StaticRoutesLine, APrefixThatIsNeverForwardedIsRefused) {
  EXPECT_EQ(
      said_of("224.0.0.0/4 192.0.2.1"),
      "224.0.0.0/4 begins with 224.0.0.0, which is a multicast address: nothing is forwarded there, leave the line "
      "out");
  EXPECT_EQ(
      said_of("fe80::/64 2001:db8::1"),
      "fe80::/64 begins with fe80::, which is a link-local address: nothing is forwarded there, leave the line out");
  EXPECT_EQ(said_of("0.0.0.0/0 192.0.2.1"), "");
  EXPECT_EQ(said_of("::/0 2001:db8::1"), "");
}

TEST_F(StaticRoutesLine, APrefixHasOneNextHop) {
  EXPECT_EQ(said_of("10.0.0.0/8 192.0.2.1"), "") << "the same line again does no harm";
  EXPECT_EQ(said_of("10.0.0.0/8 192.0.2.2"),
            "10.0.0.0/8 has another next hop in line 1, 192.0.2.1: keep one, a prefix has one next hop here");
  EXPECT_EQ(said_of("192.0.2.0/24 192.0.2.9"), "192.0.2.0/24 is a [[route.connected]] prefix too: keep one of the two");
}

TEST_F(StaticRoutesTest, PrefixesWithSeveralNextHopsAreCountedAfterTen) {
  std::ofstream file(path_);
  for (int i = 0; i < 14; ++i) file << "10.0.0.0/8 192.0.2." << i + 1 << "\n";
  file.close();
  StaticOptions options;
  options.table = path_;
  const auto read = StaticRoutes::read(options, {});
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.ends_with("\n" + path_ + ":12: and 3 more mistakes from here on"))
      << read.error().message;
}

TEST_F(StaticRoutesTest, LoadingReportsHowFarItIsAndStopsWhenAsked) {
  auto fib = lookup::Fib::create({.name = "large", .max_routes4 = 5000, .max_routes6 = 10});
  ASSERT_TRUE(fib) << fib.error().message;
  RouteTable table(**fib, adjacencies_, 2);
  StaticRoutes::Routes routes;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    routes[packet::IpPrefix::of(packet::IpAddress::v4(0x0a000000 + 256 * i), 24)] = {0, {}, 1};
  }
  std::vector<std::size_t> reported;
  const LoadProgress stop_at_3072 = [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 5000U);
    reported.push_back(done);
    return done < 3072;
  };
  const auto stopped = StaticRoutes().apply(routes, {}, table, stop_at_3072);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "interrupted while routes were loaded");
  EXPECT_EQ(reported, (std::vector<std::size_t>{0, 1024, 2048, 3072}));
  EXPECT_EQ(table.size(4), 3073U) << "nothing is taken back: the table is thrown away";
}

}  // namespace
}  // namespace sluice::function
