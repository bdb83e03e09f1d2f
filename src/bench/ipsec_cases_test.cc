// Which rows the command line asks for, and what they are judged by.
#include "bench/ipsec_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;

BenchOptions asked(const char* only, const char* algorithms, const char* sizes, const char* sas) {
  BenchOptions options;
  options.only = only;
  options.algorithms = algorithms;
  options.sizes = sizes;
  options.sas = sas;
  return options;
}

TEST(IpsecCases, ListsAreCombined) {
  const auto all = ipsec_cases(asked("in", "mixed,ah-sha1", "64,imix", "1,10"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->directions, std::vector{Direction::in});
  std::vector<std::string> rows;
  for (const IpsecCase& one : all->cases) rows.push_back(traffic_text(one.traffic));
  EXPECT_EQ(rows, (std::vector<std::string>{"mixed 64 1 SA", "mixed 64 10 SAs", "mixed imix 1 SA", "mixed imix 10 SAs",
                                            "ah-sha1 64 1 SA", "ah-sha1 64 10 SAs", "ah-sha1 imix 1 SA",
                                            "ah-sha1 imix 10 SAs"}));
  const auto one = ipsec_cases(asked("", "", "uniform", ""));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->directions.size(), 2U);
  ASSERT_EQ(one->cases.size(), 1U);
  EXPECT_EQ(traffic_text(one->cases[0].traffic), "aes128-sha1 uniform 1000 SAs");
}

TEST(IpsecCases, ItsOwnRowsAreThereOnceAndCanAllBeMade) {
  const auto all = ipsec_cases({});
  ASSERT_TRUE(all);
  std::set<std::string> rows;
  for (const IpsecCase& one : all->cases) {
    EXPECT_TRUE(rows.insert(traffic_text(one.traffic)).second) << traffic_text(one.traffic);
    EXPECT_TRUE(IpsecTunnels::make(one.traffic.algorithm, one.traffic.tunnels)) << one.traffic.algorithm;
    const auto again = ipsec_cases(asked("", one.traffic.algorithm.c_str(), one.traffic.mix.c_str(), ""));
    EXPECT_TRUE(again) << one.traffic.mix;
  }
}

TEST(IpsecCases, WhatIsNotThereIsNamed) {
  const struct {
    BenchOptions options;
    const char* message;
  } cases[] = {
      {asked("both", "", "", ""), "--only both: there are out and in"},
      {asked("", "aes128-md5", "", ""),
       "--algorithms aes128-md5: there is no algorithm 'aes128-md5': there are mixed,"},
      {asked("", "", "63", ""), "--sizes 63: '63' is not a frame mix"},
      {asked("", "", "64,1519", ""), "--sizes 1519: frames of up to 1518 bytes are possible"},
      {asked("", "", "", "0"), "--sas 0: from 1 to "},
      {asked("", "", "", "10K"), "--sas 10K: from 1 to "},
  };
  for (const auto& one : cases) {
    const auto all = ipsec_cases(one.options);
    ASSERT_FALSE(all) << one.message;
    EXPECT_TRUE(all.error().message.starts_with(one.message)) << all.error().message;
  }
}

// The status of goals by these Gbit/s; of 1000 tunnels' 1408 B 40 % of the ceiling.
int judged(const std::vector<std::pair<IpsecTraffic, double>>& results, double srtp_share) {
  IpsecResults all;
  for (const auto& [traffic, gbits] : results) all.add(Direction::out, traffic, {gbits / 250, gbits});
  Goals goals("ipsec", true);
  all.judge(goals, srtp_share);
  return goals.status();
}

TEST(IpsecResults, AreJudgedByEachOther) {
  const IpsecTraffic usual, mixed{"mixed", "1408", 1000}, alone{"aes128-sha1", "1408", 1},
      many{"aes128-sha1", "1408", 100'000}, random{"aes128-sha1", "uniform", 1000}, mean{"aes128-sha1", "791", 1000},
      imix{"aes128-sha1", "imix", 1000};
  EXPECT_EQ(judged({}, 0.8), 0) << "what was not measured is not judged";
  EXPECT_EQ(judged({{usual, 100}}, 0.4), 0);
  EXPECT_EQ(judged({{usual, 100}}, 0.41), 1);
  EXPECT_EQ(judged({{usual, 100}}, 0), 0) << "SRTP was not measured";
  EXPECT_EQ(judged({{usual, 100}, {mixed, 90}}, 0), 0);
  EXPECT_EQ(judged({{usual, 100}, {mixed, 89}}, 0), 1);
  EXPECT_EQ(judged({{mean, 100}, {random, 85}}, 0), 0);
  EXPECT_EQ(judged({{mean, 100}, {random, 84}}, 0), 1);
  EXPECT_EQ(judged({{usual, 100}, {alone, 90}, {many, 81}}, 0), 0);
  EXPECT_EQ(judged({{usual, 100}, {alone, 90}, {many, 80}}, 0), 1);
  EXPECT_EQ(judged({{usual, 100}, {alone, 89}}, 0), 1);
  EXPECT_EQ(judged({{imix, 125}}, 0), 0);
  EXPECT_EQ(judged({{imix, 124}}, 0), 1);
}

}  // namespace
}  // namespace sluice::cli::bench
