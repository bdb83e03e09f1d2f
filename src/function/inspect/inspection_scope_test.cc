// How far actions reach, what rates change of them, and what is inspected for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_scope_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, psh = packet::tcp_psh;

// After one packet "evil" of a flow: is the next one dropped, and what of UDP?
TEST_F(InspectionScopeTest, ADropReachesAsFarAsItsRuleLooks) {
  const struct {
    const char* rule;
    bool flow;
  } cases[] = {
      {"drop tcp any any -> any any (content:\"evil\"; sid:1;)", true},
      {"drop tcp any any -> any any (content:\"evil\"; flow:established; sid:1;)", true},
      {"drop http any any -> any any (http.uri; content:\"evil\"; sid:1;)", true},
      {"drop http any any -> any 80 (sid:1;)", true},
      {"drop tcp-pkt any any -> any any (content:\"evil\"; sid:1;)", false},
      {"drop tcp any any -> any any (flags:PA; sid:1;)", false},
      {"drop http any any -> any any (dsize:>1; sid:1;)", false},
      {"drop tcp any any -> any any (ipv4.hdr; content:\"|06|\"; offset:9; depth:1; flags:PA; sid:1;)", false},
  };
  for (const auto& one : cases) {
    use(std::string(one.rule) + "\n");
    handshake();
    EXPECT_TRUE(segment(true, ack | psh, "GET /evil HTTP/1.0\r\n").drop) << one.rule;
    EXPECT_EQ(segment(false, ack).drop, one.flow) << one.rule;
    EXPECT_THAT(alerts(), ElementsAre(1)) << one.rule;
  }
  use("drop udp any any -> any any (content:\"evil\"; sid:1;)\n");
  EXPECT_TRUE(udp("evil").drop);
  EXPECT_FALSE(udp("good").drop);
}

// Of a flow that begins with a packet which a rule of ports or the like drops or passes, and whose other packets
// another rule drops: is it meant as a whole?
TEST_F(InspectionScopeTest, ARuleOfEndsIsAboutTheFlowAndOneOfMoreAboutThePacket) {
  const struct {
    const char* what;  // behind the action
    bool flow;
  } cases[] = {
      {"tcp any any -> any 80 (sid:1;)", true},
      {"tcp any 4000 -> 10.0.0.2 [80,443] (sid:1;)", true},
      {"tcp any any -> !10.0.0.1 80 (sid:1;)", true},
      {"ip 10.0.0.1 any -> any any (sid:1;)", true},
      {"ip any any -> any 80 (flowbits:set,seen; sid:1;)", true},
      {"tcp any any -> any 80 (threshold: type threshold, track by_src, count 1, seconds 60; sid:1;)", true},
      {"tcp any any -> any 80 (flow:to_server; sid:1;)", false},
      {"tcp any any -> any 80 (flow:stateless; sid:1;)", false},
      {"tcp any any -> any 80 (flags:S; sid:1;)", false},
      {"tcp any any -> any 80 (flowbits:isnotset,seen; sid:1;)", false},
      {"tcp any any -> any 80 (dsize:0; sid:1;)", false},
  };
  for (const auto& one : cases) {
    use("pass " + std::string(one.what) + "\ndrop ip any any -> any any (flow:stateless; sid:2;)\n");
    const bool passes = !segment(true, syn).drop;
    EXPECT_EQ(segment(false, syn | ack).drop, !(passes && one.flow)) << "pass " << one.what;
    use("drop " + std::string(one.what) + "\n");
    EXPECT_EQ(segment(true, syn).drop, passes) << "drop " << one.what;
    EXPECT_EQ(segment(false, syn | ack).drop, !passes || one.flow) << "drop " << one.what;
  }
}

