// How far actions reach, what rates change of them, and what is inspected for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, psh = packet::tcp_psh;

class InspectionScopeTest : public testing::Test, public AlertSink {
 protected:
  std::unique_ptr<InspectionSearch> search(const std::string& text) {
    rules_ = test::rules_of(text, rules_.get());
    return std::make_unique<InspectionSearch>(rules_);
  }
  void use(const std::string& text, std::uint32_t flows = 1024) {
    InspectionSettings settings = test::small_settings();
    settings.conversations.flows.capacity = flows;
    settings.conversations.streams = streams_;
    settings.conversations.flows.midstream = midstream_;
    settings.conversations.flows.remembered = remembered_;
    settings.conversations.drop_silent = drop_silent_;
    inspection_.reset();
    rules_.reset();
    inspection_ = std::make_unique<Inspection>(search(text), settings, *this);
    sequence_[0] = 1000;
    sequence_[1] = 5000;
  }

  void alert(const Alert& alert) override {
    sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
    ends_ = alert.packet->source.str() + ":" + std::to_string(alert.packet->source_port) + " " +
            alert.packet->destination.str() + ":" + std::to_string(alert.packet->destination_port);
    with_frame_ = !alert.frame.empty();
    blocked_ = alert.blocked;
  }
  void dropped(const DroppedFrame& frame) override {
    EXPECT_EQ(frame.frame.data(), frame_);
    EXPECT_NE(frame.flow, nullptr);
    drops_.emplace_back(frame.reason, frame.direction);
    dropped_by_ = frame.rules == nullptr ? 0 : frame.rules->detector().rules().rules[frame.rule].sid;
  }

