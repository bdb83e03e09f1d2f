#include "match/rules/alert_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/rules/rule_set.h"

namespace sluice::match {
namespace {

using testing::HasSubstr;
using Of = Suppression::Of;

TEST(AlertLines, SuppressionsAreOfRulesAndAddresses) {
  const struct {
    const char* text;
    std::uint32_t gid, sid;
    Of of;
    const char* inside;  // an address that is in them
  } cases[] = {
      {"gen_id 1, sig_id 2000001", 1, 2000001, Of::all, nullptr},
      {"sig_id 0,gen_id 3", 3, 0, Of::all, nullptr},
      {"gen_id 0, sig_id 0", 0, 0, Of::all, nullptr},
      {"gen_id 1, sig_id 5, track by_src, ip 192.0.2.9", 1, 5, Of::source, "192.0.2.9"},
      {"gen_id 1,sig_id 5,track by_dst,ip [192.0.2.0/24, !192.0.2.7]", 1, 5, Of::destination, "192.0.2.8"},
      {"gen_id 1, sig_id 5, track by_either, ip $HOME_NET", 1, 5, Of::either, "10.1.2.3"},
      {"gen_id 1, sig_id 5, ip 2001:db8::/32, track by_src", 1, 5, Of::source, "2001:db8::7"},
  };
  Variables variables = Variables::defaults();
  ASSERT_TRUE(variables.set("HOME_NET", "10.0.0.0/8"));
  for (const auto& one : cases) {
    const auto read = read_suppression(one.text, variables);
    ASSERT_TRUE(read) << one.text << ": " << read.error().message;
    EXPECT_EQ(read->gid, one.gid) << one.text;
    EXPECT_EQ(read->sid, one.sid) << one.text;
    EXPECT_EQ(read->of, one.of) << one.text;
    if (one.inside == nullptr) continue;
    EXPECT_TRUE(read->addresses.contains(*packet::IpAddress::parse(one.inside))) << one.text;
    EXPECT_FALSE(read->addresses.contains(*packet::IpAddress::parse("192.0.2.7"))) << one.text;
  }
}

TEST(AlertLines, EventFiltersCountAsAThresholdDoes) {
  const auto limit = read_event_filter("gen_id 1, sig_id 3, type limit, track by_src, count 2, seconds 60");
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_EQ(limit->sid, 3U);
  ASSERT_TRUE(limit->threshold);
  EXPECT_EQ(limit->threshold->type, Threshold::Type::limit);
  EXPECT_EQ(limit->threshold->track, Track::by_src);
  EXPECT_EQ(limit->threshold->count, 2U);
  EXPECT_EQ(limit->threshold->seconds, 60U);
  const auto off = read_event_filter("gen_id 1, sig_id 3, type both, track by_dst, count -1, seconds 60");
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_FALSE(off->threshold);
}

TEST(AlertLines, WhatCannotBeReadIsSaid) {
  const struct {
    bool suppresses;
    const char* text;
    const char* why;
  } cases[] = {
      {true, "", "it needs gen_id and sig_id"},
      {true, "gen_id 1", "it needs gen_id and sig_id"},
      {true, "gen_id 1, sigid 5", "'sigid 5' is no word of it"},
      {true, "gid 1, sig_id 5", "'gid 1' is no word of it"},
      {true, "gen_id 1, sig_id 1, track by_src, address 192.0.2.1", "'address 192.0.2.1' is no word of it"},
      {false, "gen_id 1, sigid 5, type limit, track by_src, count 1, seconds 1", "'sigid 5' is no word of it"},
      {false, "gen_id 1, sig_id 1, type limit, track by_src, counts 1, seconds 1", "'counts 1' is no word of it"},
      {true, "gen_id 1, sig_id x", "sig_id: 'x' is no number from 0 to"},
      {true, "gen_id -1, sig_id 1", "gen_id: '-1' is no number"},
      {true, "gen_id 0, sig_id 1", "gen_id 0 is all rules"},
      {true, "gen_id 1, gen_id 1, sig_id 1", "gen_id is there twice"},
      {true, "gen_id 1, sig_id 1, track by_src", "track and ip go together"},
      {true, "gen_id 1, sig_id 1, ip 192.0.2.1", "track and ip go together"},
      {true, "gen_id 1, sig_id 1, track by_flow, ip 192.0.2.1", "track: 'by_flow' is none of by_src"},
      {true, "gen_id 1, sig_id 1, track by_src, ip 192.0.2.256", "ip: '192.0.2.256'"},
      {true, "gen_id 1, sig_id 1, track by_src, ip $NOBODY", "ip: the variable 'NOBODY' is not set"},
      {true, "gen_id 1, sig_id 1, count 3", "'count 3' is no word of it"},
      {false, "gen_id 1, sig_id 1", "it needs type, track, count and seconds"},
      {false, "gen_id 1, sig_id 1, track by_src, count 1, seconds 1", "needs a type"},
      {false, "gen_id 1, sig_id 1, type limit, track by_src, count 0, seconds 1", "count: '0' is no number from 1"},
      {false, "gen_id 1, sig_id 1, type limit, track by_src, count 1, seconds 1, ip any", "'ip any' is no word of it"},
      {false, "gen_id 1, sig_id 1, type limit, track by_us, count -1, seconds 1", "'track by_us' is not understood"},
  };
  for (const auto& one : cases) {
    const std::string wrong = [&] {
      if (one.suppresses) {
        const auto read = read_suppression(one.text, Variables::defaults());
        return read ? std::string("nothing") : read.error().message;
      }
      const auto read = read_event_filter(one.text);
      return read ? std::string("nothing") : read.error().message;
    }();
    EXPECT_THAT(wrong, HasSubstr(one.why)) << one.text;
  }
}

TEST(AlertLines, FilesOfRulesHaveThemToo) {
  const auto set = read_rules_text(
      "ipvar HOME_NET 10.0.0.0/8\n"
      "suppress gen_id 1, sig_id 1, \\\n  track by_src, ip $HOME_NET\n"
      "event_filter gen_id 1, sig_id 0, type limit, track by_src, count 1, seconds 60\n"
      "threshold gen_id 1, sig_id 2, type both, track by_dst, count 5, seconds 60\n",
      "a.rules");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->ignored, 0U);
  ASSERT_EQ(set->suppressions.size(), 1U);
  ASSERT_EQ(set->event_filters.size(), 2U);
  EXPECT_EQ(set->event_filters[0].line, 4U);
  EXPECT_EQ(set->event_filters[1].threshold->type, Threshold::Type::both);
  const auto wrong = read_rules_text("\nsuppress gen_id 1\n", "a.rules");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "a.rules:2: suppress: it needs gen_id and sig_id");
}

}  // namespace
}  // namespace sluice::match
