#include "cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/text.h"
#include "control/sample_snapshot.h"

namespace sluice::cli {
namespace {

using control::Snapshot;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Text, ShortNumbersHaveThreeDigits) {
  const std::pair<double, const char*> cases[] = {{0, "0"},           {7, "7"},           {999.4, "999"},
                                                  {999.6, "1.00 k"},  {1234, "1.23 k"},   {12345, "12.3 k"},
                                                  {123456, "123 k"},  {999600, "1.00 M"}, {9.996e6, "10.0 M"},
                                                  {4.5e10, "45.0 G"}, {1e16, "10.0 P"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(short_number(value), text) << value;
}

TEST(Text, DurationsAndClocks) {
  EXPECT_EQ(short_duration(0), "0 us");
  EXPECT_EQ(short_duration(12345), "12.3 us");
  EXPECT_EQ(short_duration(999'600), "1.00 ms");
  EXPECT_EQ(short_duration(1'500'000), "1.50 ms");
  EXPECT_EQ(short_duration(2'000'000'000), "2.00 s");
  EXPECT_EQ(clock_text(59), "00:00:59");
  EXPECT_EQ(clock_text(90061), "1d 01:01:01");
}

TEST(Text, TablesAlignTheirColumns) {
  Table table({"NAME", ">COUNT", "WHY"});
  EXPECT_TRUE(table.empty());
  table.add({"a", "5", "short"});
  table.add({"longer", "12345678", ""});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.str(),
            "NAME       COUNT  WHY\n"
            "a              5  short\n"
            "longer  12345678\n");
  EXPECT_THAT(table.str(true), testing::StartsWith("\x1b[1mNAME       COUNT  WHY\x1b[0m\n"));
}

TEST(StatsReport, SaysWhatCounts) {
  const std::string report = stats_report(control::sample_snapshot());
  for (const char* part :
       {"sluice 0.1.0, route (full) on auto, up 01:02:03",
        "received     3000 frames, 192000 bytes",
        "transmitted  2900 frames, 185600 bytes",
        "\n  tx_errors                         6  transmitted frames that the driver of port left took and failed to "
        "send\n",
        "20 punted, 10 injected",
        "3 emitted, 2 cloned, 5 consumed",
        "\n  to_host_lost                      3  punted frames of port left that its twin did not take\n",
        "\n  from_host_lost                    2  frames of the host that port left did not take\n",
        "\n  to_host_lost                      1  punted frames of port right",
        "no_route",
        "no route matches",
        "8  frames that port left had no capacity for",
        "p50 150 us, p90 250 us, p99 400 us, p99.9 700 us, max 1.20 ms",
        "1.00 ms, missed by 4 of 2900 frames (3 by no more than threads were kept from running); bound 910 us "
        "(but for late cycles and overruns), cycle 300 us",
        "lanes 5 times, 900 us together, 400 us at most",
        "12, 1 late, 3 overruns",
        "cpu (8 cores) up: 30 batches, 600 frames, 20 of them rescued",
        "cuda:0 (NVIDIA \"H200\") down",
        "helper       core 5: 900 jobs of 40 parts of batches, 3.00 s busy\n",
        "helpers 2 times, 140 us together, 80.0 us at most",
        "jobs         crypto: 1000 submitted, 900 completed (7 late), 51 refused (30 full, 20 too late), 7 failed (5 "
        "expired), 42 in flight; 700 by GPUs, 200 by cores\n",
        "600000 IPv4, 200000 IPv6, 12 neighbours",
        "balance      counters add up: received + injected + emitted + cloned = "}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
  Snapshot on_cpu = control::sample_snapshot();
  on_cpu.cycle_ns = 0;
  on_cpu.bound_ns = 300'000;
  EXPECT_THAT(stats_report(on_cpu), HasSubstr("; estimate 300 us (of an idle core, no bound)\n"));
  EXPECT_THAT(report, HasSubstr("\ndropped      85\n  no_route"));
  EXPECT_THAT(report, testing::ContainsRegex("\n  ttl_expired [^\n]*\nin flight    5\n"));
  Snapshot wrong = control::sample_snapshot();
  wrong.conserved = false;
  EXPECT_THAT(stats_report(wrong), HasSubstr("COUNTERS DO NOT ADD UP"));
}

TEST(Reports, SayWhyTheGatewayIsDegraded) {
  Snapshot s = control::sample_snapshot();
  s.devices[1].state = "up";
  s.ports[1].link_up = true;
  s.ports[0].twin_unaddressed = false;
  s.output_troubles.clear();
  s.forwarding_off.clear();
  s.function_troubles.clear();
  EXPECT_THAT(stats_report(s), Not(HasSubstr("degraded")));
  EXPECT_THAT(top_report(s, nullptr), Not(HasSubstr("degraded")));
  s.ports[0].twin_down = true;
  s.forwarding_off = "IPv6 forwarding is off (sysctl -w x=1)";
  const std::string why =
      "port left: its twin twin0 is down (ip link set twin0 up), kernel: IPv6 forwarding is off (sysctl -w x=1)\n";
  EXPECT_THAT(stats_report(s), HasSubstr("\ndegraded     " + why));
  EXPECT_THAT(top_report(s, nullptr), HasSubstr("\ndegraded: " + why));
}

TEST(PortsReport, IsATable) {
  const std::string report = ports_report(control::sample_snapshot().ports);
  EXPECT_THAT(
      report,
      HasSubstr("left   up    twin0  02:00:00:00:00:01  1500       1000       2000       8      15  net_af_packet0"));
  EXPECT_THAT(report, HasSubstr("right  down  -"));
  std::vector<control::PortSnapshot> gone = control::sample_snapshot().ports;
  gone[0].interface_deleted = gone[0].twin_deleted = true;
  EXPECT_THAT(ports_report(gone), HasSubstr("left   deleted  twin0 (deleted)  02:00"));
  std::vector<control::PortSnapshot> down = control::sample_snapshot().ports;
  down[0].twin_down = true;
  EXPECT_THAT(ports_report(down), HasSubstr("left   up    twin0 (down)  02:00"));
}

TEST(RoutesReport, ShowsNextHopsAndWhatIsLeftOut) {
  const control::RouteTable table{{{"10.0.0.0/8", "unicast", {{"left", "10.1.1.1", 2}, {"right", "", 1}}, 20, "bgp"},
                                   {"192.0.2.0/24", "blackhole", {}, 0, "static"},
                                   {"192.0.3.0/24", "unicast", {{"left", "", 1}}, 2147483648, "static"},
                                   {"192.0.4.0/24", "unicast", {{"", "10.9.9.9", 1, false}}, 2147483648, "static"},
                                   {"192.0.5.0/24", "unicast", {{"left", "10.1.1.3", 1, false}}, 0, "static"}},
                                  7};
  EXPECT_EQ(routes_report(table),
            "PREFIX        KIND       NEXT HOP                                          METRIC  PROTOCOL\n"
            "10.0.0.0/8    unicast    10.1.1.1 on left (weight 2), on right (weight 1)      20  bgp\n"
            "192.0.2.0/24  blackhole  -                                                      0  static\n"
            "192.0.3.0/24  unicast    on left                                           static  static\n"
            "192.0.4.0/24  unicast    10.9.9.9 (gateway not on-link)                    static  static\n"
            "192.0.5.0/24  unicast    10.1.1.3 on left (no link address)                     0  static\n"
            "5 of 7 routes; --limit for more\n");
}

TEST(NeighboursReport, IsATable) {
  EXPECT_EQ(neighbours_report({{"left", "10.1.1.1", "02:00:00:00:00:09"}}),
            "ADDRESS   MAC                PORT\n10.1.1.1  02:00:00:00:00:09  left\n");
}

// Two seconds after `before`, with known changes.
Snapshot later(const Snapshot& before) {
  Snapshot now = before;
  now.uptime_ns += 2'000'000'000;
  now.lanes[0].rx_frames += 4'000'000;
  now.lanes[0].rx_bytes += 4'000'000'000;
  now.lanes[0].batches += 2000;
  now.lanes[0].misses += 200;
  now.lanes[0].collecting_ns += 300'000'000;
  now.lanes[0].forwarding_ns += 500'000'000;
  now.ports[1].tx_frames += 3000;
  now.drops = {{"bad_checksum", "the checksum is wrong", 50}, {"no_route", "no route matches", 100}};
  now.latency.frames += 100;
  now.latency.buckets[2].frames += 98;  // 98 of the last 100 within 500 us
  now.latency.buckets[3].frames += 99;
  now.latency.buckets[4].frames += 100;
  return now;
}

TEST(TopReport, ShowsRatesBetweenSnapshots) {
  const Snapshot before = control::sample_snapshot();
  const Snapshot now = later(before);
  const std::string report = top_report(now, &before);
  for (const char* part :
       {"rx 2.00 M frames/s, 16.0 Gbit/s", "latency now   p50 < 500 us   p99 < 1.00 ms", "missed deadlines 204 (100/s)",
        "counters add up", "\ndeadline 1.00 ms  bound 910 us (but for late cycles and overruns)  cycle 300 us\n",
        "1.00 k        2.00 k  40 %       200"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
  EXPECT_THAT(report, testing::ContainsRegex("bad_checksum +25 +50 +the checksum is wrong"));
  EXPECT_THAT(report, testing::ContainsRegex("no_route +10 +100 +no route matches"));
  EXPECT_THAT(report, testing::ContainsRegex("right +down +0 +0 +1.50 k +0"));
  EXPECT_THAT(report, Not(HasSubstr("\x1b")));
}

TEST(TopReport, ShowsMetricsThatAreNot0) {
  Snapshot now = control::sample_snapshot();
  now.metrics = {{"probe_seen", "frames that were looked at", 12}, {"probe_idle", "nothing yet", 0}};
  const std::string report = top_report(now, nullptr);
  EXPECT_THAT(report, HasSubstr("\nMETRIC      VALUE  IS\nprobe_seen     12  frames that were looked at\n"));
  EXPECT_THAT(report, Not(HasSubstr("probe_idle")));
}

TEST(TopReport, HasALineForEachKindOfJobs) {
  const Snapshot before = control::sample_snapshot();
  Snapshot now = before;
  now.uptime_ns += 2'000'000'000;
  now.jobs[0].completed += 5'000;
  EXPECT_THAT(top_report(now, &before),
              HasSubstr("\njobs crypto 2.50 k/s done   7 late   51 refused   7 failed   in flight 42\n"));
  now.jobs.clear();
  EXPECT_THAT(top_report(now, nullptr), Not(HasSubstr("jobs")));
}

TEST(TopReport, FirstReportIsTheMeanSinceStart) {
  Snapshot now = control::sample_snapshot();
  now.uptime_ns = 1'000'000'000;
  EXPECT_THAT(top_report(now, nullptr), HasSubstr("rx 3.00 k frames/s, 1.54 Mbit/s"));
}

TEST(TopReport, ARestartIsNoNegativeRate) {
  Snapshot before = later(control::sample_snapshot());
  Snapshot restarted = control::sample_snapshot();
  restarted.uptime_ns = 1'000'000'000;
  EXPECT_THAT(top_report(restarted, &before), HasSubstr("rx 3.00 k frames/s"));
  before.lanes.pop_back();
  EXPECT_THAT(top_report(restarted, &before), HasSubstr("rx 3.00 k frames/s"));
}

TEST(TopReport, AnEmptyGatewayIsShownToo) {
  const std::string report = top_report(Snapshot(), nullptr);
  EXPECT_THAT(report, HasSubstr("rx 0 frames/s, 0 bit/s"));
  EXPECT_THAT(report, HasSubstr("latency now   p50 -   p99 -"));
  EXPECT_THAT(report, EndsWith("\nnothing dropped\n"));
}

TEST(TopReport, WhatPortsMissedIsSaidWhereNothingIsDropped) {
  Snapshot now;
  now.ports.resize(2);
  now.ports[0].missed = 7865;
  now.ports[1].missed = 2618;
  EXPECT_THAT(top_report(now, nullptr), EndsWith("\nnothing dropped; 10,483 missed by ports\n"));
  now.drops.push_back({"no_route", "no route matches", 5});
  EXPECT_THAT(top_report(now, nullptr), Not(HasSubstr("nothing dropped")));
}

}  // namespace
}  // namespace sluice::cli
