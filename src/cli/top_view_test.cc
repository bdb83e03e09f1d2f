#include "cli/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "cli/report.h"
#include "control/sample_snapshot.h"

namespace sluice::cli {
namespace {

using control::Snapshot;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Ports and lanes with names and numbers as long as they get in a year.
Snapshot grown(unsigned ports = 2) {
  Snapshot s = control::sample_snapshot();
  s.uptime_ns = 31'536'000'000'000'000;
  const auto port = s.ports[0];
  const auto lane = s.lanes[0];
  s.ports.assign(ports, port);
  s.lanes.assign(ports, lane);
  for (unsigned i = 0; i < ports; ++i) {
    s.ports[i].name = s.lanes[i].port = "uplink-north-" + std::to_string(10 + i);
    s.ports[i].missed = 987'654'321 + i;
    s.ports[i].rx_frames = 1'000'000'000'000 * (i + 1);
    s.lanes[i].index = i;
    s.lanes[i].misses = 123'456'789 + i;
    s.lanes[i].receive_stalls = 55'555 + i;
  }
  s.drops[0].frames = 9'876'543'210;
  s.jobs.clear();  // as of most chains: each kind takes a line
  return s;
}

std::vector<std::string> lines_of(const std::string& screen) {
  std::vector<std::string> lines;
  std::istringstream in(std::regex_replace(screen, std::regex("\x1b\\[[0-9;]*m"), "") + "\n");
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TopView, NothingIsWiderOrHigherThanTheScreen) {
  for (const bool color : {false, true}) {
    for (const auto& [width, height] : {std::pair(80U, 24U), {132U, 50U}, {40U, 10U}, {20U, 5U}, {1U, 1U}, {80U, 3U}}) {
      for (const char key : std::string("123456h")) {
        TopView view(color);
        view.press(key);
        const Snapshot now = grown(9);
        const auto lines = lines_of(view.draw(now, nullptr, width, height));
        EXPECT_EQ(lines.size(), height) << key << " at " << width << "x" << height;
        for (const std::string& line : lines) EXPECT_LE(line.size(), width) << line;
      }
    }
  }
}

TEST(TopView, ValuesAreWholeAt80Columns) {
  TopView view(false);
  const Snapshot now = grown();
  const std::string overview = view.draw(now, nullptr, 80, 24);
  for (const char* part : {"uplink-north-10", "uplink-north-11", "987654321", "123456789", "9876543210", "p99.9 700 us",
                           "max 1.20 ms", "counters add up"}) {
    EXPECT_THAT(overview, HasSubstr(part)) << overview;
  }
  view.press('3');
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), HasSubstr("\nno space for QUEUE")) << "whole columns, by name";
  EXPECT_THAT(view.draw(now, nullptr, 200, 24), Not(HasSubstr("no space for")));
}

TEST(TopView, KeysChooseWhatIsShown) {
  TopView view(false);
  const Snapshot now = control::sample_snapshot();
  const std::pair<char, const char*> views[] = {{'2', "[ports]"},   {'3', "[lanes]"},  {'4', "[drops]"},
                                                {'5', "[devices]"}, {'6', "[health]"}, {'1', "[overview]"}};
  for (const auto& [key, name] : views) {
    EXPECT_TRUE(view.press(key));
    EXPECT_THAT(view.draw(now, nullptr, 80, 24), HasSubstr("\n" + std::string(name) + "  1-6 view  s sort"));
  }
  EXPECT_TRUE(view.press('\t'));
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), StartsWith("PORT"));
  EXPECT_TRUE(view.press('?'));
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), HasSubstr("p, space   pause"));
  EXPECT_TRUE(view.press('?'));
  EXPECT_FALSE(view.press('x'));
  EXPECT_FALSE(view.paused());
  EXPECT_TRUE(view.press('p'));
  EXPECT_TRUE(view.paused());
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), HasSubstr("[overview] PAUSED"));
}

TEST(TopView, RowsAreSortedByAColumnAndTheOtherWayRound) {
  TopView view(false);
  const Snapshot now = grown(3);
  view.press('2');
  const auto first = [&] { return lines_of(view.draw(now, nullptr, 80, 24))[1]; };
  EXPECT_THAT(first(), StartsWith("uplink-north-10"));
  for (int i = 0; i < 3; ++i) view.press('s');  // PORT, LINK, RX/s
  EXPECT_THAT(lines_of(view.draw(now, nullptr, 80, 24))[0], HasSubstr("RX/s*"));
  EXPECT_THAT(first(), StartsWith("uplink-north-12"));
  view.press('r');
  EXPECT_THAT(first(), StartsWith("uplink-north-10"));
  view.press('r');
  for (int i = 0; i < 3; ++i) view.press('S');
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), Not(HasSubstr("*")));
  EXPECT_FALSE(TopView(false).press('s')) << "of the overview";
}

TEST(TopView, MetricsHaveLinesThatNothingElseNeeds) {
  Snapshot now = control::sample_snapshot();
  now.metrics = {{"probe_seen", "frames that were looked at", 12}, {"probe_idle", "nothing yet", 0}};
  const TopView view(false);
  const std::string high = view.draw(now, nullptr, 80, 60);
  EXPECT_THAT(high, testing::ContainsRegex("\nMETRIC +VALUE +IS\nprobe_seen +12 +frames that were looked at\n"));
  EXPECT_THAT(high, Not(HasSubstr("probe_idle"))) << "0";
  for (unsigned i = 0; i < 20; ++i) now.metrics.push_back({"probe_" + std::to_string(i), "another", 1});
  EXPECT_THAT(view.draw(now, nullptr, 80, 60), testing::ContainsRegex("\n\\.\\.\\. 14 more: sluice ctl stats\n"));
  now.metrics = {{"probe_idle", "nothing yet", 0}};
  EXPECT_THAT(view.draw(now, nullptr, 80, 60), Not(HasSubstr("METRIC")));
}

TEST(TopView, WhatDoesNotFitIsCounted) {
  TopView view(false);
  const Snapshot now = grown(40);
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), testing::ContainsRegex("\\.\\.\\. [0-9]+ more: key 2"));
  view.press('2');
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), testing::ContainsRegex("\n\\.\\.\\. 19 more\n"));
}

TEST(TopView, WhatIsWrongIsRedWhereThereAreColours) {
  Snapshot now = control::sample_snapshot();
  now.conserved = false;
  TopView view(true);
  view.press('6');
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), HasSubstr("\x1b[31mcounters do not add up\x1b[0m"));
  view.press('2');
  EXPECT_THAT(view.draw(now, nullptr, 80, 24), StartsWith("\x1b[1mPORT"));
  TopView plain(false);
  for (const char key : std::string("123456h")) {
    plain.press(key);
    EXPECT_THAT(plain.draw(now, nullptr, 80, 24), Not(HasSubstr("\x1b")));
  }
}

TEST(TopView, AGatewayThatIsGoneIsSaid) {
  const auto lines = lines_of(TopView(false).draw("no answer from 127.0.0.1:9230: is sluice running?", 30, 8));
  EXPECT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0], "no answer from 127.0.0.1:9230:");
}

TEST(Wrap, KeepsFactsWholeWhereItCan) {
  EXPECT_EQ(wrap("a b   c d", 20), (std::vector<std::string>{"a b   c d"}));
  EXPECT_EQ(wrap("one fact   another fact", 12, 2), (std::vector<std::string>{"one fact", "  another", "  fact"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd"}));
  EXPECT_EQ(wrap("", 4), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace sluice::cli
