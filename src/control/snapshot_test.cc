#include "control/snapshot.h"

#include <gtest/gtest.h>

#include "control/sample_snapshot.h"
#include "control/snapshot_json.h"

namespace sluice::control {
namespace {

TEST(SnapshotJson, ReadsBackWhatItWrote) {
  const std::string text = to_json_text(sample_snapshot());
  const auto back = from_json_text<Snapshot>(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json_text(*back), text);
  EXPECT_EQ(back->lanes[0].misses, 4U);
  EXPECT_EQ(back->lanes[1].core, -1);
  EXPECT_EQ(back->ports[1].link_up, false);
  EXPECT_EQ(back->latency.buckets[1].frames, 2000U);
  EXPECT_EQ(back->devices[1].text, "NVIDIA \"H200\"");
}

// A member that the JSON forgets would read back as its default and go unnoticed above.
TEST(SnapshotJson, HasEveryMember) {
  const auto json = nlohmann::json::parse(to_json_text(sample_snapshot()));
  EXPECT_EQ(json.size(), 35U);
  EXPECT_EQ(json["lanes"][0].size(), 28U);
  EXPECT_EQ(json["ports"][0].size(), 30U);
  EXPECT_EQ(json["devices"][0].size(), 12U);
  EXPECT_EQ(json["helpers"][0].size(), 4U);
  EXPECT_EQ(json["jobs"][0].size(), 16U);
  EXPECT_EQ(json["stalls"][0].size(), 4U);
  EXPECT_EQ(json["latency"].size(), 8U);
  EXPECT_EQ(json["drops"][0], (nlohmann::json{{"reason", "no_route"}, {"text", "no route matches"}, {"frames", 80}}));
  EXPECT_EQ(json["metrics"][1],
            (nlohmann::json{
                {"name", "inspect_flows"}, {"text", "conversations under way"}, {"value", 5}, {"counts", false}}));
  EXPECT_EQ(json["icmp_errors"][1], (nlohmann::json{{"reason", "too_big"}, {"frames", 2}}));
}

TEST(SnapshotJson, RoutesReadBackToo) {
  const RouteTable table{{{"10.0.0.0/8", "unicast", {{"left", "10.1.1.1", 2, false}, {"right", "", 1}}, 20, "bgp"}}, 7};
  const auto back = from_json_text<RouteTable>(to_json_text(table));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json_text(*back), to_json_text(table));
  EXPECT_FALSE(back->routes[0].next_hops[0].resolved);
  EXPECT_TRUE(back->routes[0].next_hops[1].resolved);
}

TEST(SnapshotJson, AbsentMembersKeepTheirDefault) {
  const auto snapshot = from_json_text<Snapshot>(R"({"version": "9"})");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->version, "9");
  EXPECT_TRUE(snapshot->conserved);
}

TEST(SnapshotJson, AnythingElseIsAnError) {
  for (const char* text :
       {"", "{", "[]", "null", R"({"lanes": 5})", R"({"version": 5})", R"({"uptime_ns": "x"})", "\xff"}) {
    const auto snapshot = from_json_text<Snapshot>(text);
    ASSERT_FALSE(snapshot) << text;
    EXPECT_EQ(snapshot.error().message.rfind("not the JSON that was expected", 0), 0U);
  }
}

TEST(SnapshotJson, BytesThatAreNotUtf8AreReplaced) {
  Snapshot s;
  s.version = "a\xff";
  EXPECT_NE(to_json_text(s).find("a\xEF\xBF\xBD"), std::string::npos);
}

TEST(SnapshotTotal, AddsLanes) {
  const LaneSnapshot sum = total(sample_snapshot());
  EXPECT_EQ(sum.rx_frames, 3000U);
  EXPECT_EQ(sum.rx_bytes, 192000U);
  EXPECT_EQ(sum.tx_frames, 2900U);
  EXPECT_EQ(sum.misses, 4U);
  EXPECT_EQ(sum.misses_stalled, 3U);
  EXPECT_EQ(sum.collecting_ns, 7000U);
  EXPECT_EQ(sum.forwarding_ns, 5000U);
  EXPECT_EQ(sum.rx_frames + sum.injected + sum.emitted + sum.cloned,
            sum.tx_frames + sum.consumed + sum.punted + sum.dropped + sum.in_flight);
}

TEST(RouteQuery, MatchesRoutesAroundAndInside) {
  struct Case {
    const char* query;
    const char* route;
    bool matches;
  };
  for (const Case& c : {Case{"10.0.0.0/8", "10.1.0.0/16", true},
                        {"10.1.0.0/16", "10.0.0.0/8", true},
                        {"10.1.2.3", "0.0.0.0/0", true},
                        {"10.1.2.3", "10.1.2.3/32", true},
                        {"10.1.2.3", "10.1.2.0/30", true},
                        {"10.1.2.3", "10.1.3.0/24", false},
                        {"10.0.0.0/8", "11.0.0.0/8", false},
                        {"10.0.0.0/8", "2001:db8::/32", false},
                        {"::/0", "10.0.0.0/8", false},
                        {"2001:db8::1", "2001:db8::/32", true}}) {
    RouteQuery query;
    query.prefix = *packet::IpPrefix::parse(c.query);
    EXPECT_EQ(query.matches(*packet::IpPrefix::parse(c.route)), c.matches) << c.query << " " << c.route;
  }
  EXPECT_TRUE(RouteQuery().matches(*packet::IpPrefix::parse("10.0.0.0/8")));
}

}  // namespace
}  // namespace sluice::control
