// What the time that a batch has does to its frames.
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include "function/inspect/inspect_lane_trial_test.h"

namespace sluice::function {
namespace {

using packet::PacketBuilder;

// Ticks that no test takes, nor a machine that is kept from it.
constexpr std::uint64_t long_deadline = std::uint64_t{10} << 32, patience = long_deadline / 10 * 7;

// What comes between batches takes no time, which would make those come too late that have to go just now.
std::uint64_t still() {
  return 0;
}

// HTTP of a batch that is late is left and counted, or dropped and counted; of one that is not it is not, nor of one
// that is late because the thread did not run.
TEST_F(InspectLaneTest, ABatchThatIsLateIsNotLookedAt) {
  struct Case {
    const char* what;
    std::uint64_t age, stall;  // of the batch when it began; how long ago that was
    bool left;
  };
  const std::uint64_t second = rte_get_tsc_hz();
  const Case cases[] = {{"it just came", 0, 0, false},
                        {"it has to go", patience, 0, true},
                        {"it came too late", patience + 1, 0, false},
                        {"the thread was stalled", patience - second / 2, second, false}};
  for (const Case& one : cases) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::string(one.what) + (drops ? ", drop" : ", pass"));
      use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
          BatchBudget(match::Detector::unlimited, long_deadline), drops, nullptr, still);
      tcp(1000, 0, "");
      const Judgement judgement = tcp_batch(1000, 0, "GET /evil HTTP/1.1\r\n\r\n", rte_rdtsc() - one.stall, one.age);
      EXPECT_EQ(judgement.drop, one.left && drops);
      EXPECT_EQ(metric("inspect_http_left"), one.left ? 1U : 0U);
      EXPECT_EQ(metric("inspect_overloaded_frames"), one.left ? 1U : 0U);
      EXPECT_EQ(metric("inspect_http_stopped"), one.left && !drops ? 1U : 0U);
      EXPECT_EQ(metric("inspect_alerts"), one.left ? 0U : 1U);
    }
  }
}

// Where frames pass, and only there: searches of HTTP are part of the time of a batch that is behind, and it has none.
TEST_F(InspectLaneTest, ABatchThatIsBehindDoesNotSearchHttp) {
  for (const std::uint64_t age : {std::uint64_t{0}, patience + 1}) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::to_string(age) + (drops ? ", drop" : ", pass"));
      use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
          BatchBudget(0, long_deadline), drops);
      tcp(1000, 0, "");
      EXPECT_FALSE(tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", rte_rdtsc(), age).drop);
      const std::uint64_t left = age != 0 && !drops ? 1 : 0;
      EXPECT_EQ(metric("inspect_left"), left);
      EXPECT_EQ(metric("inspect_overloaded_frames"), left);
      EXPECT_EQ(metric("inspect_http_left"), 0U) << "it is parsed";
      EXPECT_EQ(metric("inspect_http_stopped"), 0U);
    }
  }
}

// A clock by which whatever is looked at takes so long.
std::uint64_t ticks_taken = 0, ticks_now = 0;
std::uint64_t slow_clock() {
  return ticks_now += ticks_taken;
}

// What is due each millisecond, and other rules, come out of the time of the batch behind them: else its frames would
// be late by that, and be reckoned to be dear.
TEST_F(InspectLaneTest, ABatchHasWhatIsLeftBehindWhatComesBeforeIt) {
  for (const std::uint64_t took : {std::uint64_t{0}, patience + 1}) {
    for (const bool exchanges : {false, true}) {
      SCOPED_TRACE(std::to_string(took) + (exchanges ? ", other rules" : ", a sweep"));
      const std::string rules = "alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n";
      ticks_taken = ticks_now = 0;
      use(rules, {}, 1 << 20, BatchBudget(0, long_deadline), false, nullptr, slow_clock);
      tcp(1000, 0, "");
      ticks_taken = took;
      if (exchanges) lane_->publish_rules(std::make_unique<InspectionSearch>(test::rules_of(rules)));
      wait_for_a_millisecond();
      const std::uint64_t now = rte_rdtsc();
      ticks_now = now;
      tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", now, 0);
      EXPECT_EQ(metric("inspect_left"), took == 0 ? 0U : 1U) << "a batch that is behind has no time to search HTTP";
    }
  }
}

// A clock that a test sets.
std::uint64_t set_clock() {
  return ticks_now;
}

