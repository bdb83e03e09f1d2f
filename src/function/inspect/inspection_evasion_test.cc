// What a sender does to hide from rules what the receiver gets: silence, decoys, and SYNs and FINs that do not count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_scope_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;

// What comes within one packet is found in a conversation that goes on behind its timeout; what does not is dropped.
TEST_F(InspectionScopeTest, SilenceMakesNoAttackPass) {
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

// "junk" does not reach the receiver, and hides what comes in its place from the stream.
TEST_F(InspectionScopeTest, WhatADecoyHidesIsDroppedWithItsReason) {
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

TEST_F(InspectionScopeTest, WhatAStreamHasNoCapacityForIsDroppedAndComesAgain) {
  streams_.drop_without_capacity = true;
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
  EXPECT_EQ(at(2, "il").stream, flow::Taken::no_capacity);
  EXPECT_THAT(drops(), ElementsAre(Dropped(DropReason::no_capacity, flow::Direction::to_server)));
  EXPECT_FALSE(at(0, "ev").drop);
  EXPECT_TRUE(at(2, "il").drop) << "in the stream now, and whole";
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_THAT(drops(), ElementsAre(Dropped(DropReason::rules, flow::Direction::to_server)));
}

TEST_F(InspectionScopeTest, WhatARulePassesIsLetByInConflictToo) {
  streams_.drop_conflicts = streams_.drop_without_capacity = true;
  use("pass tcp any any -> any any (content:\"friend\"; sid:1;)\n");
  handshake();
  EXPECT_FALSE(feed(built(true, ack, "friend")).drop);
  EXPECT_FALSE(feed(built(true, ack, "others")).drop);
  EXPECT_EQ(inspection_->conversations().stream_counters().conflicts, 1U);
}

// The receiver has acknowledged it, and takes nothing in its place: it is looked at once.
TEST_F(InspectionScopeTest, WhatIsAcknowledgedAndSentAgainAlertsOnce) {
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
TEST_F(InspectionScopeTest, ASynBesidesTheOneThatCountsHidesNothing) {
  for (const std::uint32_t other : {900U, 6000U, 0x40000000U, 0xc0000000U}) {
    for (const bool of_client : {true, false}) {
      streams_.drop_conflicts = streams_.drop_without_capacity = true;
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
TEST_F(InspectionScopeTest, ADecoyOfAFinLeavesTheConversationEstablished) {
  streams_.drop_conflicts = streams_.drop_without_capacity = true;
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

TEST_F(InspectionScopeTest, ASplitHandshakeMakesAStream) {
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

}  // namespace
}  // namespace sluice::function
