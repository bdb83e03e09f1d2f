// The metrics of a lane: each counter under its own name; and how time goes by for its conversations.
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf_dyn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "flow/fragment_test.h"
#include "function/inspect/inspect_lane_trial_test.h"

namespace sluice::function {
namespace {

// As a driver multiplies what libpcap gives it: seconds of 32 bits, taken for signed.
TEST(InspectLane, ACaptureMayBeOfLaterThan2038) {
  const auto stamp = [](std::int64_t seconds, std::uint64_t microseconds) {
    return static_cast<std::uint64_t>(seconds) * 1'000'000 + microseconds;
  };
  EXPECT_EQ(time_of_stamp(stamp(1'400'000'000, 7)), 1'400'000'000'000'007U);
  EXPECT_EQ(time_of_stamp(stamp(0x7fffffff, 999'999)), 2'147'483'647'999'999U);
  EXPECT_EQ(time_of_stamp(stamp(static_cast<std::int32_t>(3'000'000'000), 7)), 3'000'000'000'000'007U);
  EXPECT_EQ(time_of_stamp(stamp(3'000'000'000, 7)), 3'000'000'000'000'007U) << "pcapng has more bits";
}

TEST_F(InspectLaneTest, CountsOfThresholdsAreReported) {
  use("alert udp any any -> any 1 (threshold: type limit, track by_src, count 1, seconds 60; sid:1;)\n",
      {.entries = 8});
  for (std::uint16_t from = 1; from <= 3; ++from) udp(1, 1, from);
  EXPECT_EQ(metric("inspect_threshold_no_alert"), 2U) << "of three flows";
  EXPECT_EQ(metric("inspect_threshold_no_effect"), 0U);
  EXPECT_EQ(metric("inspect_threshold_evicted"), 0U);
  for (unsigned source = 2; source < 10; ++source) udp(source, 1);
  EXPECT_EQ(metric("inspect_threshold_evicted"), 1U) << "nine counts, and capacity for eight";
  EXPECT_EQ(metric("inspect_alerts"), 9U);
}

// Whoever uses up what inspection has is seen to do it.
TEST_F(InspectLaneTest, WhatStreamsAndHttpLackIsReported) {
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 100);
  for (std::uint16_t port = 1000; port < 1003; ++port) tcp(port, 0, "G");
  EXPECT_EQ(metric("inspect_http_connections"), 3U);
  EXPECT_EQ(metric("inspect_http_evicted"), 1U) << "three connections, and capacity for two";
  EXPECT_EQ(metric("inspect_http_no_memory"), 0U);
  tcp(1001, 1, "ET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(metric("inspect_http_transactions"), 3U);
  EXPECT_EQ(metric("inspect_http_unanswered"), 1U);
  EXPECT_EQ(metric("inspect_stream_not_taken"), 0U);
  tcp(1002, 1, std::string(100, 'x'));
  EXPECT_EQ(metric("inspect_stream_depth_reached"), 1U);
  EXPECT_EQ(metric("inspect_stream_not_taken"), 1U);
  EXPECT_EQ(metric("inspect_bad_sequence"), 0U);
  tcp(1002, 1'000'000, "x");
  EXPECT_EQ(metric("inspect_bad_sequence"), 1U);
  EXPECT_EQ(metric("inspect_stream_too_far"), 0U);
  EXPECT_EQ(metric("inspect_http_stopped"), 0U);
  EXPECT_EQ(metric("inspect_streams_refused"), 0U);
  EXPECT_EQ(metric("inspect_stream_conflicts"), 0U);
  tcp(1001, 1, "XX");
  EXPECT_EQ(metric("inspect_stream_conflicts"), 1U);
  EXPECT_EQ(metric("inspect_stream_not_compared"), 0U);
  EXPECT_EQ(metric("inspect_stream_not_held"), 0U);
}

TEST_F(InspectLaneTest, WhatBecomesOfFragmentsIsReported) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  const packet::Bytes whole = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2).payload(100).build();
  const auto take = [&](std::uint32_t id, std::size_t begin, std::size_t end, bool more) {
    put(flow::test::fragment_of(whole, id, begin, end, more));
  };
  take(1, 0, 48, true);
  take(1, 48, 108, false);
  take(2, 0, 48, true);
  take(2, 40, 108, false);
  take(3, 0, 47, true);
  const auto metrics = [&](std::initializer_list<const char*> names) {
    std::vector<std::uint64_t> all;
    for (const char* const name : names) all.push_back(metric("inspect_fragments" + std::string(name)));
    return all;
  };
  EXPECT_EQ(metrics({"", "_datagrams", "_refused", "_conflicts", "_malformed", "_no_memory", "_incomplete"}),
            (std::vector<std::uint64_t>{5, 1, 2, 1, 1, 0, 0}));
  for (std::uint32_t id = 0; id < 129; ++id) take(4, 8UL * id, 8UL * id + 8, true);
  take(5, 0, 48, true);
  EXPECT_EQ(metrics({"_refused", "_no_memory", "_incomplete"}), (std::vector<std::uint64_t>{3, 1, 0}));
}

TEST_F(InspectLaneTest, CountsOfFiltersAndTheirPortsAreReported) {
  use("alert udp any any -> any any (detection_filter: track by_src, count 9, seconds 60, unique_on dst_port; "
      "sid:1;)\n",
      {.port_sets = 1});
  udp(1, 1);
  EXPECT_EQ(metric("inspect_unique_on_evicted"), 0U);
  udp(2, 1);
  EXPECT_EQ(metric("inspect_unique_on_evicted"), 1U);
  EXPECT_EQ(metric("inspect_threshold_no_effect"), 2U);
  EXPECT_EQ(metric("inspect_threshold_evicted"), 0U);
  EXPECT_EQ(metric("inspect_threshold_no_alert"), 0U);
}

// By a limit of regular expressions.
TEST_F(InspectLaneTest, WhatIsGivenUpIsReported) {
  use("alert udp any any -> any any (content:\"dear\"; pcre:\"/(a+)+(b+)+c$/\"; sid:1;)\n", {});
  for (const auto& [text, given_up] :
       {std::pair{"dear ab", 0U}, {"dear aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 1U}}) {
    batch({PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(test::bytes(text)).build()}, rte_rdtsc(), 0);
    EXPECT_EQ(metric("inspect_given_up"), given_up) << text;
    EXPECT_EQ(metric("inspect_left"), given_up) << text;
  }
}

// The device searched by the rules that the batch was classified by.
TEST_F(InspectLaneTest, ABatchEndsWithTheRulesThatItBeganWith) {
  const std::string rule = "alert udp any any -> any any (content:\"evil\"; sid:";
  use(rule + "1;)\n", {});
  const auto frame = [](std::uint16_t port) {
    return PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(port, 53).payload(test::bytes("evil")).build();
  };
  const std::uint64_t before = lane_->rules().generation();
  const auto publish = [&] {
    lane_->publish_rules(std::make_unique<InspectionSearch>(test::rules_of(rule + "2;)\n")));
  };
  batch({frame(1), frame(2)}, rte_rdtsc(), 0, publish);
  EXPECT_EQ(lane_->rules().generation(), before);
  EXPECT_EQ(lane_->reclaim(), 1U);
  batch({frame(3)}, rte_rdtsc(), 0);
  EXPECT_NE(lane_->rules().generation(), before);
  EXPECT_EQ(lane_->reclaim(), 0U);
}

// A step each millisecond, between batches.
TEST_F(InspectLaneTest, ConversationsThatAreSilentEndWhileBatchesCome) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  for (unsigned source = 1; source <= 20; ++source) udp(source, 1);
  const auto frame = PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1, 1).payload(4).build();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (metric("inspect_flows_expired") < 20 && std::chrono::steady_clock::now() < end) {
    wait_for_a_millisecond();
    batch({frame}, rte_rdtsc(), 0);
  }
  EXPECT_GE(metric("inspect_flows_expired"), 20U);
}

// Nothing has come, or others have dropped whole batches: time goes by, and rules are taken.
TEST_F(InspectLaneTest, ALaneWithoutFramesEndsConversationsAndTakesRules) {
  for (const bool batches : {false, true}) {
    SCOPED_TRACE(batches);
    use("alert udp any any -> any 1 (sid:1;)\n", {});
    for (unsigned source = 1; source <= 20; ++source) udp(source, 1);
    const std::uint64_t before = lane_->rules().generation();
    lane_->publish_rules(std::make_unique<InspectionSearch>(test::rules_of("alert udp any any -> any 1 (sid:2;)\n")));
    EXPECT_EQ(lane_->reclaim(), 1U);
    const auto pass = [&] { batches ? lane_->judged() : lane_->idle(rte_rdtsc()); };
    pass();
    EXPECT_EQ(lane_->reclaim(), 0U);
    EXPECT_NE(lane_->rules().generation(), before);
    const std::uint64_t frames = metric("inspect_frames");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (metric("inspect_flows") != 0 && std::chrono::steady_clock::now() < end) {
      wait_for_a_millisecond();
      pass();
    }
    EXPECT_EQ(metric("inspect_flows"), 0U);
    EXPECT_EQ(metric("inspect_flows_expired"), 20U);
    EXPECT_EQ(metric("inspect_frames"), frames);
  }
}

// Steps that were left out while the thread slept are made up for, and no more than it may sleep for.
TEST_F(InspectLaneTest, ALaneThatIsSeldomCalledGoesThroughItsConversationsAsFast) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  for (unsigned source = 1; source <= 64; ++source) udp(source, 1);
  const std::uint64_t before = metric("inspect_flows_expired");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  lane_->idle(rte_rdtsc());
  // Of the table's 64 places a step goes through one.
  EXPECT_GE(metric("inspect_flows_expired"), before + 2);
  EXPECT_LE(metric("inspect_flows_expired"), before + static_cast<std::uint64_t>(engine::longest_idle.count()));
}

// Their buffers are in no near cache when a batch comes back: reading one of each frame took a third of a lane's
// frames.
TEST_F(InspectLaneTest, WhereNoDriverStampsFramesTheirBuffersAreNotRead) {
  const FrameClock clock{FrameStamps{}};
  void* const page = mmap(nullptr, sizeof(rte_mbuf), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto& mbuf = *static_cast<const rte_mbuf*>(page);
  EXPECT_EXIT(std::exit(clock.has_stamped(mbuf) || clock.of(mbuf, 7) != 7 ? 1 : 0), testing::ExitedWithCode(0), "");
  munmap(page, sizeof(rte_mbuf));
}

// The times of a capture's frames are those of its packets: between them, and behind the last, none goes by here.
TEST_F(InspectLaneTest, WhileCapturesAreReadTimeDoesNotGoBy) {
  int offset = 0;
  std::uint64_t flag = 0;
  ASSERT_EQ(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
  const FrameClock capture;
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 1 << 20, BatchBudget(match::Detector::unlimited), false, &capture);
  constexpr std::uint64_t long_ago = 1'000'000'000'000'000;
  lane_->idle(rte_rdtsc());
  const auto frame = PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1, 1).payload(4).build();
  const auto stamp = [&](rte_mbuf& mbuf) {
    mbuf.ol_flags |= flag;
    *RTE_MBUF_DYNFIELD(&mbuf, offset, std::uint64_t*) = long_ago;
  };
  stamp_ = stamp;
  batch({frame}, rte_rdtsc(), 0);
  for (int i = 0; i < 100; ++i) {
    wait_for_a_millisecond();
    lane_->idle(rte_rdtsc());
  }
  EXPECT_EQ(metric("inspect_flows"), 1U);
  stamp_ = {};
  batch({frame}, rte_rdtsc(), 0);
  EXPECT_EQ(metric("inspect_flows_expired"), 1U) << "a frame of now ends what was so long ago";
}

TEST_F(InspectLaneTest, FlowsOfACaptureEndByItsTimeHoweverFastItIsRead) {
  int offset = 0;
  std::uint64_t flag = 0, time = 1'000'000'000'000'000;
  ASSERT_EQ(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
  const FrameClock capture;
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 1 << 20, BatchBudget(match::Detector::unlimited), false, &capture);
  stamp_ = [&](rte_mbuf& mbuf) {
    mbuf.ol_flags |= flag;
    *RTE_MBUF_DYNFIELD(&mbuf, offset, std::uint64_t*) = time;
  };
  for (std::uint16_t i = 0; i < 20; ++i) {
    batch({PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1000 + i, 1).payload(4).build()}, rte_rdtsc(), 0);
    time += 1'000'000;
  }
  EXPECT_EQ(metric("inspect_flows_made"), 20U);
  EXPECT_LE(metric("inspect_flows"), 2U) << "the last ones";
}

// What flows report when they have been silent is not of the port that the next frames come by.
TEST_F(InspectLaneTest, AnAlertOfASilentConversationNamesNoPort) {
  tcp_silence_ = 50;
  use("alert http any any -> any any (http.user_agent; content:\"evil\"; sid:1;)\n", {});
  tcp(1000, 0, "GET / HTTP/1.1\r\nUser-Agent: evil\r\n");
  const auto frame = PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1, 1).payload(4).build();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (metric("inspect_alerts") == 0 && std::chrono::steady_clock::now() < end) {
    wait_for_a_millisecond();
    put(frame, 1);
  }
  log_->flush();
  std::vector<std::string> ports;
  for (const std::string& text : test::lines_of(folder_ / "eve.json")) {
    const auto line = nlohmann::json::parse(text);
    if (line["event_type"] == "alert") ports.push_back(line.value("in_iface", "none"));
  }
  EXPECT_EQ(ports, std::vector<std::string>{"none"});
}

}  // namespace
}  // namespace sluice::function