// A batch that leaves too late makes those behind it go earlier: one that has waited for half of its deadline is behind
// then (batch_budget.h), and has no time to search HTTP.
TEST_F(InspectLaneTest, WhenABatchHasLeftCountsForThoseBehindIt) {
  for (const bool slow : {false, true}) {
    SCOPED_TRACE(slow);
    use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
        BatchBudget(0, long_deadline), false, nullptr, set_clock);
    ticks_now = 0;
    for (const std::uint16_t port : {1000, 1001}) tcp(port, 0, "");
    const std::uint64_t now = rte_rdtsc();
    ticks_now = now + (slow ? patience + 1 : 0);
    tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", now, 0);
    EXPECT_EQ(metric("inspect_left"), 0U);
    tcp_batch(1001, 0, "GET /good HTTP/1.1\r\n\r\n", now, long_deadline / 2);
    EXPECT_EQ(metric("inspect_left"), slow ? 1U : 0U);
  }
}

// Rules that one payload is dear to confirm by.
std::string dear_rules() {
  std::string rules;
  for (int r = 1; r <= 60; ++r) {
    const std::string number = std::to_string(100 + r);
    rules += "alert udp any any -> any any (content:\"key" + number + "\"; pcre:\"/z[a-d]*q[a-d]*y" + number +
             "/\"; sid:" + number + ";)\n";
  }
  return rules;
}
packet::Bytes dear_frame(std::uint16_t port) {
  std::string text;
  for (int r = 1; r <= 60; ++r) text += "key" + std::to_string(100 + r);
  while (text.size() < 1400) text += "zabcdq";
  return PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(port, 5000).payload(test::bytes(text)).build();
}

// Else who makes a batch long has time, and the right of the first, anew each millisecond.
TEST_F(InspectLaneTest, WhatABatchHasIsGivenOnceHoweverLongItTakes) {
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 1 << 20, BatchBudget(63), true);
  std::vector<packet::Bytes> frames;
  for (const std::uint16_t port : {1000, 1001}) {
    tcp(port, 0, "");
    tcp(port, 10, "what waits");
    frames.push_back(segment(port, true, packet::tcp_ack, 101, "0123456789"));
  }
  EXPECT_TRUE(batch(frames, rte_rdtsc(), 0, wait_for_a_millisecond).drop);
  EXPECT_EQ(metric("inspect_releases_left"), 1U) << "one of each batch may release what there is no time for";
  EXPECT_FALSE(batch({frames.back()}, rte_rdtsc(), 0).drop);
}

TEST_F(InspectLaneTest, WhatConfirmingTookIsReportedOfTheWholeBatch) {
  use(dear_rules(), {}, 1 << 20, BatchBudget(std::uint64_t{1} << 40));
  const packet::Bytes ordinary = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(2, 5000).payload(100).build();
  batch({dear_frame(1), ordinary}, rte_rdtsc(), 0, wait_for_a_millisecond);
  EXPECT_EQ(metric("inspect_left"), 0U);
  EXPECT_NE(lane_->confirming_took(), 0U);
  batch({ordinary}, rte_rdtsc(), 0);
  EXPECT_EQ(lane_->confirming_took(), 0U);
}

TEST_F(InspectLaneTest, ABatchThatHasToGoHasToInItsMidstToo) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
      BatchBudget(match::Detector::unlimited, long_deadline), false, nullptr, still);
  const std::string evil = "GET /evil HTTP/1.1\r\n\r\n";
  std::vector<packet::Bytes> frames;
  for (const std::uint16_t port : {1000, 1001}) {
    tcp(port, 0, "");
    frames.push_back(segment(port, true, packet::tcp_ack, 101, evil));
  }
  batch(frames, rte_rdtsc(), patience, wait_for_a_millisecond);
  EXPECT_EQ(metric("inspect_http_left"), 2U);
  EXPECT_EQ(metric("inspect_alerts"), 0U);
}

// A flow that ends between two batches is looked into, however late the one before has left.
TEST_F(InspectLaneTest, ALateBatchIsOverWithIt) {
  use("alert http any any -> any any (http.user_agent; content:\"evil\"; sid:1;)\n", {}, 1 << 20,
      BatchBudget(match::Detector::unlimited, long_deadline));
  const std::string begun = "GET / HTTP/1.1\r\nUser-Agent: evil\r\n";
  tcp(1000, 0, begun);
  EXPECT_EQ(metric("inspect_alerts"), 0U);
  tcp_batch(1000, static_cast<std::uint32_t>(begun.size()), "", rte_rdtsc(), patience);
  lane_->finish();
  EXPECT_EQ(metric("inspect_alerts"), 1U);
  EXPECT_EQ(metric("inspect_left"), 0U);
}

}  // namespace
}  // namespace sluice::function
