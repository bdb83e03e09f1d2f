// The element in a chain, with an engine: what goes through a bridge, what does not, and what is written about it, on
// every device.
#include "function/inspect/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "../tests/support/gpu.h"
#include "engine/emitter.h"
#include "function/acl/acl_trial_test.h"
#include "function/inspect/with_policy_test.h"
#include "function/passive/passive.h"
#include "function/test_batch.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, push = packet::tcp_psh;

class InspectFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("sluice-inspect-test-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  std::unique_ptr<engine::Element> element(const std::string& rules, const std::string& more = "",
                                           const engine::PortTable& ports = engine::PortTable()) {
    write("test.rules", rules);
    Diagnostics diagnostics;
    const std::string text = "[inspect]\nrules = [\"" + path("test.rules") +
                             "\"]\nflows = 1024\nstream_memory = \"4M\"\n" + "http_memory = \"4M\"\neve = \"" +
                             path("eve.json") + "\"\n" + more;
    auto file = Settings::from_text(text, "a.toml", diagnostics);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    Settings section = file->section("inspect");
    auto element = engine::find_element("inspect")->make(section, ports);
    section.finish();
    EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
    return element ? std::move(*element) : nullptr;
  }

  std::vector<nlohmann::json> events(const std::string& type) const {
    std::vector<nlohmann::json> all;
    std::ifstream file(path("eve.json"));
    for (std::string line; std::getline(file, line);) {
      auto event = nlohmann::json::parse(line);
      if (event["event_type"] == type) all.push_back(std::move(event));
    }
    return all;
  }
  std::vector<unsigned> sids() const {
    std::vector<unsigned> all;
    for (const auto& event : events("alert")) all.push_back(event["alert"]["signature_id"].get<unsigned>());
    return all;
  }

  std::filesystem::path folder_;
};

class InspectElement : public InspectFiles, public testing::WithParamInterface<std::string> {};

Bytes text_of(const std::string& text) {
  return {text.begin(), text.end()};
}

Bytes udp(const std::string& text, std::uint16_t port = 53) {
  return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, port).payload(text_of(text)).build();
}

// A conversation of 10.0.0.1:4000 with 10.0.0.2:80.
class Conversation {
 public:
  Bytes segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    PacketBuilder builder;
    to_server ? builder.ipv4("10.0.0.1", "10.0.0.2").tcp(4000, 80) : builder.ipv4("10.0.0.2", "10.0.0.1").tcp(80, 4000);
    builder.tcp_flags(flags).tcp_sequence(mine, (flags & ack) != 0 ? sequence_[to_server ? 1 : 0] : 0);
    builder.payload(text_of(text));
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & syn) != 0 ? 1 : 0);
    return builder.build();
  }
  std::vector<Bytes> handshake() { return {segment(true, syn), segment(false, syn | ack), segment(true, ack)}; }

 private:
  std::uint32_t sequence_[2] = {1000, 5000};
};

// A batch of one frame that came 10 ms ago, with the element's area.
class OneFrame {
 public:
  // `gpu`: whose memory it is in, null: the heap's.
  OneFrame(device::Gpu* gpu, const Bytes& bytes, std::uint64_t ticket)
      : made_(gpu, shape_of(bytes)),
        on_gpu_(gpu == nullptr ? nullptr : static_cast<std::byte*>(gpu->allocate_host(area_bytes).value())) {
    std::memcpy(batch().data(0), bytes.data(), bytes.size());
    segment_.rx_tsc = rte_rdtsc() - rte_get_tsc_hz() / 100;
    batch().segment = &segment_;
    batch().segments = batch().segment_capacity = 1;
    batch().mbuf = mbufs_;
    batch().row = &row_;
    batch().area[0] = on_gpu_ != nullptr ? on_gpu_ : area_;
    batch().ticket = ticket;
  }
  OneFrame(const OneFrame&) = delete;

  engine::Batch& batch() { return made_.batch(); }
  // That lane's, by that port.
  void comes_by(std::uint32_t lane, std::uint16_t port) {
    batch().lane = lane;
    segment_.rx_port = row_.port = port;
  }
  // As which it is dropped; no_reason: it goes on.
  packet::Reason reason() const { return row_.fate == engine::Fate::dropped ? row_.reason : packet::no_reason; }
  engine::Fate fate() const { return row_.fate; }

