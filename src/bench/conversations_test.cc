// The replay port's conversations, as the inspection follows them round after round.
#include "flow/conversations.h"

#include <gtest/gtest.h>

#include <random>

#include "bench/inspect_chain.h"
#include "packet/header_facts.h"
#include "port/random_conversations_test.h"

namespace sluice::cli::bench {
namespace {

using Frames = std::vector<std::vector<std::uint8_t>>;

Frames make(bool http, unsigned count) {
  auto mix = packet::FrameMix::make("heavy-tail");
  EXPECT_TRUE(mix);
  std::mt19937_64 random(1);
  auto source = port::test::random_conversations(*mix, random, count);
  source.http = http;
  return port::make_conversations(source);
}

struct Sink final : flow::ConversationSink {
  void stream_data(flow::Flow&, flow::Extra&, flow::Direction, const flow::StreamData& data) override {
    bytes += data.fresh.size();
  }
  void stream_gap(flow::Flow&, flow::Extra&, flow::Direction, std::uint64_t) override { ++gaps; }
  void http(flow::Flow&, flow::Extra&, flow::http::Event event, flow::http::Transaction& transaction) override {
    complete += event == flow::http::Event::response_complete ? 1 : 0;
    planted += event == flow::http::Event::request_line && transaction.uri() == port::planted_path.whole() ? 1 : 0;
  }
  void http_stopped(flow::Flow&, flow::Extra&, flow::http::StopReason) override {}
  void flow_ended(flow::Flow& flow, flow::Extra* extra, flow::FlowEndReason) override {
    closed += flow.state == flow::FlowState::closed && extra != nullptr ? 1 : 0;
  }
  std::uint64_t bytes = 0, gaps = 0, complete = 0, planted = 0, closed = 0;
};

TEST(BenchConversations, AreFollowedWholeEachTimeTheyComeAgain) {
  for (const bool http : {false, true}) {
    const Frames frames = make(http, 4096);
    Sink sink;
    flow::ConversationSettings settings;
    settings.flows.capacity = 4096;
    std::uint64_t syns = 0, requests = 0, bytes = 0, planted = 0;
    flow::Conversations conversations(settings, sink);
    for (unsigned round = 1; round <= 3; ++round) {
      for (const auto& frame : frames) {
        packet::HeaderFacts facts;
        packet::read_headers({reinterpret_cast<const char*>(frame.data()), frame.size()}, facts);
        flow::Packet packet;
        ASSERT_TRUE(flow::read_packet(facts, packet));
        ASSERT_EQ(conversations.packet(packet, round).check, flow::TcpCheck::good);
        syns += packet.tcp_flags == flow::tcp_syn ? 1 : 0;
        requests += packet.payload.starts_with("GET /") ? 1 : 0;
        planted += packet.payload.starts_with(port::planted_path.second) ? 1 : 0;
        bytes += packet.payload.size();
      }
      EXPECT_EQ(conversations.table().counters().made, syns);
      EXPECT_EQ(conversations.table().counters().bad_sequence, 0U);
      EXPECT_EQ(conversations.stream_counters().conflicts, 0U);
      EXPECT_EQ(conversations.stream_counters().out_of_order, 0U);
      EXPECT_EQ(conversations.http_counters().transactions, requests);
      EXPECT_EQ(sink.complete, requests);
      EXPECT_EQ(sink.planted, planted);
      EXPECT_EQ(sink.bytes, bytes);
      EXPECT_EQ(sink.gaps, 0U);
    }
    EXPECT_EQ(requests != 0, http);
    EXPECT_EQ(planted != 0, http);
    conversations.flush();
    EXPECT_EQ(sink.closed, syns);
  }
}

TEST(BenchConversations, WhatIsNotWholeIsNamed) {
  ChainCase http, streams;
  http.protocol = "http";
  streams.protocol = "streams";
  const std::vector<engine::Metric> whole = {{"inspect_frames", "", 5}, {"inspect_stream_gaps", "", 0}};
  const std::vector<engine::Metric> broken = {{"inspect_stream_gaps", "", 2}, {"inspect_http_evicted", "", 1}};
  EXPECT_EQ(not_whole(http, whole), "");
  EXPECT_EQ(not_whole(http, broken), " inspect_stream_gaps 2 inspect_http_evicted 1");
  EXPECT_EQ(not_whole(streams, broken), " inspect_stream_gaps 2");
  // What an attack is made of breaks nothing.
  streams.payload = resets_payload;
  EXPECT_EQ(not_whole(streams, broken), "");
  EXPECT_EQ(not_whole(streams, {{"inspect_stream_conflicts", "", 1}}), " inspect_stream_conflicts 1");
  const std::vector<engine::Metric> cut = {{"inspect_http_bodies_cut", "", 3}};
  EXPECT_EQ(not_whole(http, cut), " inspect_http_bodies_cut 3");
  http.payload = codings_payload;
  EXPECT_EQ(not_whole(http, cut), "");
}

TEST(BenchConversations, TrafficHasNames) {
  ChainCase one;
  EXPECT_EQ(one.traffic(), "heavy-tail UDP random bytes");
  EXPECT_FALSE(one.converses());
  one.mix = "1500";
  one.protocol = "streams";
  one.payload = "text";
  EXPECT_EQ(one.traffic(), "1500 TCP streams text");
  EXPECT_TRUE(one.converses());
  one.protocol = "http";
  one.payload = "/proc/self/fd/9";
  EXPECT_EQ(one.traffic(), "1500 HTTP attack");
  one.payload = codings_payload;
  EXPECT_EQ(one.traffic(), "1500 HTTP attack of codings");
  one.protocol = "streams";
  one.payload = resets_payload;
  EXPECT_EQ(one.traffic(), "1500 TCP streams attack by resets");
}

}  // namespace
}  // namespace sluice::cli::bench
