// The rows that benches append, and the results that are published in them.
#include "cli/bench/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/bench/spread.h"

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
  outcome.misses_away = 5;
  Yardsticks yardsticks;
  yardsticks.share = 0.5;
  yardsticks.goal = 0.9;
  ASSERT_TRUE(check_csv(options_.csv));
  append_csv(options_, "echo", "64 1 ms held", outcome, yardsticks);
  append_csv(options_, "route", "cpu", outcome, {});
  const std::vector<std::string> lines = lines_of(options_.csv);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], csv_header());
  EXPECT_EQ(lines[1], "echo,64 1 ms held,1.500,2.000,0.5000,1.2,,,,7,0,3000000,0.90,,,,,,5");
  EXPECT_EQ(lines[2], "route,cpu,1.500,2.000,,1.2,,,,7,0,3000000,,,,,,,5");
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(lines[0].begin(), lines[0].end(), ',')) << line;
  }
  EXPECT_TRUE(check_csv(options_.csv));
}

TEST_F(Csv, AFileOfOtherRowsIsRefusedBeforeAnythingIsMeasured) {
  std::ofstream(options_.csv) << "seconds,resident\n1,2\n";
  const auto refused = check_csv(options_.csv);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("name another file"));
  EXPECT_EQ(lines_of(options_.csv).size(), 2U);
  EXPECT_FALSE(check_csv(testing::TempDir() + "no-such-folder/rows.csv"));
}

TEST(PublishedResults, HaveTheColumnsThatBenchesWrite) {
  unsigned files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("docs/results")) {
    const std::vector<std::string> lines =
        entry.path().extension() == ".csv" ? lines_of(entry.path()) : std::vector<std::string>{};
    if (lines.empty() || lines[0].rfind("seconds,", 0) == 0) {
      continue;  // another kind of file, or a soak's series
    }
    ++files;
    for (const std::string& line : lines) {
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(lines[0].begin(), lines[0].end(), ',')) << line;
    }
    EXPECT_EQ(lines[0], csv_header()) << entry.path();
  }
  EXPECT_GE(files, 1U);
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