// At the segment the rules about packets, at the stream's piece the others: refused ones are not counted as prefilter
// matches.
TEST_F(InspectionScopeTest, ASegmentsKeysLeadToRulesAboutPacketsAndItsStreamsToTheOthers) {
  use("alert tcp any any -> any any (content:\"evil\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"evil\"; dsize:4; sid:2;)\n"
      "alert tcp any any -> any any (content:\"evil\"; dsize:>4; sid:3;)\n"
      "alert tcp any any -> any any (dsize:4; sid:4;)\n");
  handshake();
  const std::uint64_t before = inspection_->counters().confirmed;
  segment(true, ack, "evil");
  EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2, 4));
  EXPECT_EQ(inspection_->counters().confirmed - before, 3U);
}

TEST_F(InspectionScopeTest, APassOfUdpIsForTheFlowWhereItsRuleIsAboutEnds) {
  const std::string drop = "drop ip any any -> any any (flow:stateless; sid:2;)\n";
  const auto answer = [&] {
    return feed(PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(53, 4000).payload(Bytes(3, 'a'))).drop;
  };
  use("pass udp any any -> any 53 (sid:1;)\n" + drop);
  EXPECT_FALSE(udp("ok").drop);
  EXPECT_FALSE(answer());
  use("pass udp any any -> any 53 (content:\"ok\"; sid:1;)\n" + drop);
  EXPECT_FALSE(udp("ok").drop);
  EXPECT_TRUE(answer());
}

TEST_F(InspectionScopeTest, EachDroppedFrameIsReportedOnceWithItsReason) {
  using enum DropReason;
  using enum flow::Direction;
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\n"
      "drop udp any any -> any any (content:\"quiet\"; noalert; sid:2;)\n"
      "drop udp any any -> any any (content:\"one\"; threshold: type limit, track by_src, count 1, seconds 60; "
      "sid:3;)\n"
      "alert udp any any -> any any (content:\"good\"; sid:4;)\n"
      "reject udp any any -> any any (content:\"bad\"; sid:5;)\n");
  handshake();
  segment(true, ack, "fine");
  EXPECT_THAT(drops(), IsEmpty());
  segment(true, ack, "evil");
  EXPECT_EQ(dropped_by_, 1U);
  segment(true, ack, "evil");
  segment(false, ack, "an answer");
  EXPECT_EQ(dropped_by_, 0U) << "a rule of an earlier packet";
  EXPECT_THAT(drops(),
              ElementsAre(Dropped(rules, to_server), Dropped(flow_drop, to_server), Dropped(flow_drop, to_client)));
  EXPECT_THAT(alerts(), ElementsAre(1));
  udp("good");
  EXPECT_THAT(drops(), IsEmpty());
  const struct {
    const char* text;
    std::uint32_t rule;
  } cases[] = {{"quiet", 2}, {"one", 3}, {"one", 3}, {"bad one", 3}, {"bad", 5}};
  for (const auto& one : cases) {
    udp(one.text);
    EXPECT_THAT(drops(), ElementsAre(Dropped(rules, to_server))) << one.text;
    EXPECT_EQ(dropped_by_, one.rule) << one.text << ": with an alert or without";
  }
}

TEST_F(InspectionScopeTest, ARuleOfEndsOnlyDropsTheFlowWhicheverWay) {
  use("drop ip 10.0.0.1 any -> any any (sid:1;)\n");
  EXPECT_TRUE(segment(true, syn).drop);
  EXPECT_TRUE(segment(false, syn | ack).drop) << "not from 10.0.0.1";
  use("drop ip 10.0.0.1 any -> any any (ttl:64; sid:1;)\n");
  EXPECT_TRUE(segment(true, syn).drop);
  EXPECT_FALSE(segment(false, syn | ack).drop);
}