  static constexpr std::size_t area_bytes = 1024;
  static constexpr engine::Span all{0, 1};

 private:
  static BatchShape shape_of(const Bytes& bytes) {
    BatchShape shape;
    shape.count = 1;
    shape.size = [&](std::mt19937&) { return static_cast<std::uint32_t>(bytes.size()); };
    return shape;
  }

  TestBatch made_;
  std::byte* const on_gpu_;
  alignas(64) std::byte area_[area_bytes];
  engine::Segment segment_{};
  engine::Row row_;
  rte_mbuf mbuf_{};
  rte_mbuf* mbufs_[1] = {&mbuf_};
};

// For rows that are sent nowhere.
class NoPorts {
 public:
  engine::Emitter& out() { return out_; }

 private:
  engine::LaneCounters counters_;
  engine::Emitter out_{{}, 0, counters_, nullptr};
};

// Without an engine: batches of one frame, searched by a core, 10 ms after it came.
class InspectPlan : public InspectFiles {
 protected:
  packet::Reason judge_late(Inspect& inspect, const Bytes& bytes) {
    OneFrame frame(nullptr, bytes, ++ticket_);
    return judge(inspect, frame);
  }
  // The same of a frame that the kernel is to forward, of that lane and port.
  packet::Reason judge_for_host(Inspect& inspect, const Bytes& bytes, std::uint32_t lane, std::uint16_t port) {
    OneFrame frame(nullptr, bytes, ++ticket_);
    frame.comes_by(lane, port);
    frame.batch().to_host(0);
    const packet::Reason reason = judge(inspect, frame);
    EXPECT_EQ(frame.fate(), reason == packet::no_reason ? engine::Fate::to_host : engine::Fate::dropped);
    return reason;
  }
  NoPorts none_;

 private:
  packet::Reason judge(Inspect& inspect, OneFrame& frame) {
    EXPECT_LE(inspect.shape().bytes_per_frame, OneFrame::area_bytes);
    inspect.classify(frame.batch(), OneFrame::all);
    inspect.compute(frame.batch(), OneFrame::all);
    inspect.apply(frame.batch(), OneFrame::all, none_.out());
    return frame.reason();
  }

  std::uint64_t ticket_ = 0;
};

