// The rows that benches append.
#include "bench/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/link_rows.h"
#include "bench/spread.h"

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

class Csv : public testing::Test {
 protected:
  void SetUp() override { options_.csv = testing::TempDir() + "sluice_csv_" + std::to_string(getpid()) + ".csv"; }
  void TearDown() override { unlink(options_.csv.c_str()); }
  BenchOptions options_;
};

TEST_F(Csv, RowsHaveAFieldForEachColumnAndNoneForWhatThereIsNot) {
  Outcome outcome;
  outcome.seconds = 2;
  outcome.frames = 3'000'000;
  outcome.bytes = 4'000'000'000;
  outcome.p50_us = 1.25;
  outcome.deadline_misses = 7;
  outcome.misses_stalled = 5;
  outcome.refused = 4;
  outcome.device_max_us = 987.25;
  outcome.dropped = 6;
  Yardsticks yardsticks;
  yardsticks.share = 0.5;
  yardsticks.goal = 0.9;
  yardsticks.setting = "2 lanes";
  ASSERT_TRUE(check_csv(options_.csv));
  append_csv(options_, "echo", "64 1 ms held", outcome, yardsticks);
  outcome.rounds = 5;
  outcome.mpps_low = 1.25;
  outcome.mpps_high = 1.75;
  append_csv(options_, "route", "cpu", outcome, {});
  const std::vector<std::string> lines = lines_of(options_.csv);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], csv_header());
  EXPECT_EQ(lines[1], "echo,64 1 ms held,1.500,2.000,0.5000,1.2,,,,7,0,3000000,0.90,,,,,,5,4,2 lanes,987.2,6,,,");
  EXPECT_EQ(lines[2], "route,cpu,1.500,2.000,,1.2,,,,7,0,3000000,,,,,,,5,4,,987.2,6,5,1.250,1.750");
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(lines[0].begin(), lines[0].end(), ',')) << line;
  }
  EXPECT_TRUE(check_csv(options_.csv));
}

TEST_F(Csv, TheLinksCeilingsAreRowsOfRatesAndTimes) {
  device::LinkCeilings ceilings;
  ceilings.large = {55.5, 55.4, 50.9};
  ceilings.reads = {{608, 49.3, 0, 20.5}};
  ceilings.launch_median_us = 7.7;
  ceilings.launch_p99_us = 9.1;
  for (const auto& [label, outcome] : link_rows(ceilings)) {
    append_csv(options_, "link", label, outcome, {});
  }
  const std::vector<std::string> lines = lines_of(options_.csv);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(lines[1], "link,copy engine up,0.000,55.500,,,,,,0,0,0,,,,,,,0,0,,,0,,,");
  EXPECT_EQ(lines[5], "link,kernel reads 608 B shuffled,0.000,20.500,,,,,,0,0,0,,,,,,,0,0,,,0,,,");
  EXPECT_EQ(lines[6], "link,launch and synchronise,0.000,0.000,,7.7,9.1,,,0,0,0,,,,,,,0,0,,,0,,,");
}

TEST_F(Csv, CommasInWordsAreNoFields) {
  const std::string line = csv_line("fused", "acl, route", {}, {.setting = "8 streams, alone"});
  EXPECT_EQ(line.rfind("fused,acl; route,", 0), 0U) << line;
  EXPECT_THAT(line, testing::EndsWith(",8 streams; alone,,0,,,"));
  const std::string header = csv_header();
  EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(header.begin(), header.end(), ','));
}

TEST_F(Csv, RowsOfOrderHaveAFileOfTheirOwn) {
  ASSERT_TRUE(append_line(options_.csv, order_csv_header(), "tickets"));
  EXPECT_TRUE(check_csv(options_.csv, order_csv_header()));
  EXPECT_FALSE(check_csv(options_.csv));
  EXPECT_FALSE(append_line(testing::TempDir() + "no-such-folder/rows.csv", order_csv_header(), ""));
}

TEST_F(Csv, AFileOfOtherRowsIsRefusedBeforeAnythingIsMeasured) {
  std::ofstream(options_.csv) << "seconds,resident\n1,2\n";
  const auto refused = check_csv(options_.csv);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("name another file"));
  EXPECT_EQ(lines_of(options_.csv).size(), 2U);
  EXPECT_FALSE(check_csv(testing::TempDir() + "no-such-folder/rows.csv"));
}

TEST(SpreadOf, IsTheMedianWithTheLeastAndTheMost) {
  const Spread odd = spread_of({5, 1, 9});
  EXPECT_EQ(odd.median, 5);
  EXPECT_EQ(odd.low, 1);
  EXPECT_EQ(odd.high, 9);
  EXPECT_EQ(odd.at, 0U);
  EXPECT_EQ(spread_of({4, 2, 3, 1}).median, 2);
  EXPECT_EQ(spread_of({7}).high, 7);
}

}  // namespace
}  // namespace sluice::cli::bench