  Judgement feed(const PacketBuilder& builder, std::uint64_t later = 1000) {
    const Bytes bytes = builder.build();
    frame_ = reinterpret_cast<const char*>(bytes.data());
    return inspection_->frame({frame_, bytes.size()}, now_ += later);
  }
  Judgement udp(const std::string& text, const char* from = "10.0.0.1") {
    return feed(PacketBuilder().ipv4(from, "10.0.0.2").udp(4000, 53).payload(Bytes(text.begin(), text.end())));
  }
  // A segment between 10.0.0.1:4000 and 10.0.0.2:80.
  PacketBuilder built(bool to_server, std::uint8_t flags, const std::string& text = "") {
    return test::segment_of(to_server, flags, sequence_[to_server ? 0 : 1], sequence_[to_server ? 1 : 0], text);
  }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    const PacketBuilder builder = built(to_server, flags, text);
    sequence_[to_server ? 0 : 1] += static_cast<std::uint32_t>(text.size()) + ((flags & syn) != 0 ? 1 : 0);
    return feed(builder);
  }
  void handshake() {
    segment(true, syn);
    segment(false, syn | ack);
    segment(true, ack);
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  using Dropped = std::pair<DropReason, flow::Direction>;
  std::vector<Dropped> drops() { return std::exchange(drops_, {}); }

  flow::StreamSettings streams_;
  bool midstream_ = false, drop_silent_ = false;
  flow::Milliseconds remembered_ = 0;
  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<Dropped> drops_;
  std::uint32_t dropped_by_ = 0;  // the last frame; 0: by no rule that is named
  const char* frame_ = nullptr;   // that is looked at
  std::string ends_;              // of the last alert
  bool with_frame_ = false, blocked_ = false;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

// After one packet "evil" of a flow: is the next one dropped, and what of UDP?
TEST_F(InspectionScopeTest, a_drop_reaches_as_far_as_its_rule_looks) {
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
TEST_F(InspectionScopeTest, a_rule_of_ends_is_about_the_flow_and_one_of_more_about_the_packet) {
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

TEST_F(InspectionScopeTest, a_pass_of_udp_is_for_the_flow_where_its_rule_is_about_ends) {
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

TEST_F(InspectionScopeTest, each_dropped_frame_is_told_once_with_its_reason) {
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

TEST_F(InspectionScopeTest, a_rule_of_ends_only_drops_the_flow_whichever_way) {
  use("drop ip 10.0.0.1 any -> any any (sid:1;)\n");
  EXPECT_TRUE(segment(true, syn).drop);
  EXPECT_TRUE(segment(false, syn | ack).drop) << "not from 10.0.0.1";
  use("drop ip 10.0.0.1 any -> any any (ttl:64; sid:1;)\n");
  EXPECT_TRUE(segment(true, syn).drop);
  EXPECT_FALSE(segment(false, syn | ack).drop);
}

TEST_F(InspectionScopeTest, rules_about_addresses_are_told_once_for_each_direction_of_a_flow) {
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

TEST_F(InspectionScopeTest, rules_that_ask_for_more_than_addresses_are_told_for_each_packet) {
  for (const char* rule :
       {"alert udp any any -> any any (ttl:64; sid:1;)", "alert udp any any -> any any (flow:to_server; sid:1;)",
        "alert udp any any -> any any (threshold: type threshold, track by_src, count 1, seconds 60; "
        "sid:1;)"}) {
    use(std::string(rule) + "\n");
    udp("a");
    udp("a");
    EXPECT_THAT(alerts(), ElementsAre(1, 1)) << rule;
  }
}

// What was told stays dropped, and what was passed for one packet is looked at in the next.
TEST_F(InspectionScopeTest, rules_about_addresses_act_as_before) {
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

TEST_F(InspectionScopeTest, a_pass_for_a_packet_is_for_that_and_its_bytes) {
  use("pass tcp any any -> any any (flags:PA; sid:1;)\nalert tcp any any -> any any (content:\"evil\"; sid:2;)\n");
  handshake();
  segment(true, ack | psh, "evil");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, " and evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// A sender cannot show a dropped packet to the stream, and others bytes to the receiver.
TEST_F(InspectionScopeTest, a_stream_does_not_get_what_was_dropped_as_a_packet) {
  use("drop tcp any any -> any any (flags:PA; sid:1;)\nalert tcp any any -> any any (content:\"evil\"; sid:2;)\n");
  handshake();
  EXPECT_TRUE(feed(built(true, ack | psh, "good")).drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_FALSE(segment(true, ack, "evil").drop);
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionScopeTest, headers_of_packets_are_looked_at_in_each_packet) {
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

TEST_F(InspectionScopeTest, a_limit_keeps_alerts_back_and_a_filter_the_drop_as_well) {
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

TEST_F(InspectionScopeTest, a_pass_rule_below_its_filter_does_not_pass) {
  use("pass udp any any -> any any (content:\"evil\"; detection_filter: track by_src, count 1, seconds 60; sid:1;)\n"
      "alert udp any any -> any any (content:\"evil\"; sid:2;)\n");
  udp("evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
  udp("evil");
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionScopeTest, by_flow_counts_each_flow_and_goes_on_with_other_rules) {
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
TEST_F(InspectionScopeTest, what_the_end_of_a_flow_shows_is_about_its_own_ends) {
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
TEST_F(InspectionScopeTest, the_next_conversation_in_a_flows_place_is_told_of_as_well) {
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
TEST_F(InspectionScopeTest, what_a_swept_flow_shows_is_without_the_last_frame) {
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

TEST_F(InspectionScopeTest, places_are_those_of_each_packet_as_well_as_of_the_stream) {
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

// What comes within one packet is found in a conversation that goes on behind its timeout; what does not is dropped.
TEST_F(InspectionScopeTest, silence_makes_no_attack_pass) {
  using enum flow::Direction;
  constexpr std::uint64_t silence = 601'000'000;
  remembered_ = 1'000'000;
  for (const bool drop : {true, false}) {
    drop_silent_ = drop;
    use("drop tcp any any -> any any (flow:established,to_server; content:\"evilword\"; sid:1;)\n");
    handshake();
    EXPECT_FALSE(segment(true, ack, "GET /").drop);
    const Judgement first = feed(built(true, ack, "evil"), silence);
    EXPECT_EQ(first.drop, drop);
    EXPECT_EQ(first.stream, drop ? flow::Taken::silent : flow::Taken::all);
    EXPECT_EQ(drops(), std::vector<Dropped>(drop ? 1 : 0, Dropped(DropReason::silent, to_server)));
    EXPECT_FALSE(feed(built(true, ack)).drop) << "keep-alives pass";
    EXPECT_TRUE(feed(built(true, ack, "evilword")).drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
    drops();
  }
  // And a flow that is dropped is dropped.
  use("drop tcp any any -> any any (flow:established,to_server; content:\"evilword\"; sid:1;)\n");
  handshake();
  EXPECT_TRUE(feed(built(true, ack, "evilword")).drop);
  drops();
  EXPECT_TRUE(feed(built(true, ack, "good"), silence).drop);
  EXPECT_THAT(drops(), ElementsAre(Dropped(DropReason::flow_drop, to_server)));
  EXPECT_THAT(alerts(), ElementsAre(1));
  // But another conversation may begin between its ports: once the server has said so.
  sequence_[0] = 900'000;
  EXPECT_TRUE(feed(built(true, syn, "evilword")).drop);
  EXPECT_FALSE(segment(true, syn).drop);
  EXPECT_TRUE(feed(built(true, ack, "good")).drop);
  sequence_[1] = 700'000;
  EXPECT_FALSE(segment(false, syn | ack).drop);
  EXPECT_FALSE(segment(true, ack).drop);
  EXPECT_FALSE(segment(true, ack, "good").drop);
  EXPECT_TRUE(segment(true, ack, "evilword").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// The answer waits behind a gap, until the client's packet acknowledges that.
TEST_F(InspectionScopeTest, what_the_other_side_sets_free_is_about_the_senders_direction) {
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

// "junk" does not reach the receiver, and hides what comes in its place from the stream.
TEST_F(InspectionScopeTest, what_a_decoy_hides_is_dropped_with_its_reason) {
  using enum flow::Direction;
  for (const bool drop : {true, false}) {
    streams_.drop_conflicts = drop;
    use("alert tcp any any -> any any (content:\"evil\"; sid:1;)\n");
    handshake();
    EXPECT_FALSE(feed(built(true, ack, "junk")).drop);
    EXPECT_EQ(feed(built(true, ack, "ev")).drop, drop);
    EXPECT_THAT(alerts(), IsEmpty());
    const Judgement judgement = feed(built(true, ack, "evil"));
    EXPECT_EQ(judgement.drop, drop);
    EXPECT_EQ(judgement.stream, drop ? flow::Taken::conflict : flow::Taken::all);
    EXPECT_THAT(alerts(), ElementsAre(1)) << "looked at all the same";
    EXPECT_EQ(blocked_, drop);
    EXPECT_EQ(drops(), std::vector<Dropped>(drop ? 2 : 0, Dropped(DropReason::conflict, to_server)));
    EXPECT_EQ(inspection_->conversations().stream_counters().conflicts, 2U);
    EXPECT_FALSE(feed(built(true, ack, "junk and more")).drop) << "the flow goes on";
    EXPECT_FALSE(segment(false, ack, "answer").drop);
  }
}

TEST_F(InspectionScopeTest, what_a_stream_has_no_room_for_is_dropped_and_comes_again) {
  streams_.drop_without_room = true;
  streams_.held_segments = 1;
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\n");
  handshake();
  const auto at = [&](std::uint32_t bytes, const std::string& text) {
    sequence_[0] += bytes;
    const Judgement judgement = feed(built(true, ack, text));
    sequence_[0] -= bytes;
    return judgement;
  };
  EXPECT_FALSE(at(4, "?").drop);
  EXPECT_EQ(at(2, "il").stream, flow::Taken::no_room);
  EXPECT_THAT(drops(), ElementsAre(Dropped(DropReason::no_room, flow::Direction::to_server)));
  EXPECT_FALSE(at(0, "ev").drop);
  EXPECT_TRUE(at(2, "il").drop) << "in the stream now, and whole";
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_THAT(drops(), ElementsAre(Dropped(DropReason::rules, flow::Direction::to_server)));
}

TEST_F(InspectionScopeTest, what_a_rule_passes_is_let_by_in_conflict_too) {
  streams_.drop_conflicts = streams_.drop_without_room = true;
  use("pass tcp any any -> any any (content:\"friend\"; sid:1;)\n");
  handshake();
  EXPECT_FALSE(feed(built(true, ack, "friend")).drop);
  EXPECT_FALSE(feed(built(true, ack, "others")).drop);
  EXPECT_EQ(inspection_->conversations().stream_counters().conflicts, 1U);
}

// The receiver has acknowledged it, and takes nothing in its place: it is looked at once.
TEST_F(InspectionScopeTest, what_is_acknowledged_and_sent_again_alerts_once) {
  for (const bool guarded : {true, false}) {
    streams_.drop_conflicts = guarded;
    use("alert tcp any any -> any any (content:\"evil\"; sid:1;)\n");
    handshake();
    const std::uint32_t first = sequence_[0];
    segment(true, ack, "evil");
    segment(true, ack, std::string(8000, '.'));
    EXPECT_THAT(alerts(), ElementsAre(1));
    segment(false, ack);
    segment(true, ack, std::string(8000, '.'));
    const std::uint32_t last = std::exchange(sequence_[0], first);
    EXPECT_FALSE(feed(built(true, ack, "evil")).drop);
    sequence_[0] = last;
    EXPECT_THAT(alerts(), IsEmpty()) << guarded;
  }
}

// Its data, or its number, does not hide what the receiver gets.
TEST_F(InspectionScopeTest, a_syn_besides_the_one_that_counts_hides_nothing) {
  for (const std::uint32_t other : {900U, 6000U, 0x40000000U, 0xc0000000U}) {
    for (const bool of_client : {true, false}) {
      streams_.drop_conflicts = streams_.drop_without_room = true;
      use("drop http any any -> any any (flow:to_server; http.uri; content:\"/evil\"; sid:1;)\n"
          "drop http any any -> any any (flow:to_client; file_data; content:\"attack\"; sid:2;)\n");
      if (!of_client) segment(true, syn);
      const std::uint32_t mine = std::exchange(sequence_[of_client ? 0 : 1], other);
      EXPECT_FALSE(segment(of_client, of_client ? syn : syn | ack, "x").drop);
      sequence_[of_client ? 0 : 1] = mine;
      if (of_client) segment(true, syn);
      segment(false, syn | ack);
      segment(true, ack);
      segment(true, ack, of_client ? "GET /ev" : "GET / HTTP/1.0\r\n");
      segment(false, ack);
      EXPECT_EQ(segment(true, ack, of_client ? "il HTTP/1.0\r\n\r\n" : "\r\n").drop, of_client) << other;
      segment(false, ack, "HTTP/1.0 200 ok\r\n\r\natt");
      segment(true, ack);
      EXPECT_TRUE(segment(false, ack, "ack").drop) << other;
      EXPECT_EQ(alerts(), std::vector<std::uint32_t>{of_client ? 1U : 2U}) << other;
    }
  }
}

// A FIN ahead of what is missing, that the server never gets: its own ends what it sends, and the client goes on.
TEST_F(InspectionScopeTest, a_decoy_of_a_fin_leaves_the_conversation_established) {
  streams_.drop_conflicts = streams_.drop_without_room = true;
  use("drop tcp any any -> any any (flow:established,to_server; content:\"evilattack\"; sid:1;)\n");
  handshake();
  sequence_[0] += 100;
  EXPECT_FALSE(segment(true, ack | packet::tcp_fin).drop);
  sequence_[0] -= 100;
  EXPECT_FALSE(segment(false, ack | packet::tcp_fin, "bye").drop);
  sequence_[1] += 1;
  EXPECT_FALSE(segment(true, ack, "evil").drop);
  EXPECT_TRUE(segment(true, ack, "attack").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
}

TEST_F(InspectionScopeTest, a_side_that_was_not_heard_has_sent_nothing) {
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

TEST_F(InspectionScopeTest, a_split_handshake_makes_a_stream) {
  use("alert tcp-stream any any -> any any (flow:established,to_server; content:\"evil\"; sid:1;)\n");
  segment(true, syn);
  segment(false, syn);
  --sequence_[0];
  segment(true, syn | ack);
  segment(false, ack);
  segment(true, ack, "ev");
  segment(true, ack, "il");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// There are no more of them than names, so that the new one takes the place of another.
TEST_F(InspectionScopeTest, a_bit_that_has_another_name_after_an_exchange_is_not_set) {
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
TEST_F(InspectionScopeTest, contents_beside_fields_of_packets_are_looked_for_in_each_packet) {
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