TEST_P(InspectElement, DropsWhatRulesSayAndReportsIt) {
  AclTrial trial(GetParam());
  Conversation web;
  std::vector<Bytes> frames = web.handshake();
  frames.push_back(web.segment(true, ack | push, "GET /good HTTP/1.1\r\nHost: a\r\n\r\n"));
  frames.push_back(web.segment(false, ack | push, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  frames.push_back(web.segment(true, ack | push, "GET /ev"));
  frames.push_back(web.segment(true, ack | push, "il HTTP/1.1\r\nHost: a\r\n\r\n"));  // the attack is whole here
  frames.push_back(web.segment(true, ack | push, "GET /more HTTP/1.1\r\nHost: a\r\n\r\n"));
  frames.push_back(udp("a name"));
  frames.push_back(udp("a very bad name"));
  auto outcome =
      trial.run(frames, element("drop tcp any any -> any 80 (msg:\"evil\"; content:\"/evil\"; http_uri; sid:1;)\n"
                                "alert udp any any -> any 53 (msg:\"bad\"; content:\"very bad\"; sid:2;)\n"));
  const std::vector<Bytes> passed = {frames[0], frames[1], frames[2], frames[3],
                                     frames[4], frames[5], frames[8], frames[9]};
  EXPECT_EQ(outcome.sent, passed);
  EXPECT_EQ(outcome.stats.drops[inspect_dropped], 2U);
  EXPECT_THAT(sids(), ElementsAre(1U, 2U));
  const auto drops = events("drop");
  ASSERT_EQ(drops.size(), 2U);
  EXPECT_EQ(drops[0]["drop"]["reason"], "rules");
  EXPECT_EQ(drops[0]["alert"]["signature_id"], 1);
  EXPECT_EQ(drops[1]["drop"]["reason"], "flow drop");
  EXPECT_EQ(drops[1]["flow_id"], drops[0]["flow_id"]);
  EXPECT_FALSE(drops[1].contains("alert"));
  EXPECT_EQ(events("alert")[0]["alert"]["action"], "blocked");
  EXPECT_EQ(events("alert")[1]["alert"]["action"], "allowed");
}

TEST_P(InspectElement, RejectsWithAnAnswerToTheSender) {
  AclTrial trial(GetParam());
  const std::vector<Bytes> frames = {udp("an evil name")};
  auto outcome = trial.run(frames, element("reject udp any any -> any 53 (content:\"evil\"; sid:1;)\n"));
  EXPECT_THAT(outcome.sent, IsEmpty());
  EXPECT_EQ(outcome.stats.answers[inspect_rejected], 1U);
  EXPECT_EQ(outcome.stats.drops[inspect_rejected], 0U);
}

// Of a segment of `request()`, to whom it says it is, and the sequence number that it resets at.
struct Reset {
  std::string to;
  std::uint32_t sequence;
  bool operator==(const Reset&) const = default;
};
std::vector<Reset> resets_in(const std::vector<Bytes>& frames) {
  std::vector<Reset> all;
  for (const Bytes& frame : frames) {
    const match::PacketFacts facts = match::facts_of({reinterpret_cast<const char*>(frame.data()), frame.size()});
    if (!facts.has_tcp || (facts.tcp_flags & packet::tcp_rst) == 0) continue;
    all.push_back({facts.destination.str(), facts.tcp_sequence});
  }
  return all;
}

TEST_P(InspectElement, RejectsToTheEndsThatTheRuleNames) {
  const Reset client{"10.0.0.1", 5001}, server{"10.0.0.2", 1001};
  const struct {
    const char* action;
    std::vector<Reset> back, onward;
  } cases[] = {{"reject", {client}, {}},
               {"rejectsrc", {client}, {}},
               {"rejectdst", {}, {server}},
               {"rejectboth", {client}, {server}}};
  for (const auto& one : cases) {
    AclTrial trial(GetParam());
    Conversation web;
    std::vector<Bytes> frames = web.handshake();
    frames.push_back(web.segment(true, ack | push, "GET /evil HTTP/1.1\r\n\r\n"));
    frames.push_back(web.segment(true, ack | push, "GET /more HTTP/1.1\r\n\r\n"));
    auto outcome =
        trial.run(frames, element(std::string(one.action) + " tcp any any -> any 80 (content:\"/evil\"; sid:1;)\n"));
    EXPECT_EQ(resets_in(outcome.back), one.back) << one.action;
    EXPECT_EQ(resets_in(outcome.sent), one.onward) << one.action;
    EXPECT_EQ(outcome.sent.size(), 3 + one.onward.size()) << one.action;
    EXPECT_EQ(outcome.stats.answers[inspect_rejected], one.back.size() + one.onward.size()) << one.action;
    EXPECT_EQ(outcome.stats.drops[inspect_rejected], 0U) << one.action;
    EXPECT_EQ(outcome.stats.drops[inspect_dropped], 1U) << one.action << ", the rest of the flow";
    EXPECT_EQ(outcome.stats.total.emitted, one.back.size() + one.onward.size() - 1) << one.action;
    EXPECT_EQ(outcome.metrics["inspect_unnotified"], 0U);
  }
}

TEST_P(InspectElement, RejectsWhatIsNoTcpToItsSenderOnly) {
  for (const auto& [action, answers] : {std::pair{"rejectboth", 1U}, std::pair{"rejectdst", 0U}}) {
    AclTrial trial(GetParam());
    auto outcome = trial.run({udp("an evil name")},
                             element(std::string(action) + " udp any any -> any 53 (content:\"evil\"; sid:1;)\n"));
    EXPECT_THAT(outcome.sent, IsEmpty()) << action;
    EXPECT_EQ(outcome.stats.answers[inspect_rejected], answers) << action;
    EXPECT_EQ(outcome.stats.drops[inspect_rejected], 1 - answers) << action;
  }
}

TEST_P(InspectElement, WhereNothingIsForwardedBothEndsAreNotifiedOutOfTheOnePort) {
  AclTrial trial(GetParam());
  Conversation web;
  std::vector<Bytes> frames = web.handshake();
  frames.push_back(web.segment(true, ack | push, "GET /evil HTTP/1.1\r\n\r\n"));
  auto outcome = trial.run(frames, [&](const engine::PortTable&) {
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(element("rejectboth tcp any any -> any 80 (content:\"/evil\"; sid:1;)\n"));
    elements.push_back(std::make_unique<Passive>());
    return std::make_unique<engine::Pipeline>(std::move(elements));
  });
  EXPECT_EQ(resets_in(outcome.back), (std::vector<Reset>{{"10.0.0.2", 1001}, {"10.0.0.1", 5001}}));
  EXPECT_THAT(outcome.sent, IsEmpty());
  EXPECT_EQ(outcome.stats.answers[inspect_rejected], 2U);
}

TEST_P(InspectElement, DropsWithoutAnAlert) {
  AclTrial trial(GetParam());
  auto outcome = trial.run({udp("an evil name"), udp("a name")},
                           element("sdrop udp any any -> any 53 (content:\"evil\"; sid:1;)\n"));
  EXPECT_EQ(outcome.sent, std::vector<Bytes>{udp("a name")});
  EXPECT_EQ(outcome.stats.drops[inspect_dropped], 1U);
  EXPECT_THAT(sids(), IsEmpty());
  EXPECT_EQ(outcome.metrics["inspect_alerts"], 0U);
}

TEST_P(InspectElement, LinesOfAFileKeepAlertsBackAndDropsGoOn) {
  write("threshold.config",
        "suppress gen_id 1, sig_id 1, track by_src, ip 10.0.0.0/8\n"
        "event_filter gen_id 1, sig_id 2, type limit, track by_src, count 1, seconds 60\n");
  AclTrial trial(GetParam());
  auto outcome = trial.run({udp("an evil name"), udp("a bad name"), udp("a bad name"), udp("a name")},
                           element("drop udp any any -> any 53 (content:\"evil\"; sid:1;)\n"
                                   "drop udp any any -> any 53 (content:\"bad\"; sid:2;)\n",
                                   "threshold_file = \"" + path("threshold.config") + "\"\n"));
  EXPECT_EQ(outcome.sent, std::vector<Bytes>{udp("a name")});
  EXPECT_EQ(outcome.stats.drops[inspect_dropped], 3U);
  EXPECT_THAT(sids(), ElementsAre(2U));
  EXPECT_EQ(outcome.metrics["inspect_alerts"], 1U);
  EXPECT_EQ(outcome.metrics["inspect_alerts_filtered"], 2U);
}

// A limit that the settings lower is the one that counts: what is behind it is not seen.
TEST_P(InspectElement, StreamsAndHttpAreLookedIntoAsFarAsTheSettingsSay) {
  const std::string body(3000, 'a');
  const std::string request = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3004\r\n\r\n" + body + "evil";
  const std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 3004\r\n\r\n" + body + "evil";
  const struct {
    const char* line;
    std::vector<unsigned> sids;
  } cases[] = {{"", {1, 2, 3}},
               {"request_body_limit = \"2K\"", {2, 3}},
               {"response_body_limit = \"2K\"", {1, 3}},
               {"stream_history = 256", {1, 2}}};
  for (const auto& one : cases) {
    std::filesystem::remove(path("eve.json"));
    AclTrial trial(GetParam());
    Conversation web;
    std::vector<Bytes> frames = web.handshake();
    for (std::size_t at = 0; at < request.size(); at += 1000) {
      frames.push_back(web.segment(true, ack | push, request.substr(at, 1000)));
    }
    for (std::size_t at = 0; at < response.size(); at += 1000) {
      frames.push_back(web.segment(false, ack | push, response.substr(at, 1000)));
    }
    trial.run(
        frames,
        element("alert http any any -> any any (http.request_body; content:\"evil\"; sid:1;)\n"
                "alert http any any -> any any (http.response_body; content:\"evil\"; sid:2;)\n"
                "alert tcp any any -> any 80 (content:\"Content-Length\"; content:\"aaaa\"; distance:1000; sid:3;)\n",
                std::string(one.line) + "\n"));
    auto found = sids();
    std::ranges::sort(found);
    EXPECT_EQ(found, one.sids) << one.line;
  }
}

TEST_P(InspectElement, ThePolicyDecidesWhenTheTimeForConfirmingIsUsedUp) {
  for (const std::string policy : {"pass", "drop"}) {
    AclTrial trial(GetParam());
    const std::vector<Bytes> frames = {udp("an evil name"), udp("a name")};
    auto outcome = trial.run(frames, element("drop udp any any -> any 53 (content:\"evil\"; sid:1;)\n",
                                             "budget = \"1ns\"\non_overload = \"" + policy + "\"\n"));
    EXPECT_EQ(outcome.sent.size(), policy == "pass" ? 2U : 1U);
    EXPECT_EQ(outcome.stats.drops[inspect_overload], policy == "pass" ? 0U : 1U);
    const auto drops = events("drop");
    ASSERT_EQ(drops.size(), policy == "pass" ? 0U : 1U);
    for (const auto& event : drops) EXPECT_EQ(event["drop"]["reason"], "inspection budget");
  }
}

// Whatever else is left over: in the counters as in the events.
TEST_P(InspectElement, ARuleThatDropsIsTheReason) {
  std::size_t reported = 0;
  for (const std::string policy : {"pass", "drop"}) {
    AclTrial trial(GetParam());
    const std::vector<Bytes> frames = {udp("an evil name")};
    const auto outcome = trial.run(frames, element("drop udp any any -> any 53 (content:\"evil\"; sid:1;)\n"
                                                   "alert udp any any -> any 53 (content:\"name\"; sid:2;)\n",
                                                   "candidates = 1\non_overload = \"" + policy + "\"\n"));
    EXPECT_TRUE(outcome.sent.empty()) << policy;
    EXPECT_EQ(outcome.stats.drops[inspect_dropped], 1U) << policy;
    EXPECT_EQ(outcome.stats.drops[inspect_overload], 0U) << policy;
    const auto drops = events("drop");
    ASSERT_EQ(drops.size(), ++reported) << policy;
    EXPECT_EQ(drops.back()["drop"]["reason"], "rules") << policy;
  }
}

TEST_P(InspectElement, CountsAddUpAndLanesTakeOtherRules) {
  AclTrial trial(GetParam());
  // However slow the machine: nothing is left.
  const std::string budget = "budget = \"1s\"\n";
  auto first = element("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n", budget);
  Inspect* const inspect = static_cast<Inspect*>(first.get());
  auto engine = trial.start({udp("an evil name"), udp("a name")}, std::move(first), true);
  ASSERT_NE(engine, nullptr);
  const auto value = [&](std::string_view name) {
    for (const engine::Metric& metric : inspect->metrics()) {
      if (metric.name == name) return metric.value;
    }
    ADD_FAILURE() << "no " << name;
    return std::uint64_t{0};
  };
  const auto wait = [](auto condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  };
  EXPECT_TRUE(wait([&] { return value("inspect_alerts") > 100; }));
  auto fresh = element("drop udp any any -> any 53 (content:\"name\"; sid:7;)\n", budget);
  auto change = inspect->reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->text, "1 rule inspects");
  change->commit();
  const std::uint64_t dropped = engine->stats().drops[inspect_dropped];
  EXPECT_TRUE(wait([&] { return engine->stats().drops[inspect_dropped] > dropped + 1000; }));
  EXPECT_GE(value("inspect_frames"), value("inspect_alerts"));
  EXPECT_EQ(value("inspect_by_device") != 0, GetParam() != "cpu");
  // Once the GPU has the new tables, cores do not search any more.
  if (GetParam() != "cpu") {
    EXPECT_TRUE(wait([&] {
      const std::uint64_t before = value("inspect_searched_bytes"), frames = value("inspect_frames");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return value("inspect_searched_bytes") == before && value("inspect_frames") > frames;
    }));
  }
  engine->stop();
  EXPECT_EQ(engine->stats().imbalance(), 0);
}

// Nothing comes any more: lanes take other rules all the same, and a reload does not wait for frames.
TEST_P(InspectElement, IdleLanesTakeOtherRules) {
  AclTrial trial(GetParam());
  auto first = element("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  Inspect* const inspect = static_cast<Inspect*>(first.get());
  auto engine = trial.start({udp("a name")}, std::move(first));
  ASSERT_NE(engine, nullptr);
  auto shortest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {  // a busy machine may keep a lane from its work for once
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto fresh = element("drop udp any any -> any 53 (content:\"name\"; sid:7;)\n");
    auto change = inspect->reload(*fresh);
    ASSERT_TRUE(change) << change.error().message;
    const auto began = std::chrono::steady_clock::now();
    change->commit();
    shortest = std::min(shortest, std::chrono::steady_clock::now() - began);
  }
  EXPECT_LT(shortest, std::chrono::milliseconds(150)) << "it waits for 200 ms where they are not taken";
  engine->stop();
}

// A lane of a GPU, which is late again and again, looks no further, by the deadline that the section engine gives it;
// on a core full batches of ordinary traffic may be late, and are looked at. So are captures, which nobody waits for,
// and what the administrator has given a time of its own. What nobody is sent cannot be dropped, nor its flow.
TEST_F(InspectPlan, OnlyLanesWithADeadlineStopLooking) {
  using std::chrono_literals::operator""us;
  struct Case {
    const char* what;
    engine::Plan plan;
    const char* line;
    bool left;
  };
  const Case cases[] = {{"with a cycle", {.deadline = 100us, .cycle = 25us}, "", true},
                        {"without a cycle", {.deadline = 100us}, "", true},
                        {"passive", {.deadline = 100us, .cycle = 25us, .sends = false}, "", true},
                        {"captures", {.deadline = 100us, .captures = true, .cycle = 25us}, "", false},
                        {"budget", {.deadline = 100us, .cycle = 25us}, "budget = \"250us\"\n", false}};
  for (const Case& one : cases) {
    for (const std::string policy : {"pass", "drop"}) {
      SCOPED_TRACE(one.what + (", " + policy));
      const std::string rules = "alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n";
      const auto made = element(test::with_policy(rules, true), one.line + ("on_overload = \"" + policy + "\"\n"));
      auto& inspect = static_cast<Inspect&>(*made);
      const auto prepared = inspect.prepare(one.plan);
      ASSERT_TRUE(prepared) << prepared.error().message;
      // More of them than a lane is late by chance.
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(judge_late(inspect, udp("a name")), packet::no_reason);
        std::this_thread::sleep_for(2 * one.plan.deadline);
      }
      Conversation web;
      for (const Bytes& frame : web.handshake()) EXPECT_EQ(judge_late(inspect, frame), packet::no_reason);
      const bool dropped = one.left && policy == "drop" && one.plan.sends;
      EXPECT_EQ(judge_late(inspect, web.segment(true, ack, "GET /good HTTP/1.1\r\n\r\n")),
                dropped ? inspect_overload : packet::no_reason);
      std::map<std::string_view, std::uint64_t> metrics;
      for (const engine::Metric& metric : inspect.metrics()) metrics[metric.name] = metric.value;
      EXPECT_EQ(metrics["inspect_http_left"], one.left ? 1U : 0U);
      EXPECT_EQ(metrics["inspect_http_transactions"], one.left ? 0U : 1U);
      inspect.stopped();
    }
  }
}

// What the kernel is to forward is reported as the rest is, but that nobody who sends it is answered.
TEST_F(InspectPlan, WhatTheKernelForwardsIsReportedWithItsPortAtOnce) {
  engine::PortInfo lan, wan;
  lan.name = "lan";
  wan.name = "wan";
  const auto made = element(
      "alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n"
      "reject udp any any -> any 54 (content:\"evil\"; sid:2;)\n",
      "budget = \"1s\"\n", engine::PortTable({lan, wan}));
  auto& inspect = static_cast<Inspect&>(*made);
  const auto prepared = inspect.prepare({.lanes = 2, .ports = {0, 1}});
  ASSERT_TRUE(prepared) << prepared.error().message;
  const auto metrics = [&] {
    std::map<std::string_view, std::uint64_t> all;
    for (const engine::Metric& metric : inspect.metrics()) all[metric.name] = metric.value;
    return std::vector{all["inspect_frames"], all["inspect_alerts"]};
  };
  EXPECT_EQ(judge_for_host(inspect, udp("an evil name"), 0, 0), packet::no_reason);
  EXPECT_EQ(metrics(), (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(judge_late(inspect, udp("an evil name")), packet::no_reason);
  EXPECT_EQ(judge_for_host(inspect, udp("an evil name", 54), 1, 1), inspect_dropped);
  EXPECT_EQ(metrics(), (std::vector<std::uint64_t>{3, 3}));
  inspect.stopped();
  std::vector<std::string> ports;
  for (const auto& event : events("alert")) ports.push_back(event.value("in_iface", "none"));
  EXPECT_THAT(ports, ElementsAre("lan", "lan", "wan"));
}

// No time is lost by waiting for its alerts to be written, and none is over alerts_per_second.
TEST_F(InspectPlan, OfACaptureAllIsReportedAndOfNoInterface) {
  constexpr std::size_t rules = 100, frames = 100;  // more than a ring holds
  std::string text;
  for (std::size_t sid = 1; sid <= rules; ++sid) {
    text += "alert udp any any -> any 53 (content:\"evil\"; sid:" + std::to_string(sid) + ";)\n";
  }
  engine::PortInfo port;
  port.name = "lan";
  const auto made = element(text, "alerts_per_second = 10\n", engine::PortTable({port}));
  auto& inspect = static_cast<Inspect&>(*made);
  const auto prepared = inspect.prepare({.captures = true, .ports = {0}});
  ASSERT_TRUE(prepared) << prepared.error().message;
  for (std::size_t i = 0; i < frames; ++i) EXPECT_EQ(judge_late(inspect, udp("an evil name")), packet::no_reason);
  inspect.stopped();
  const auto reported = events("alert");
  EXPECT_EQ(reported.size(), rules * frames);
  for (const auto& event : reported) EXPECT_FALSE(event.contains("in_iface"));
}

// Of several batches that are under way the lane may have taken other rules with the one before.
TEST_F(InspectPlan, KeysReportedForTheClassesOfOtherRulesAreNotUsed) {
  if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  device::GpuStream& stream = (*gpu)->stream(0);
  const auto wait = [&] {
    ASSERT_TRUE(stream.mark());
    while (stream.poll() == device::MarkState::pending) std::this_thread::yield();
    ASSERT_FALSE((*gpu)->lost()) << (*gpu)->why();
  };
  const auto made = element("drop udp any any -> any 54 (content:\"evil\"; sid:1;)\n", "budget = \"1s\"\n");
  auto& inspect = static_cast<Inspect&>(*made);
  ASSERT_TRUE(inspect.prepare({}));
  ASSERT_TRUE(inspect.attach(**gpu, {1, 4, 64, 1514}));
  OneFrame frame(gpu->get(), udp("an evil name"), 1);
  inspect.classify(frame.batch(), OneFrame::all);

  const auto fresh = element("drop udp any any -> any 53 (content:\"evil\"; sid:2;)\n", "budget = \"1s\"\n");
  const auto change = inspect.reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  change->commit();
  engine::LaneCounters counters;
  engine::Emitter emitter({}, 0, counters, nullptr);
  inspect.idle(0, rte_rdtsc(), emitter);          // the lane takes them
  for (unsigned step = 0; step < 1000; ++step) {  // more than the table takes
    ASSERT_TRUE(inspect.begin_cycle(0, stream));
    wait();
  }
  ASSERT_TRUE(inspect.launch(frame.batch(), stream));
  wait();
  inspect.apply(frame.batch(), OneFrame::all, none_.out());
  EXPECT_EQ(frame.reason(), inspect_dropped) << "the core searches it";
  inspect.stopped();
  EXPECT_THAT(sids(), ElementsAre(2));
}

INSTANTIATE_TEST_SUITE_P(Devices, InspectElement, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

}  // namespace
}  // namespace sluice::function
