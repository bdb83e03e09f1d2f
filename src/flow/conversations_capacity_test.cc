// Who gives way to whom: records of streams, connections of HTTP, memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flow/conversations.h"
#include "flow/conversations_trial_test.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using namespace test;

void shake_hands(Conversations& conversations, std::uint32_t client) {
  conversations.packet(tcp(client, 1000, up, tcp_syn, 1000, 0), 0);
  conversations.packet(tcp(client, 1000, down, tcp_syn | tcp_ack, 5000, 1001), 0);
  conversations.packet(tcp(client, 1000, up, tcp_ack, 1001, 5001), 0);
}

// SYNs that bring requests, of whom nobody knows who sends them.
void flood(Conversations& conversations, int count, std::string_view request) {
  for (int i = 0; i < count; ++i) {
    conversations.packet(tcp(100'000 + static_cast<std::uint32_t>(i), 1000, up, tcp_syn, 1, 0, request), 0);
  }
}

TEST(Conversations, SynsWithRequestsEvictNoHttpOfEstablishedFlows) {
  for (const char* const begun : {"GET /ev", "G"}) {
    test::Recorder recorder;
    ConversationSettings settings = small();
    settings.extras = 64;
    Conversations conversations(settings, recorder);
    shake_hands(conversations, 1);
    const std::string_view request = "GET /evil HTTP/1.1\r\n\r\n";
    const std::string_view first = begun;
    const auto next = static_cast<std::uint32_t>(1001 + first.size());
    conversations.packet(tcp(1, 1000, up, tcp_ack, 1001, 5001, first), 0);
    flood(conversations, 40, "GET / HTTP/1.1\r\n");
    conversations.packet(tcp(1, 1000, up, tcp_ack, next, 5001, request.substr(first.size())), 0);
    EXPECT_EQ(std::ranges::count(uris(recorder), "/evil"), 1) << begun;
  }
}

// What a SYN brings is parsed at once, where there is capacity, and else when it is known who has sent it.
TEST(Conversations, TheHttpOfASynThatHadNoCapacityBeginsWithTheHandshake) {
  enum Why { had_capacity, evicted, full, memory };
  for (const Why why : {had_capacity, evicted, full, memory}) {
    test::Recorder recorder;
    ConversationSettings settings = small();
    settings.extras = 64;
    settings.http_transactions = 64;
    Conversations conversations(settings, recorder);
    std::uint8_t* half = nullptr;
    if (why == full) {
      for (std::uint32_t client = 10; client < 18; ++client) {
        shake_hands(conversations, client);
        conversations.packet(tcp(client, 1000, up, tcp_ack, 1001, 5001, "GET /other"), 0);
      }
    } else if (why == memory) {
      half = conversations.http_pool().take(512U << 10);
    }
    conversations.packet(tcp(1, 1000, up, tcp_syn, 1000, 0, "GET /ev"), 0);
    if (why == evicted) {
      flood(conversations, 20, "GET / HTTP/1.1\r\n");
    }
    conversations.packet(tcp(1, 1000, down, tcp_syn | tcp_ack, 5000, 1008), 0);
    conversations.packet(tcp(1, 1000, up, tcp_ack, 1008, 5001, "il HTTP/1.1\r\n\r\n"), 0);
    EXPECT_EQ(std::ranges::count(uris(recorder), "/evil"), 1) << why;
    conversations.packet(tcp(1, 1000, down, tcp_ack, 5001, 1025, "HTTP/1.1 200 ok\r\nContent-Length: 0\r\n\r\n"), 0);
    EXPECT_EQ(
        std::ranges::count_if(recorder.exchanges, [](const auto& e) { return e.uri == "/evil" && e.status == "200"; }),
        1)
        << why;
    conversations.http_pool().give(half);
  }
}

// Before their timeout they keep them unless another stream has none.
TEST(Conversations, SilentConversationsGiveWayToStreams) {
  ConversationSettings settings = small();
  settings.flows.timeouts.tcp_established = 7'000'000;
  settings.flows.remembered = 1'000'000;
  settings.extras = 4;
  settings.stream_idle = 1000;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  for (std::uint32_t client = 1; client < 5; ++client) converse(conversations, client, get, ok, client, false);
  converse(conversations, 5, get, ok, 1000, false);
  EXPECT_EQ(conversations.extras_refused(), 2U) << "two packets with data, and none is silent for so long";
  for (const std::uint32_t client : {1U, 3U, 4U}) {
    conversations.packet(tcp(client, 1000, up, tcp_ack, 101 + static_cast<std::uint32_t>(get.size()), 501), 900);
  }
  converse(conversations, 6, get, ok, 1500, false);
  EXPECT_EQ(conversations.extras_refused(), 2U) << "of the two that are looked at the second is";
  converse(conversations, 7, get, ok, 1500, false);
  EXPECT_EQ(conversations.extras_refused(), 4U);
  EXPECT_EQ(conversations.extras_in_use(), 4U);
  EXPECT_EQ(conversations.table().counters().evicted_idle, 1U);
  EXPECT_EQ(recorder.ends, std::vector{FlowEndReason::evicted_idle});
  EXPECT_EQ(conversations.packet(tcp(2, 1000, up, tcp_ack, 120, 501), 1500).flow->state, FlowState::silent);
  EXPECT_EQ(conversations.packet(tcp(3, 1000, up, tcp_ack, 120, 501), 1500).flow->state, FlowState::established);
}

// There are records, but what came before in silent conversations fills the pool.
TEST(Conversations, SilentConversationsGiveWayInThePool) {
  ConversationSettings settings = small();
  settings.extras = 16;
  settings.streams.window = 1U << 16;
  settings.stream_idle = 1000;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  for (std::uint32_t client = 1; client < 8; ++client) {
    converse(conversations, client, get, ok, client == 7 ? 3000 : 2000 * client / 6, false);
  }
  ASSERT_GT(conversations.stream_pool().in_use(), conversations.stream_pool().capacity() / 4 * 3);
  EXPECT_TRUE(recorder.ends.empty());
  converse(conversations, 8, get, ok, 3000, false);
  EXPECT_EQ(recorder.ends, std::vector{FlowEndReason::evicted_idle});
  EXPECT_EQ(conversations.stream_counters().history_lost, 0U);
}

TEST(Conversations, AFlowWithoutAnExtraIsCountedNotReassembled) {
  ConversationSettings settings = small();
  settings.extras = 1;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  converse(conversations, 1, get, ok, 0, false);
  converse(conversations, 2, get, ok, 0);
  EXPECT_EQ(conversations.extras_refused(), 2U) << "two packets with data";
  EXPECT_EQ(recorder.exchanges.size(), 1U);
  EXPECT_EQ(conversations.table().in_use(), 2U);
  conversations.flush();
  converse(conversations, 2, get, ok, 0);
  EXPECT_EQ(recorder.exchanges.size(), 2U);
}

TEST(Conversations, ClosedFlowsGiveWayToStreams) {
  test::Recorder recorder;
  ConversationSettings settings = small();
  settings.extras = 2;
  Conversations conversations(settings, recorder);
  converse(conversations, 1, get, ok, 0, false);
  for (std::uint32_t client = 2; client < 20; ++client) converse(conversations, client, get, ok, client);
  EXPECT_EQ(conversations.extras_refused(), 0U);
  EXPECT_EQ(recorder.exchanges.size(), 19U);
  EXPECT_EQ(conversations.table().counters().evicted_closed, 17U);
  EXPECT_EQ(conversations.table().in_class()[1], 1U) << "what is open stays";
  converse(conversations, 20, get, ok, 20, false);
  converse(conversations, 21, get, ok, 21, false);
  EXPECT_EQ(conversations.extras_refused(), 2U) << "two packets with data, and nothing is closed";
}

// A scan that is answered by RSTs leaves closed flows without records: none of them ends for a stream that wants one.
TEST(Conversations, ForAStreamOneClosedFlowEndsAndThatHasARecord) {
  ConversationSettings settings = small();
  settings.extras = 3;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  conversations.packet(tcp(99, 1000, up, tcp_syn, 100, 0, "x"), 0);
  for (std::uint32_t client = 100; client < 110; ++client) {
    conversations.packet(tcp(client, 1000, up, tcp_syn, 100, 0), 0);
    conversations.packet(tcp(client, 1000, down, tcp_rst | tcp_ack, 0, 101), 0);
  }
  converse(conversations, 1, get, ok, 0);
  converse(conversations, 2, get, ok, 1, false);
  converse(conversations, 3, get, ok, 2, false);
  EXPECT_EQ(recorder.ends, std::vector{FlowEndReason::evicted_closed}) << "the one that has a record";
  EXPECT_EQ(recorder.exchanges.size(), 3U);
  converse(conversations, 4, get, ok, 3, false);
  EXPECT_EQ(recorder.ends.back(), FlowEndReason::evicted_new) << "then the one that nobody has answered";
  converse(conversations, 5, get, ok, 4, false);
  EXPECT_EQ(conversations.extras_refused(), 2U) << "two packets with data";
  EXPECT_EQ(recorder.ends.size(), 2U);
  EXPECT_EQ(conversations.table().in_class()[2], 10U) << "the scan's are there still";
}

// Whoever sends SYNs with data takes the records of his own.
TEST(Conversations, SynsWithDataLeaveRecordsToConversations) {
  ConversationSettings settings = small();
  settings.http_connections = 100;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  converse(conversations, 1, get, ok, 0, false);
  auto flood = [&, next = 100U](std::uint32_t count) mutable {
    for (; count > 0; --count) conversations.packet(tcp(next++, 1000, up, tcp_syn, 1, 0, "x"), 0);
  };
  flood(20);
  EXPECT_EQ(conversations.table().counters().evicted_new, 13U) << "one for each that came when all were in use";
  converse(conversations, 2, get, ok, 0, false);
  flood(3);
  EXPECT_EQ(recorder.exchanges.size(), 2U);
  EXPECT_EQ(conversations.table().in_class()[1], 2U);
  // With data in its SYN, and answered before the flood has gone round.
  conversations.packet(tcp(3, 1000, up, tcp_syn, 100, 0, "GET /"), 0);
  flood(5);
  conversations.packet(tcp(3, 1000, down, tcp_syn | tcp_ack, 500, 106), 0);
  conversations.packet(tcp(3, 1000, up, tcp_ack, 106, 501, "x HTTP/1.1\r\n\r\n"), 0);
  flood(20);
  EXPECT_EQ(recorder.exchanges.size(), 3U);
  EXPECT_EQ(recorder.exchanges.back().uri, "/x");
  EXPECT_EQ(conversations.extras_refused(), 0U);
  for (std::uint32_t client = 4; client < 9; ++client) converse(conversations, client, get, ok, 0, false);
  flood(1);
  EXPECT_EQ(conversations.extras_refused(), 1U) << "established conversations keep theirs";
  EXPECT_EQ(conversations.table().in_class()[1], 8U);
}

// A request that is not whole, and what waits behind a hole.
TEST(Conversations, WhatIsGivenBackIsFreeAndNobodyHearsOfIt) {
  ConversationSettings settings = small();
  settings.extras = settings.http_connections = settings.http_transactions = 1;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  shake_hands(conversations, 1);
  conversations.packet(tcp(1, 1000, up, tcp_ack, 1001, 5001, "POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody"), 0);
  Flow& flow = *conversations.packet(tcp(1, 1000, up, tcp_ack, 1100, 5001, "waits"), 0).flow;
  const std::string events = recorder.exchanges.at(0).events, bytes = recorder.bytes[0];
  const std::size_t held = conversations.stream_pool().in_use();
  conversations.give_back(flow);
  conversations.give_back(flow);
  EXPECT_EQ(conversations.extras_in_use(), 0U);
  EXPECT_LT(conversations.stream_pool().in_use(), held);
  EXPECT_EQ(conversations.http_pool().in_use(), 0U);
  EXPECT_EQ(recorder.exchanges.at(0).events, events);
  EXPECT_EQ(recorder.bytes[0], bytes);
  EXPECT_EQ(recorder.gaps[0], 0U);
  EXPECT_TRUE(recorder.ends.empty());
  EXPECT_EQ(conversations.table().in_use(), 1U);
  converse(conversations, 2, get, ok, 0);
  EXPECT_EQ(recorder.exchanges.size(), 2U) << "for another there is one of each";
  EXPECT_EQ(conversations.extras_refused(), 0U);
  conversations.flush();
  EXPECT_EQ(conversations.stream_pool().in_use(), 0U) << "what had waited, too, packet by packet";
}

TEST(Conversations, WithoutAnHttpConnectionTheStreamGoesOn) {
  ConversationSettings settings = small();
  settings.http_connections = 0;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  converse(conversations, 1, get, ok, 0);
  EXPECT_EQ(recorder.stops, std::vector{http::StopReason::no_memory});
  EXPECT_EQ(recorder.bytes[1], ok);
}

TEST(Conversations, AnHttpConnectionThatIsSilentGivesWayToAnother) {
  ConversationSettings settings = small();
  settings.http_connections = 1;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  converse(conversations, 1, get, ok, 0);
  converse(conversations, 2, get, ok, 0);
  EXPECT_EQ(recorder.stops, std::vector{http::StopReason::set_aside});
  EXPECT_EQ(recorder.exchanges.size(), 2U);
  EXPECT_EQ(recorder.bytes[1], ok + ok);
  conversations.flush();
  EXPECT_EQ(conversations.http_pool().in_use(), 0U);
}

const std::string whole = "HTTP/1.1 200 ok\r\nContent-Length: 4\r\n\r\nbody";
const auto sent = static_cast<std::uint32_t>(101 + get.size()), got = static_cast<std::uint32_t>(501 + whole.size());

ConversationSettings of_one_http() {
  ConversationSettings settings = small();
  settings.http_connections = 1;
  return settings;
}
// The first of two, between its messages; it has sent and got so much.
void one_frees_capacity(Conversations& conversations, const test::Recorder& recorder) {
  converse(conversations, 1, get, whole, 0, false);
  converse(conversations, 2, get, whole, 0, false);
  ASSERT_EQ(recorder.stops, std::vector{http::StopReason::set_aside});
}

// Its requests are numbered on, and answered by what comes then.
TEST(Conversations, HttpThatGaveWayBetweenMessagesGoesOn) {
  test::Recorder recorder;
  Conversations conversations(of_one_http(), recorder);
  one_frees_capacity(conversations, recorder);
  const std::string next = "\r\nFOO /evil HTTP/1.1\r\n\r\n";
  const Seen seen = conversations.packet(tcp(1, 1000, up, tcp_ack, sent, got, next.substr(0, 10)), 0);
  EXPECT_TRUE(conversations.may_parse_http(*seen.flow, up));
  conversations.packet(tcp(1, 1000, up, tcp_ack, sent + 10, got, next.substr(10)), 0);
  conversations.packet(
      tcp(1, 1000, down, tcp_ack, got, sent + static_cast<std::uint32_t>(next.size()), "HTTP/1.1 201 ok\r\n\r\n"), 0);
  ASSERT_EQ(recorder.exchanges.size(), 3U);
  EXPECT_EQ(recorder.exchanges[2].uri, "/evil");
  EXPECT_EQ(recorder.exchanges[2].status, "201");
  EXPECT_EQ(static_cast<std::uint32_t>(recorder.keys[2]), 1U) << "the second of its connection";
  EXPECT_EQ(conversations.http_counters().connections, 2U);
  EXPECT_TRUE(recorder.limits.empty());
}

// What is missing of it is missing where its next message begins.
TEST(Conversations, HttpThatGaveWayStopsAtAGap) {
  test::Recorder recorder;
  Conversations conversations(of_one_http(), recorder);
  one_frees_capacity(conversations, recorder);
  conversations.packet(tcp(1, 1000, up, tcp_ack, sent + 10, got, "GET /lost HTTP/1.1\r\n\r\n"), 0);
  conversations.packet(tcp(1, 1000, down, tcp_ack, got, sent + 32), 0);
  EXPECT_EQ(recorder.gaps[0], 10U);
  EXPECT_EQ(recorder.stops.back(), http::StopReason::gap);
  EXPECT_EQ(recorder.exchanges.size(), 2U);
}

// Within a message it is over, and said to be beyond a limit.
TEST(Conversations, HttpThatGaveWayWithinAMessageIsLimited) {
  test::Recorder recorder;
  Conversations conversations(of_one_http(), recorder);
  converse(conversations, 1, "GET /ev", "", 0, false);
  converse(conversations, 2, get, whole, 0, false);
  EXPECT_EQ(recorder.stops, std::vector{http::StopReason::evicted});
  EXPECT_EQ(recorder.limits, std::vector{http::Limit::memory});
  const Seen seen = conversations.packet(tcp(1, 1000, up, tcp_ack, 108, 501, "il HTTP/1.1\r\n\r\n"), 0);
  EXPECT_FALSE(conversations.may_parse_http(*seen.flow, up));
  EXPECT_EQ(uris(recorder), std::vector<std::string>{"/x"});
}

}  // namespace
}  // namespace sluice::flow