TEST_F(InspectionScopeTest, RulesAboutAddressesAreReportedOnceForEachDirectionOfAFlow) {
  const std::string both = "alert ip any any -> any any (sid:1;)\n", to = "alert udp any any -> 10.0.0.2 53 (sid:2;)\n";
  use(both + to + "alert udp any any -> any any (content:\"x\"; sid:3;)\n");
  udp("a");
  EXPECT_THAT(alerts(), ElementsAre(1, 2));
  udp("a");
  EXPECT_THAT(alerts(), IsEmpty());
  udp("x");
  EXPECT_THAT(alerts(), ElementsAre(3));
  feed(PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(53, 4000).payload(Bytes(3, 'a')));
  feed(PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(53, 4000).payload(Bytes(3, 'a')));
  EXPECT_THAT(alerts(), ElementsAre(1));
  udp("a", "10.0.0.3");
  EXPECT_THAT(alerts(), ElementsAre(1, 2)) << "another flow";
  inspection_->exchange(search(to));
  udp("a");
  udp("a");
  EXPECT_THAT(alerts(), ElementsAre(2)) << "other rules look anew";
  handshake();
  segment(true, ack, "a");
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionScopeTest, RulesThatAskForMoreThanAddressesAreReportedForEachPacket) {
  for (const char* rule :
       {"alert udp any any -> any any (ttl:64; sid:1;)", "alert udp any any -> any any (flow:to_server; sid:1;)",
        "alert udp !10.0.0.9 any -> any any (threshold: type threshold, track by_src, count 1, seconds 60; "
        "sid:1;)"}) {
    use(std::string(rule) + "\n");
    udp("a");
    udp("a");
    EXPECT_THAT(alerts(), ElementsAre(1, 1)) << rule;
  }
}

