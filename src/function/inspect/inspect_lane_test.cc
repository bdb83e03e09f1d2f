// The figures of a lane: each counter under its own name; and what a batch's time does to its frames.
#include "function/inspect/inspect_lane.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf_dyn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "flow/fragment_test.h"
#include "function/inspect/alert_sample.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using packet::PacketBuilder;

class InspectLaneTest : public testing::Test {
 protected:
  void use(const std::string& rules, const match::RateSettings& rates, std::uint64_t depth = 1 << 20,
           const BatchBudget& budget = BatchBudget(match::Detector::unlimited), bool drops = false,
           const FrameClock* clock = nullptr, std::uint64_t (*ticks)() = rte_rdtsc) {
    auto log = AlertLog::open({.eve = folder_ / "eve.json", .ports = {"a", "b"}}, 1);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
    InspectionSettings settings;
    settings.drop_on_overload = drops;
    settings.conversations.flows.capacity = 64;
    settings.conversations.flows.timeouts.udp_new = 50;
    settings.conversations.flows.timeouts.tcp_established = tcp_silence_;
    settings.conversations.extras = 4;
    settings.conversations.streams.depth = depth;
    settings.conversations.http.pipelined = 2;
    settings.conversations.http_connections = 2;
    settings.conversations.http_transactions = 4;
    settings.conversations.stream_bytes = settings.conversations.http_bytes = 1 << 20;
    lane_ = std::make_unique<InspectLane>(
        std::make_unique<InspectionSearch>(test::rules_of(test::with_policy(rules, drops)), rates), settings,
        log_->lane(0), clock != nullptr ? *clock : clock_, budget, ticks);
  }
  void udp(unsigned source, std::uint16_t port, std::uint16_t from = 4000) {
    const packet::Bytes frame =
        PacketBuilder().ipv4("10.0.0." + std::to_string(source), "10.1.0.1").udp(from, port).payload(4).build();
    lane_->judge_transit(test::view(frame), 0, ++tsc_);
    lane_->judged_transit();
  }
  static packet::Bytes segment(std::uint16_t port, bool up, std::uint8_t flags, std::uint32_t sequence,
                               const std::string& text) {
    PacketBuilder builder;
    up ? builder.ipv4("10.0.0.1", "10.1.0.1").tcp(port, 80) : builder.ipv4("10.1.0.1", "10.0.0.1").tcp(80, port);
    return builder.tcp_flags(flags).tcp_sequence(sequence, up ? 501 : 101).payload(test::bytes(text)).build();
  }
  // A segment of the client with so many bytes before it, and the handshake before the first.
  void tcp(std::uint16_t port, std::uint32_t at, const std::string& text) {
    const auto send = [&](bool up, std::uint8_t flags, std::uint32_t sequence, const std::string& payload) {
      lane_->judge_transit(test::view(segment(port, up, flags, sequence, payload)), 0, ++tsc_);
      lane_->judged_transit();
    };
    if (at == 0) {
      send(true, packet::tcp_syn, 100, "");
      send(false, packet::tcp_syn | packet::tcp_ack, 500, "");
      send(true, packet::tcp_ack, 101, "");
    }
    if (at != 0 || !text.empty()) send(true, packet::tcp_ack, 101 + at, text);
  }
  // A receive burst of frames that the kernel is to forward, at `tsc`; how many of them are dropped.
  std::size_t transit(const std::vector<packet::Bytes>& frames, std::uint64_t tsc) {
    std::size_t dropped = 0;
    for (const packet::Bytes& frame : frames) {
      dropped += lane_->judge_transit(test::view(frame), 0, tsc).drop ? 1U : 0U;
    }
    lane_->judged_transit();
    return dropped;
  }
  // A batch that begins at `tsc`, and came so many ticks before; each frame is a receive burst of its own. What the
  // last one was judged.
  Judgement batch(const std::vector<packet::Bytes>& frames, std::uint64_t tsc, std::uint64_t age,
                  const std::function<void()>& between = {}) {
    std::vector<std::uint64_t> address;
    std::vector<std::uint16_t> length;
    std::vector<rte_mbuf> mbuf(frames.size());
    std::vector<rte_mbuf*> mbufs;
    std::vector<engine::Segment> segments;
    engine::Batch batch;
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
      address.push_back(reinterpret_cast<std::uint64_t>(frames[i].data()));
      length.push_back(static_cast<std::uint16_t>(frames[i].size()));
      mbufs.push_back(&mbuf[i]);
      if (stamp_) stamp_(mbuf[i]);
      segments.push_back({i, 0, tsc - age, 0, 0});
      batch.bytes += frames[i].size();
    }
    batch.frame = address.data();
    batch.length = length.data();
    batch.mbuf = mbufs.data();
    batch.segment = segments.data();
    batch.count = batch.segments = batch.capacity = static_cast<std::uint32_t>(frames.size());
    batch.ticket = ++ticket_;
    Judgement judgement;
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      if (i != 0 && between) between();
      judgement = lane_->judge(batch, i, {}, lane_->brief_of(test::view(frames[i])).hash, tsc + i);
    }
    lane_->judged();
    return judgement;
  }
  Judgement tcp_batch(std::uint16_t port, std::uint32_t at, const std::string& text, std::uint64_t tsc,
                      std::uint64_t age) {
    return batch({segment(port, true, packet::tcp_ack, 101 + at, text)}, tsc, age);
  }
  std::uint64_t figure(std::string_view name) {
    lane_->publish();
    for (std::size_t f = 0; f < InspectLane::figure_count; ++f) {
      if (InspectLane::figure_text(f).name == name) return lane_->figure(f);
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  test::Folder folder_;
  std::unique_ptr<AlertLog> log_;
  FrameClock clock_;
  std::unique_ptr<InspectLane> lane_;
  std::function<void(rte_mbuf&)> stamp_;  // of a batch's frames
  std::uint64_t tsc_ = 0, ticket_ = 0;
  flow::Milliseconds tcp_silence_ = 600'000;
};

// As a driver multiplies what libpcap gives it: seconds of 32 bits, taken for signed.
TEST(InspectLane, a_capture_may_be_of_later_than_2038) {
  const auto stamp = [](std::int64_t seconds, std::uint64_t microseconds) {
    return static_cast<std::uint64_t>(seconds) * 1'000'000 + microseconds;
  };
  EXPECT_EQ(time_of_stamp(stamp(1'400'000'000, 7)), 1'400'000'000'000'007U);
  EXPECT_EQ(time_of_stamp(stamp(0x7fffffff, 999'999)), 2'147'483'647'999'999U);
  EXPECT_EQ(time_of_stamp(stamp(static_cast<std::int32_t>(3'000'000'000), 7)), 3'000'000'000'000'007U);
  EXPECT_EQ(time_of_stamp(stamp(3'000'000'000, 7)), 3'000'000'000'000'007U) << "pcapng has more bits";
}

TEST_F(InspectLaneTest, counts_of_thresholds_are_told) {
  use("alert udp any any -> any 1 (threshold: type limit, track by_src, count 1, seconds 60; sid:1;)\n",
      {.entries = 8});
  for (std::uint16_t from = 1; from <= 3; ++from) udp(1, 1, from);
  EXPECT_EQ(figure("inspect_threshold_no_alert"), 2U) << "of three flows";
  EXPECT_EQ(figure("inspect_threshold_no_effect"), 0U);
  EXPECT_EQ(figure("inspect_threshold_evicted"), 0U);
  for (unsigned source = 2; source < 10; ++source) udp(source, 1);
  EXPECT_EQ(figure("inspect_threshold_evicted"), 1U) << "nine counts, and room for eight";
  EXPECT_EQ(figure("inspect_alerts"), 9U);
}

// Whoever uses up what inspection has is seen to do it.
TEST_F(InspectLaneTest, what_streams_and_http_lack_is_told) {
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 100);
  for (std::uint16_t port = 1000; port < 1003; ++port) tcp(port, 0, "G");
  EXPECT_EQ(figure("inspect_http_connections"), 3U);
  EXPECT_EQ(figure("inspect_http_evicted"), 1U) << "three connections, and room for two";
  EXPECT_EQ(figure("inspect_http_no_memory"), 0U);
  tcp(1001, 1, "ET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(figure("inspect_http_transactions"), 3U);
  EXPECT_EQ(figure("inspect_http_unanswered"), 1U);
  EXPECT_EQ(figure("inspect_stream_not_taken"), 0U);
  tcp(1002, 1, std::string(100, 'x'));
  EXPECT_EQ(figure("inspect_stream_depth_reached"), 1U);
  EXPECT_EQ(figure("inspect_stream_not_taken"), 1U);
  EXPECT_EQ(figure("inspect_bad_sequence"), 0U);
  tcp(1002, 1'000'000, "x");
  EXPECT_EQ(figure("inspect_bad_sequence"), 1U);
  EXPECT_EQ(figure("inspect_stream_too_far"), 0U);
  EXPECT_EQ(figure("inspect_http_stopped"), 0U);
  EXPECT_EQ(figure("inspect_streams_refused"), 0U);
  EXPECT_EQ(figure("inspect_stream_conflicts"), 0U);
  tcp(1001, 1, "XX");
  EXPECT_EQ(figure("inspect_stream_conflicts"), 1U);
  EXPECT_EQ(figure("inspect_stream_not_compared"), 0U);
  EXPECT_EQ(figure("inspect_stream_not_held"), 0U);
}

TEST_F(InspectLaneTest, what_becomes_of_fragments_is_told) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  const packet::Bytes whole = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2).payload(100).build();
  const auto take = [&](std::uint32_t id, std::size_t begin, std::size_t end, bool more) {
    lane_->judge_transit(test::view(flow::test::fragment_of(whole, id, begin, end, more)), 0, ++tsc_);
  };
  take(1, 0, 48, true);
  take(1, 48, 108, false);
  take(2, 0, 48, true);
  take(2, 40, 108, false);
  take(3, 0, 47, true);
  const auto figures = [&](std::initializer_list<const char*> names) {
    std::vector<std::uint64_t> all;
    for (const char* const name : names) all.push_back(figure("inspect_fragments" + std::string(name)));
    return all;
  };
  EXPECT_EQ(figures({"", "_datagrams", "_refused", "_conflicts", "_malformed", "_no_memory", "_incomplete"}),
            (std::vector<std::uint64_t>{5, 1, 2, 1, 1, 0, 0}));
  for (std::uint32_t id = 0; id < 129; ++id) take(4, 8UL * id, 8UL * id + 8, true);
  take(5, 0, 48, true);
  EXPECT_EQ(figures({"_refused", "_no_memory", "_incomplete"}), (std::vector<std::uint64_t>{3, 1, 0}));
}

TEST_F(InspectLaneTest, counts_of_filters_and_their_ports_are_told) {
  use("alert udp any any -> any any (detection_filter: track by_src, count 9, seconds 60, unique_on dst_port; "
      "sid:1;)\n",
      {.port_sets = 1});
  udp(1, 1);
  EXPECT_EQ(figure("inspect_unique_on_evicted"), 0U);
  udp(2, 1);
  EXPECT_EQ(figure("inspect_unique_on_evicted"), 1U);
  EXPECT_EQ(figure("inspect_threshold_no_effect"), 2U);
  EXPECT_EQ(figure("inspect_threshold_evicted"), 0U);
  EXPECT_EQ(figure("inspect_threshold_no_alert"), 0U);
}

void wait_for_a_millisecond() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// Ticks that no test takes, nor a machine that is kept from it.
constexpr std::uint64_t long_deadline = std::uint64_t{10} << 32, patience = long_deadline / 10 * 7;

// What comes between batches takes no time, which would make those come too late that have to go just now.
std::uint64_t still() {
  return 0;
}

// HTTP of a batch that is late is left and counted, or dropped and counted; of one that is not it is not, nor of one
// that is late because the thread did not run.
TEST_F(InspectLaneTest, a_batch_that_is_late_is_not_looked_at) {
  struct Case {
    const char* what;
    std::uint64_t age, away;  // of the batch when it began; how long ago that was
    bool left;
  };
  const std::uint64_t second = rte_get_tsc_hz();
  const Case cases[] = {{"it just came", 0, 0, false},
                        {"it has to go", patience, 0, true},
                        {"it came too late", patience + 1, 0, false},
                        {"the thread was away", patience - second / 2, second, false}};
  for (const Case& one : cases) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::string(one.what) + (drops ? ", drop" : ", pass"));
      use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
          BatchBudget(match::Detector::unlimited, long_deadline), drops, nullptr, still);
      tcp(1000, 0, "");
      const Judgement judgement = tcp_batch(1000, 0, "GET /evil HTTP/1.1\r\n\r\n", rte_rdtsc() - one.away, one.age);
      EXPECT_EQ(judgement.drop, one.left && drops);
      EXPECT_EQ(figure("inspect_http_left"), one.left ? 1U : 0U);
      EXPECT_EQ(figure("inspect_overloaded_frames"), one.left ? 1U : 0U);
      EXPECT_EQ(figure("inspect_http_stopped"), one.left && !drops ? 1U : 0U);
      EXPECT_EQ(figure("inspect_alerts"), one.left ? 0U : 1U);
    }
  }
}

// Where frames pass, and only there: searches of HTTP are part of the time of a batch that is behind, and it has none.
TEST_F(InspectLaneTest, a_batch_that_is_behind_does_not_search_http) {
  for (const std::uint64_t age : {std::uint64_t{0}, patience + 1}) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::to_string(age) + (drops ? ", drop" : ", pass"));
      use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
          BatchBudget(0, long_deadline), drops);
      tcp(1000, 0, "");
      EXPECT_FALSE(tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", rte_rdtsc(), age).drop);
      const std::uint64_t left = age != 0 && !drops ? 1 : 0;
      EXPECT_EQ(figure("inspect_left"), left);
      EXPECT_EQ(figure("inspect_overloaded_frames"), left);
      EXPECT_EQ(figure("inspect_http_left"), 0U) << "it is parsed";
      EXPECT_EQ(figure("inspect_http_stopped"), 0U);
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
TEST_F(InspectLaneTest, a_batch_has_what_is_left_behind_what_comes_before_it) {
  for (const std::uint64_t took : {std::uint64_t{0}, patience + 1}) {
    for (const bool exchanges : {false, true}) {
      SCOPED_TRACE(std::to_string(took) + (exchanges ? ", other rules" : ", a sweep"));
      const std::string rules = "alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n";
      ticks_taken = took;
      use(rules, {}, 1 << 20, BatchBudget(0, long_deadline), false, nullptr, slow_clock);
      tcp(1000, 0, "");
      if (exchanges) lane_->offer(std::make_unique<InspectionSearch>(test::rules_of(rules)));
      wait_for_a_millisecond();
      const std::uint64_t now = rte_rdtsc();
      ticks_now = now;
      tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", now, 0);
      EXPECT_EQ(figure("inspect_left"), took == 0 ? 0U : 1U) << "a batch that is behind has no time to search HTTP";
    }
  }
}

// A clock that a test sets.
std::uint64_t set_clock() {
  return ticks_now;
}

// A batch that leaves too late makes those behind it go earlier: one that has waited for half of its deadline is behind
// then (batch_budget.h), and has no time to search HTTP.
TEST_F(InspectLaneTest, when_a_batch_has_left_counts_for_those_behind_it) {
  for (const bool slow : {false, true}) {
    SCOPED_TRACE(slow);
    use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
        BatchBudget(0, long_deadline), false, nullptr, set_clock);
    for (const std::uint16_t port : {1000, 1001}) tcp(port, 0, "");
    const std::uint64_t now = rte_rdtsc();
    ticks_now = now + (slow ? patience + 1 : 0);
    tcp_batch(1000, 0, "GET /good HTTP/1.1\r\n\r\n", now, 0);
    EXPECT_EQ(figure("inspect_left"), 0U);
    tcp_batch(1001, 0, "GET /good HTTP/1.1\r\n\r\n", now, long_deadline / 2);
    EXPECT_EQ(figure("inspect_left"), slow ? 1U : 0U);
  }
}

// By a limit of regular expressions.
TEST_F(InspectLaneTest, what_is_given_up_is_told) {
  use("alert udp any any -> any any (content:\"dear\"; pcre:\"/(a+)+(b+)+c$/\"; sid:1;)\n", {});
  for (const auto& [text, given_up] :
       {std::pair{"dear ab", 0U}, {"dear aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 1U}}) {
    batch({PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(test::bytes(text)).build()}, rte_rdtsc(), 0);
    EXPECT_EQ(figure("inspect_given_up"), given_up) << text;
    EXPECT_EQ(figure("inspect_left"), given_up) << text;
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
TEST_F(InspectLaneTest, what_a_batch_has_is_given_once_however_long_it_takes) {
  use("alert udp any any -> any 1 (sid:1;)\n", {}, 1 << 20, BatchBudget(63), true);
  std::vector<packet::Bytes> frames;
  for (const std::uint16_t port : {1000, 1001}) {
    tcp(port, 0, "");
    tcp(port, 10, "what waits");
    frames.push_back(segment(port, true, packet::tcp_ack, 101, "0123456789"));
  }
  EXPECT_TRUE(batch(frames, rte_rdtsc(), 0, wait_for_a_millisecond).drop);
  EXPECT_EQ(figure("inspect_releases_left"), 1U) << "one of each batch may release what there is no time for";
  EXPECT_FALSE(batch({frames.back()}, rte_rdtsc(), 0).drop);
}

// Else who has the kernel forward frames, as those with options of IPv4, has it anew with each of them. A burst that
// follows at once has what the one before has left.
TEST_F(InspectLaneTest, what_frames_of_no_batch_have_is_given_once_for_a_burst) {
  constexpr std::uint64_t begun = 1'000'000, long_after = std::uint64_t{1} << 32;
  for (const bool resets : {false, true}) {
    SCOPED_TRACE(resets ? "each ends a flow" : "each fills a hole");
    use("alert udp any any -> any 1 (sid:1;)\n", {}, 1 << 20, BatchBudget(64), true);
    std::vector<packet::Bytes> frames;
    for (const std::uint16_t port : {1000, 1001, 1002, 1003}) {
      tcp(port, 0, "");
      tcp(port, 10, "what waits");
      frames.push_back(resets ? segment(port, true, packet::tcp_rst | packet::tcp_ack, 101, "")
                              : segment(port, true, packet::tcp_ack, 101, "0123456789"));
    }
    EXPECT_EQ(transit({frames[0], frames[1]}, begun), 1U) << "one of each burst may release what there is no time for";
    EXPECT_EQ(figure("inspect_releases_left"), 1U);
    EXPECT_EQ(transit({frames[2]}, begun + 1), 1U) << "and one of a few that come at once";
    EXPECT_EQ(transit({frames[3]}, begun + long_after), 0U);
    EXPECT_EQ(figure("inspect_releases_left"), 2U);
  }
}

TEST_F(InspectLaneTest, candidates_of_frames_of_no_batch_have_one_time_for_a_burst) {
  constexpr std::uint64_t begun = 1'000'000, long_after = std::uint64_t{1} << 32;
  constexpr std::size_t count = 1024;
  use("drop udp any any -> any any (content:\"evil\"; pcre:\"/^e[a-z]*l$/\"; sid:1;)\n", {}, 1 << 20,
      BatchBudget(65'536));
  std::vector<packet::Bytes> frames;
  for (std::size_t f = 0; f < count; ++f) {
    frames.push_back(PacketBuilder()
                         .ipv4("10.0.0.1", "10.1.0.1")
                         .udp(static_cast<std::uint16_t>(1000 + f), 53)
                         .payload(test::bytes("evil"))
                         .build());
  }
  const std::size_t first = transit(frames, begun);
  EXPECT_LE(first, count / 2) << "of 16,384 ticks";
  EXPECT_EQ(figure("inspect_left"), count - first);
  EXPECT_EQ(figure("inspect_overloaded_frames"), count - first);
  EXPECT_LE(transit(frames, begun + 1), count / 2) << "what the first burst has left";
  EXPECT_EQ(transit(frames, begun + 2), 0U);
  // Once the thread is not kept from its work in the midst of a candidate.
  std::size_t later = 0;
  for (std::uint64_t time = 1; later == 0 && time < 1'000; ++time) later = transit(frames, begun + time * long_after);
  EXPECT_NE(later, 0U);
}

TEST_F(InspectLaneTest, what_confirming_took_is_told_of_the_whole_batch) {
  use(dear_rules(), {}, 1 << 20, BatchBudget(std::uint64_t{1} << 40));
  const packet::Bytes ordinary = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(2, 5000).payload(100).build();
  batch({dear_frame(1), ordinary}, rte_rdtsc(), 0, wait_for_a_millisecond);
  EXPECT_EQ(figure("inspect_left"), 0U);
  EXPECT_NE(lane_->confirming_took(), 0U);
  batch({ordinary}, rte_rdtsc(), 0);
  EXPECT_EQ(lane_->confirming_took(), 0U);
}

TEST_F(InspectLaneTest, a_batch_that_has_to_go_has_to_in_its_midst_too) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20,
      BatchBudget(match::Detector::unlimited, long_deadline), false, nullptr, still);
  const std::string evil = "GET /evil HTTP/1.1\r\n\r\n";
  std::vector<packet::Bytes> frames;
  for (const std::uint16_t port : {1000, 1001}) {
    tcp(port, 0, "");
    frames.push_back(segment(port, true, packet::tcp_ack, 101, evil));
  }
  batch(frames, rte_rdtsc(), patience, wait_for_a_millisecond);
  EXPECT_EQ(figure("inspect_http_left"), 2U);
  EXPECT_EQ(figure("inspect_alerts"), 0U);
}

// The device searched by the rules that the batch was described by.
TEST_F(InspectLaneTest, a_batch_ends_with_the_rules_that_it_began_with) {
  const std::string rule = "alert udp any any -> any any (content:\"evil\"; sid:";
  use(rule + "1;)\n", {});
  const auto frame = [](std::uint16_t port) {
    return PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(port, 53).payload(test::bytes("evil")).build();
  };
  const std::uint64_t before = lane_->rules().generation();
  const auto offer = [&] { lane_->offer(std::make_unique<InspectionSearch>(test::rules_of(rule + "2;)\n"))); };
  batch({frame(1), frame(2)}, rte_rdtsc(), 0, offer);
  EXPECT_EQ(lane_->rules().generation(), before);
  EXPECT_FALSE(lane_->take_back());
  batch({frame(3)}, rte_rdtsc(), 0);
  EXPECT_NE(lane_->rules().generation(), before);
  EXPECT_TRUE(lane_->take_back());
}

// A step each millisecond, between batches.
TEST_F(InspectLaneTest, conversations_that_are_silent_end_while_batches_come) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  for (unsigned source = 1; source <= 20; ++source) udp(source, 1);
  const auto frame = PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1, 1).payload(4).build();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (figure("inspect_flows_expired") < 20 && std::chrono::steady_clock::now() < end) {
    wait_for_a_millisecond();
    batch({frame}, rte_rdtsc(), 0);
  }
  EXPECT_GE(figure("inspect_flows_expired"), 20U);
}

// Nothing has come, or others have dropped whole batches: time goes by, and rules are taken.
TEST_F(InspectLaneTest, a_lane_without_frames_ends_conversations_and_takes_rules) {
  for (const bool batches : {false, true}) {
    SCOPED_TRACE(batches);
    use("alert udp any any -> any 1 (sid:1;)\n", {});
    for (unsigned source = 1; source <= 20; ++source) udp(source, 1);
    const std::uint64_t before = lane_->rules().generation();
    lane_->offer(std::make_unique<InspectionSearch>(test::rules_of("alert udp any any -> any 1 (sid:2;)\n")));
    EXPECT_FALSE(lane_->take_back());
    const auto pass = [&] { batches ? lane_->judged() : lane_->idle(rte_rdtsc()); };
    pass();
    EXPECT_TRUE(lane_->take_back());
    EXPECT_NE(lane_->rules().generation(), before);
    const std::uint64_t frames = figure("inspect_frames");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (figure("inspect_flows") != 0 && std::chrono::steady_clock::now() < end) {
      wait_for_a_millisecond();
      pass();
    }
    EXPECT_EQ(figure("inspect_flows"), 0U);
    EXPECT_EQ(figure("inspect_flows_expired"), 20U);
    EXPECT_EQ(figure("inspect_frames"), frames);
  }
}

// Steps that were left out while the thread slept are made up for, and no more than it may sleep for.
TEST_F(InspectLaneTest, a_lane_that_is_seldom_called_goes_through_its_conversations_as_fast) {
  use("alert udp any any -> any 1 (sid:1;)\n", {});
  for (unsigned source = 1; source <= 64; ++source) udp(source, 1);
  const std::uint64_t before = figure("inspect_flows_expired");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  lane_->idle(rte_rdtsc());
  // Of the table's 64 places a step goes through one.
  EXPECT_GE(figure("inspect_flows_expired"), before + 2);
  EXPECT_LE(figure("inspect_flows_expired"), before + static_cast<std::uint64_t>(engine::longest_idle.count()));
}

// Their buffers are in no near cache when a batch comes back: reading one of each frame took a third of a lane's
// frames.
TEST_F(InspectLaneTest, where_no_driver_stamps_frames_their_buffers_are_not_read) {
  const FrameClock clock{FrameStamps{}};
  void* const page = mmap(nullptr, sizeof(rte_mbuf), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto& mbuf = *static_cast<const rte_mbuf*>(page);
  EXPECT_EXIT(std::exit(clock.has_stamped(mbuf) || clock.of(mbuf, 7) != 7 ? 1 : 0), testing::ExitedWithCode(0), "");
  munmap(page, sizeof(rte_mbuf));
}

// The times of a capture's frames are those of its packets: between them, and behind the last, none goes by here.
TEST_F(InspectLaneTest, while_captures_are_read_time_does_not_go_by) {
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
  EXPECT_EQ(figure("inspect_flows"), 1U);
  stamp_ = {};
  batch({frame}, rte_rdtsc(), 0);
  EXPECT_EQ(figure("inspect_flows_expired"), 1U) << "a frame of now ends what was so long ago";
}

TEST_F(InspectLaneTest, flows_of_a_capture_end_by_its_time_however_fast_it_is_read) {
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
  EXPECT_EQ(figure("inspect_flows_made"), 20U);
  EXPECT_LE(figure("inspect_flows"), 2U) << "the last ones";
}

// What flows tell when they have been silent is not of the port that the next frames come by.
TEST_F(InspectLaneTest, an_alert_of_a_silent_conversation_names_no_port) {
  tcp_silence_ = 50;
  use("alert http any any -> any any (http.user_agent; content:\"evil\"; sid:1;)\n", {});
  tcp(1000, 0, "GET / HTTP/1.1\r\nUser-Agent: evil\r\n");
  const auto frame = PacketBuilder().ipv4("10.0.1.1", "10.1.0.1").udp(1, 1).payload(4).build();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (figure("inspect_alerts") == 0 && std::chrono::steady_clock::now() < end) {
    wait_for_a_millisecond();
    lane_->judge_transit(test::view(frame), 1, ++tsc_);
    lane_->judged_transit();
  }
  log_->flush();
  std::vector<std::string> ports;
  for (const std::string& text : test::lines_of(folder_ / "eve.json")) {
    const auto line = nlohmann::json::parse(text);
    if (line["event_type"] == "alert") ports.push_back(line.value("in_iface", "none"));
  }
  EXPECT_EQ(ports, std::vector<std::string>{"none"});
}

// A flow that ends between two batches is looked into, however late the one before has left.
TEST_F(InspectLaneTest, a_late_batch_is_over_with_it) {
  use("alert http any any -> any any (http.user_agent; content:\"evil\"; sid:1;)\n", {}, 1 << 20,
      BatchBudget(match::Detector::unlimited, long_deadline));
  const std::string begun = "GET / HTTP/1.1\r\nUser-Agent: evil\r\n";
  tcp(1000, 0, begun);
  EXPECT_EQ(figure("inspect_alerts"), 0U);
  tcp_batch(1000, static_cast<std::uint32_t>(begun.size()), "", rte_rdtsc(), patience);
  lane_->finish();
  EXPECT_EQ(figure("inspect_alerts"), 1U);
  EXPECT_EQ(figure("inspect_left"), 0U);
}

// What a router leaves to the kernel is judged between batches: with a batch's time it would make the frames that wait
// late.
TEST_F(InspectLaneTest, a_frame_of_no_batch_has_a_small_part_of_a_batch_s_time) {
  for (const auto& [most, left] : {std::pair{3U, 1U}, {64'000'000U, 0U}}) {
    SCOPED_TRACE(most);
    use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", {}, 1 << 20, BatchBudget(most));
    std::string uri = "GET /";
    tcp(1000, 0, uri);
    // Longer than what is searched whatever the time.
    std::uint32_t at = static_cast<std::uint32_t>(uri.size());
    const std::string more(1400, 'x');
    for (int i = 0; i < 10; ++i, at += 1400) tcp(1000, at, more);
    EXPECT_EQ(figure("inspect_left"), 0U);
    tcp(1000, at, " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(figure("inspect_http_transactions"), 1U);
    EXPECT_EQ(figure("inspect_left"), left);
    EXPECT_EQ(figure("inspect_overloaded_frames"), left);
  }
}

}  // namespace
}  // namespace sluice::function
