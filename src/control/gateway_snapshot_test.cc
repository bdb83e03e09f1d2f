#include "control/gateway_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "control/config_json.h"

namespace sluice::control {
namespace {

engine::EngineStats stats_of(std::uint64_t received, std::uint64_t sent) {
  engine::EngineStats stats;
  stats.lanes.resize(2);
  stats.total.rx_frames = received;
  stats.total.tx_frames = sent;
  return stats;
}

TEST(ReadConsistent, ReadsAgainUntilTheCountersAddUp) {
  // The reader was stalled twice, for many bursts.
  const std::vector<engine::EngineStats> reads = {stats_of(90000, 100), stats_of(90000, 91000), stats_of(93000, 92940),
                                                  stats_of(1, 1)};
  std::size_t at = 0;
  engine::EngineStats stats;
  EXPECT_TRUE(read_consistent([&] { return reads.at(at++); }, 32, stats));
  EXPECT_EQ(at, 3U);
  EXPECT_EQ(stats.total.rx_frames, 93000U);
}

TEST(ReadConsistent, FramesThatAreMissingStayMissing) {
  std::size_t reads = 0;
  engine::EngineStats stats;
  const auto lossy = [&] {
    ++reads;
    return stats_of(1065 + reads, 1000 + reads);
  };
  EXPECT_FALSE(read_consistent(lossy, 32, stats));
  EXPECT_GT(reads, 3U);
  EXPECT_LT(reads, 100U);
  // Without slack, as when no lane runs, one frame is enough.
  EXPECT_FALSE(read_consistent([] { return stats_of(2, 1); }, 0, stats));
}

TEST(ListRoutes, MarksNextHopsWithoutALinkAddress) {
  auto fib = lookup::Fib::create({.name = "listed", .max_routes4 = 16, .max_routes6 = 16});
  ASSERT_TRUE(fib) << fib.error().message;
  function::AdjacencyTable adjacencies;
  function::RouteTable table(**fib, adjacencies, 2);
  const auto add = [&](const char* prefix, std::vector<function::NextHop> hops) {
    ASSERT_TRUE(
        table.add_route({*packet::IpPrefix::parse(prefix), function::RouteKind::unicast, std::move(hops), 0, 4}));
  };
  const auto via = [](const char* gateway, function::PortIndex port = function::AdjacencyTable::any_port) {
    return function::NextHop{port, *packet::IpAddress::parse(gateway), 1};
  };
  add("10.2.0.0/24", {{1, {}, 1}});
  add("20.0.0.0/8", {via("10.2.0.2"), via("10.2.0.3", 1)});
  add("30.0.0.0/8", {via("10.9.9.9")});
  const auto listed = [&] {
    const engine::PortTable ports({{"lan", {}}, {"wan", {}}});
    std::string text;
    for (const RouteRow& row : list_routes(table, ports, {}).routes) {
      for (const NextHopRow& hop : row.next_hops) {
        text += hop.gateway + " on " + hop.port + (hop.resolved ? ", " : " unresolved, ");
      }
    }
    return text;
  };
  EXPECT_EQ(listed(), " on wan, 10.2.0.2 on wan unresolved, 10.2.0.3 on wan unresolved, 10.9.9.9 on  unresolved, ");
  ASSERT_TRUE(table.add_neighbour(1, *packet::IpAddress::parse("10.2.0.3"), {{2, 0, 0, 0, 0, 3}}));
  EXPECT_EQ(listed(), " on wan, 10.2.0.2 on wan unresolved, 10.2.0.3 on wan, 10.9.9.9 on  unresolved, ");
  ASSERT_TRUE(table.add_neighbour(1, *packet::IpAddress::parse("10.2.0.2"), {{2, 0, 0, 0, 0, 2}}));
  EXPECT_EQ(listed(), " on wan, 10.2.0.2 on wan, 10.2.0.3 on wan, 10.9.9.9 on  unresolved, ");
}

TEST(NeedsRestart, NamesEachSettingThatOnlyAStartReads) {
  const std::string base = "[engine]\nchain = [\"route\"]\n";
  const std::string port = "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n";
  const Config running = Config::from_text(base + port, "running");
  ASSERT_TRUE(running.ok()) << running.mistakes();
  struct Case {
    std::string text;
    std::string lines;  // what they begin with
  };
  const std::string rest = " while the gateway runs: restart it";
  const std::string change = " cannot change" + rest;
  const std::vector<Case> cases = {
      {base + port, ""},
      {base + port + "[route]\nany_mac = true\n", ""},
      {base + "batch = 512\nmode = \"zero-load\"\n" + port,
       "w:3: [engine] batch" + change + "\nw:4: [engine] mode" + change},
      {base + "stagger = true\n" + port, "w:3: [engine] stagger" + change},
      {base + "busy_cores = \"allow\"\n" + port, "w:3: [engine] busy_cores" + change},
      {base + "[memory]\nframes = 8192\n" + port, "w:4: [memory] frames" + change},
      {base + port + "queues = 2\n", "w:6: [[port]] 'a' queues" + change + "\nw:5: [[port]] 'a' lanes" + change},
      {base + port + "mtu = 1400\ntwin = \"sl-a\"\n",
       "w:6: [[port]] 'a' mtu" + change + "\nw:7: [[port]] 'a' twin" + change},
      {base + port + "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\n", "w:8: [[port]] 'b' cannot be added" + rest},
      {base + port + "[log]\nlevel = \"debug\"\n", "w:7: [log] level" + change},
      {base + port + "[log]\nfile = \"/tmp/x.log\"\n", "w:7: [log] file" + change},
      {base + port + "[log]\nformat = \"json\"\n", "w:7: [log] format" + change},
      {base + port + "[api]\nlisten = \"127.0.0.1:9231\"\n", "w:7: [api] listen" + change},
      {base + port + "[api]\nallow_remote = true\n", "w:7: [api] allow_remote" + change},
      {base + "stagger = false\n" + port, ""},  // which is what "auto" is without srtp
      {"[engine]\nchain = [\"srtp\", \"route\"]\n" + port, "w:2: [engine] chain" + change},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    Config wanted = Config::from_text(one.text, "w");
    ASSERT_TRUE(wanted.ok()) << wanted.mistakes();
    EXPECT_EQ(wanted.placed(needs_restart(running, wanted)), one.lines);
  }
  const Config two = Config::from_text(cases[8].text, "two");
  EXPECT_EQ(needs_restart(two, running), "[[port]] 'b' cannot be taken out" + rest);
}

TEST(NeedsRestart, WithSrtpLanesAreStaggeredUnlessTheFileSaysOtherwise) {
  const auto config = [](const std::string& stagger) {
    return Config::from_text(
        "[engine]\nchain = [\"srtp\", \"route\"]\n" + stagger + "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n",
        "w");
  };
  const Config running = config("");
  EXPECT_EQ(needs_restart(running, config("stagger = \"auto\"\n")), "");
  EXPECT_EQ(needs_restart(running, config("stagger = true\n")), "");
  EXPECT_EQ(needs_restart(running, config("stagger = false\n")),
            "[engine] stagger cannot change while the gateway runs: restart it");
  EXPECT_THAT(config_json(running), testing::HasSubstr("\"stagger\":\"auto\""));
  EXPECT_THAT(config_json(config("stagger = true\n")), testing::HasSubstr("\"stagger\":true"));
  EXPECT_THAT(config_json(config("stagger = false\n")), testing::HasSubstr("\"stagger\":false"));
}

TEST(NeedsRestart, NamesWhatAProfileDecides) {
  const std::string base =
      "[engine]\nchain = [\"srtp\", \"route\"]\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n[profile]\n";
  const std::string file = "file = \"a\"\n";
  const Config running = Config::from_text(base + file, "running", false);
  ASSERT_TRUE(running.ok()) << running.mistakes();
  const std::string change = " cannot change while the gateway runs: restart it";
  const std::pair<std::string, std::string> cases[] = {
      {file, ""},
      {file + "others = \"refuse\"\nstreams = \"admit\"\nbursts = \"report\"\n", ""},
      {"file = \"b\"\n", "[profile] file" + change},
      {file + "others = \"warn\"\n", "[profile] others" + change},
      {file + "streams = \"all\"\n", "[profile] streams" + change},
      {file + "bursts = \"admit\"\n", "[profile] bursts" + change},
  };
  for (const auto& [text, lines] : cases) {
    const Config wanted = Config::from_text(base + text, "w", false);
    ASSERT_TRUE(wanted.ok()) << wanted.mistakes();
    EXPECT_EQ(needs_restart(running, wanted), lines) << text;
  }
}

// As where sluice calibrate has written over it.
TEST(NeedsRestart, NamesAProfileOfOtherMetrics) {
  const auto with = [](std::uint64_t rate) {
    Config config = Config::from_text(
        "[engine]\nchain = [\"srtp\", \"route\"]\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n"
        "[profile]\nfile = \"a.toml\"\n",
        "w", false);
    engine::Profile profile;
    profile.capacities = {{std::chrono::microseconds(0), 0, rate}};
    config.use_profile(profile);
    return config;
  };
  const Config running = with(3'000'000);
  EXPECT_EQ(needs_restart(running, with(3'000'000)), "");
  EXPECT_EQ(needs_restart(running, with(1'500'000)),
            "[profile] file: what a.toml says cannot change while the gateway runs: restart it");
}

}  // namespace
}  // namespace sluice::control