// Lists of bad addresses: what they count are flows, as Suricata's IP-only rules do, and not packets.
TEST_F(InspectionScopeTest, OfRulesAboutAddressesFlowsAreCounted) {
  use("alert ip [10.0.0.1,10.0.0.3] any -> any any (threshold: type threshold, track by_dst, count 2, seconds 60; "
      "sid:1;)\n"
      "alert udp any any -> 10.0.0.2 53 (detection_filter: track by_dst, count 1, seconds 60; sid:2;)\n");
  for (int packets = 0; packets < 5; ++packets) udp("a");
  EXPECT_THAT(alerts(), IsEmpty());
  for (int packets = 0; packets < 5; ++packets) udp("a", "10.0.0.3");
  EXPECT_THAT(alerts(), ElementsAre(1, 2)) << "the second flow";
  udp("a", "10.0.0.4");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// What was reported stays dropped, and what was passed for one packet is looked at in the next.
TEST_F(InspectionScopeTest, RulesAboutAddressesActAsBefore) {
  use("drop ip any any -> 10.0.0.2 any (sid:1;)\n");
  EXPECT_TRUE(udp("a").drop);
  EXPECT_TRUE(udp("a").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  inspection_->exchange(search("alert ip any any -> any any (sid:2;)\n"));
  EXPECT_TRUE(udp("a").drop);
  use("pass udp any any -> any any (content:\"ok\"; sid:1;)\ndrop ip any any -> 10.0.0.2 any (sid:2;)\n");
  EXPECT_FALSE(udp("ok").drop);
  EXPECT_TRUE(udp("a").drop);
  EXPECT_TRUE(udp("ok").drop);
}

TEST_F(InspectionScopeTest, APassForAPacketIsForThatAndItsBytes) {
  use("pass tcp any any -> any any (flags:PA; sid:1;)\nalert tcp any any -> any any (content:\"evil\"; sid:2;)\n");
  handshake();
  segment(true, ack | psh, "evil");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, " and evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// A sender cannot show a dropped packet to the stream, and others bytes to the receiver.
TEST_F(InspectionScopeTest, AStreamDoesNotGetWhatWasDroppedAsAPacket) {
  use("drop tcp any any -> any any (flags:PA; sid:1;)\nalert tcp any any -> any any (content:\"evil\"; sid:2;)\n");
  handshake();
  EXPECT_TRUE(feed(built(true, ack | psh, "good")).drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_FALSE(segment(true, ack, "evil").drop);
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionScopeTest, HeadersOfPacketsAreLookedAtInEachPacket) {
  use("alert tcp any any -> any any (tcp.hdr; content:\"|00 50|\"; offset:2; depth:2; sid:1;)\n"
      "alert tcp any any -> any any (tcp.hdr; content:\"|00 50|\"; offset:2; depth:2; content:\"evil\"; pkt_data; "
      "content:\"evil\"; sid:2;)\n"
      "alert tcp any any -> any any (ipv4.hdr; content:\"|06|\"; offset:9; depth:1; pkt_data; content:\"evil\"; "
      "sid:3;)\n");
  handshake();
  EXPECT_THAT(alerts(), ElementsAre(1, 1));
  segment(true, ack, "some evil");
  EXPECT_THAT(alerts(), ElementsAre(1, 3));
  segment(true, ack, "and good");
  segment(true, ack);
  segment(false, ack, "answer");
  EXPECT_THAT(alerts(), ElementsAre(1, 1));
}

TEST_F(InspectionScopeTest, ALimitKeepsAlertsBackAndAFilterTheDropAsWell) {
  use("drop udp any any -> any any (content:\"one\"; threshold: type limit, track by_src, count 1, seconds 60; "
      "sid:1;)\n"
      "drop udp any any -> any any (content:\"two\"; detection_filter: track by_src, count 1, seconds 60; sid:2;)\n"
      "drop udp any any -> any any (content:\"six\"; threshold: type threshold, track by_src, count 2, seconds 60; "
      "sid:3;)\n");
  EXPECT_TRUE(udp("one").drop);
  EXPECT_TRUE(udp("one").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_FALSE(udp("two").drop);
  EXPECT_TRUE(udp("two").drop);
  EXPECT_FALSE(udp("two", "10.0.0.9").drop) << "another source";
  EXPECT_THAT(alerts(), ElementsAre(2));
  EXPECT_FALSE(udp("six").drop);
  EXPECT_TRUE(udp("six").drop);
  EXPECT_FALSE(udp("six").drop);
  EXPECT_THAT(alerts(), ElementsAre(3));
  EXPECT_EQ(inspection_->rate_counters().action_only, 1U);
  EXPECT_EQ(inspection_->rate_counters().nothing, 4U);
}

TEST_F(InspectionScopeTest, APassRuleBelowItsFilterDoesNotPass) {
  use("pass udp any any -> any any (content:\"evil\"; detection_filter: track by_src, count 1, seconds 60; sid:1;)\n"
      "alert udp any any -> any any (content:\"evil\"; sid:2;)\n");
  udp("evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
  udp("evil");
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionScopeTest, ByFlowCountsEachFlowAndGoesOnWithOtherRules) {
  const std::string rule =
      "alert udp any any -> any any (content:\"x\"; threshold: type limit, track by_flow, count 1, seconds 60; "
      "sid:1;)\n";
  use(rule);
  udp("x");
  udp("x", "10.0.0.9");
  EXPECT_THAT(alerts(), ElementsAre(1, 1));
  inspection_->exchange(search("alert udp any any -> any any (content:\"y\"; sid:7;)\n" + rule));
  udp("x");
  EXPECT_THAT(alerts(), IsEmpty());
}

// The request of a flow is whole only when that ends: for a packet of another flow, which needs its place.
TEST_F(InspectionScopeTest, WhatTheEndOfAFlowShowsIsAboutItsOwnEnds) {
  use("drop http 10.0.0.1 any -> 10.0.0.2 80 (content:\"/evil\"; http_uri; sid:1;)\n"
      "drop ip 10.0.0.7 any -> any any (flow:established; sid:2;)\n",
      1);
  handshake();
  segment(true, ack, "GET /evil");
  EXPECT_THAT(alerts(), IsEmpty());
  now_ += 3'600'000'000;
  EXPECT_FALSE(udp("good", "10.0.0.7").drop) << "the other flow's rule";
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_EQ(ends_, "10.0.0.1:4000 10.0.0.2:80");
  EXPECT_FALSE(with_frame_);
}

// The table has one place, so that the next conversation gets it, and its transactions have the same numbers.
TEST_F(InspectionScopeTest, TheNextConversationInAFlowsPlaceIsReportedAsWell) {
  use("drop http any any -> any any (content:\"/evil\"; http_uri; sid:1;)\n", 1);
  for (int conversation = 0; conversation < 3; ++conversation) {
    sequence_[0] += 100'000;
    now_ += 3'600'000'000;
    handshake();
    EXPECT_TRUE(segment(true, ack, "GET /evil HTTP/1.0\r\n\r\n").drop) << conversation;
    EXPECT_THAT(alerts(), ElementsAre(1)) << conversation;
  }
}

// A flow that is swept away between frames: of the frame before, which is of another flow, nothing is looked at.
TEST_F(InspectionScopeTest, WhatASweptFlowShowsIsWithoutTheLastFrame) {
  use("alert http any any -> any any (content:\"/evil\"; http_uri; pkt_data; content:\"needle\"; sid:1;)\n"
      "alert http any any -> any any (content:\"/evil\"; http_uri; sid:2;)\n");
  handshake();
  segment(true, ack, "GET /evil");
  EXPECT_THAT(alerts(), IsEmpty());
  flow::FlowTable& table = inspection_->conversations().table();
  const std::string needle = "needle";
  const auto other = [&](bool to_server, std::uint8_t flags, std::uint32_t sequence, std::uint32_t other_sequence) {
    PacketBuilder builder;
    to_server ? builder.ipv4("10.0.0.8", "10.0.0.2").tcp(4000, 80) : builder.ipv4("10.0.0.2", "10.0.0.8").tcp(80, 4000);
    builder.tcp_flags(flags).tcp_sequence(sequence, other_sequence);
    if (flags == ack && to_server && sequence == 2) builder.payload(Bytes(needle.begin(), needle.end()));
    feed(builder);
  };
  now_ += 3'600'000'000;
  other(true, syn, 1, 0);
  other(false, syn | ack, 7, 2);
  other(true, ack, 2, 8);
  EXPECT_THAT(alerts(), IsEmpty());
  table.sweep(inspection_->now() / 1000, table.capacity());
  EXPECT_THAT(alerts(), ElementsAre(2));
  EXPECT_FALSE(with_frame_);
}

TEST_F(InspectionScopeTest, PlacesAreThoseOfEachPacketAsWellAsOfTheStream) {
  use("alert tcp any any -> any any (content:\"SMB\"; offset:4; depth:3; content:\"evil\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"code\"; byte_test:1,=,7,0; sid:2;)\n"
      "alert tcp any any -> any any (content:\"short\"; isdataat:!20; sid:3;)\n"
      "alert tcp any any -> any any (content:\"anywhere\"; content:\"four\"; offset:4; depth:4; sid:4;)\n");
  handshake();
  segment(true, ack, std::string("1234SM"));
  segment(true, ack, std::string("B evil"));
  EXPECT_THAT(alerts(), ElementsAre(1)) << "places in the stream";
  segment(true, ack, std::string(3000, '.'));
  segment(true, ack, "1234SMB evil");
  EXPECT_THAT(alerts(), ElementsAre(1)) << "in the packet";
  segment(true, ack, "xx1234SMB evil");
  EXPECT_THAT(alerts(), IsEmpty()) << "in neither";
  segment(true, ack, "\7code");
  EXPECT_THAT(alerts(), ElementsAre(2));
  segment(true, ack, "\6code");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, "short, but too long");
  EXPECT_THAT(alerts(), ElementsAre(3));
  segment(true, ack, "short, but too long for that rule");
  EXPECT_THAT(alerts(), IsEmpty());
}

// The answer waits behind a gap, until the client's packet acknowledges that.
TEST_F(InspectionScopeTest, WhatTheOtherSideSetsFreeIsAboutTheSendersDirection) {
  use("alert tcp 10.0.0.2 80 -> 10.0.0.1 4000 (flow:to_client; content:\"evil\"; sid:1;)\n");
  handshake();
  segment(true, ack, "ask");
  sequence_[1] += 100;
  segment(false, ack, "evil");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_EQ(ends_, "10.0.0.2:80 10.0.0.1:4000");
  EXPECT_TRUE(with_frame_);
}

TEST_F(InspectionScopeTest, ASideThatWasNotHeardHasSentNothing) {
  use("alert tcp any any -> any any (stream_size:server,>,0; sid:1;)\n"
      "alert tcp any any -> any any (stream_size:client,>,5; sid:2;)\n"
      "alert tcp any any -> any any (stream_size:client,=,5; sid:3;)\n");
  segment(true, syn);
  EXPECT_THAT(alerts(), IsEmpty());
  segment(false, syn | ack);
  segment(true, ack);
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, "hello");
  EXPECT_THAT(alerts(), ElementsAre(3));
  midstream_ = true;
  use("alert tcp any any -> any any (stream_size:server,>,0; sid:1;)\n"
      "alert tcp any any -> any any (stream_size:client,>,5; sid:2;)\n"
      "alert tcp any any -> any any (stream_size:client,=,5; sid:3;)\n");
  segment(true, ack);
  EXPECT_THAT(alerts(), IsEmpty()) << "in the middle";
  segment(true, ack, "hello");
  EXPECT_THAT(alerts(), ElementsAre(3)) << "in the middle";
}

// There are no more of them than names, so that the new one takes the place of another.
TEST_F(InspectionScopeTest, ABitThatHasAnotherNameAfterAnExchangeIsNotSet) {
  std::string all = "a0";
  for (std::size_t i = 1; i < match::max_flowbits; ++i) all += "&a" + std::to_string(i);
  const std::string first = "alert udp any any -> any any (content:\"first\"; flowbits:isset,a0; sid:2;)\n";
  const std::string other = "alert udp any any -> any any (content:\"other\"; flowbits:isset,z; sid:3;)\n";
  use("alert udp any any -> any any (content:\"set\"; flowbits:set," + all + "; flowbits:noalert; sid:1;)\n");
  udp("set");
  inspection_->exchange(search(first));  // of the others nothing is kept
  inspection_->exchange(search(first + other));
  udp("other");
  EXPECT_THAT(alerts(), IsEmpty());
  udp("first");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// A stream has no size, flags or TTL: with these a content is meant of one packet.
TEST_F(InspectionScopeTest, ContentsBesideFieldsOfPacketsAreLookedForInEachPacket) {
  for (const std::string field : {"dsize:7", "flags:A", "ttl:64", "window:>0", "fragbits:!M"}) {
    SCOPED_TRACE(field);
    use("drop tcp any any -> any 80 (content:\"abc\"; " + field + "; sid:1;)\n");
    handshake();
    EXPECT_FALSE(segment(true, ack, "xxab").drop);
    EXPECT_FALSE(segment(true, ack, "cyyyyyy").drop) << "across two of them";
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_TRUE(segment(true, ack, "yyabcyy").drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
    EXPECT_FALSE(segment(true, ack, "yyyyyyy").drop) << "it held for the packet";
  }
  for (const std::string stream : {"flow:only_stream; flags:A; ", "ip_proto:6; "}) {
    SCOPED_TRACE(stream);
    use("alert tcp any any -> any 80 (content:\"abc\"; " + stream + "sid:1;)\n");
    handshake();
    segment(true, ack, "xxab");
    segment(true, ack, "cyyyyyy");
    EXPECT_THAT(alerts(), ElementsAre(1)) << "in the stream";
  }
}

}  // namespace
}  // namespace sluice::function
