// Looking at frames has an end: what is left then, under which name it is counted, and what is looked at all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <functional>

#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, fin = packet::tcp_fin;
constexpr auto gap = static_cast<std::size_t>(flow::http::StopReason::gap);
constexpr const char* of_uris = "alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n";
constexpr const char* evil = "GET /evil HTTP/1.1\r\n\r\n";

class InspectionLateTest : public testing::Test, public AlertSink {
 protected:
  // And a handshake.
  void use(const std::string& text, bool drops, bool by_device = false) {
    auto rules = test::rules_of(test::with_policy(text, drops));
    ASSERT_NE(rules, nullptr);
    InspectionSettings settings;
    settings.drop_on_overload = drops;
    settings.conversations.streams.depth = depth_;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(std::move(rules)),
                                               test::small_settings(settings), *this);
    by_device_ = by_device;
    sids_.clear();
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    segment(true, syn);
    segment(false, syn | ack);
    segment(true, ack);
  }
  void alert(const Alert& alert) override {
    sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
    if (at_alert_) at_alert_();
  }
  void in_time() { inspection_->begin(match::Detector::unlimited); }
  void late() {
    in_time();
    inspection_->set_looks_until(0);
  }
  Judgement feed(const PacketBuilder& builder) {
    const Bytes bytes = builder.build();
    return test::inspect(*inspection_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000,
                         by_device_);
  }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    const PacketBuilder builder = test::segment_of(to_server, flags, mine, sequence_[to_server ? 1 : 0], text);
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & (syn | fin)) != 0 ? 1 : 0);
    return feed(builder);
  }
  Judgement up(const std::string& text) { return segment(true, ack, text); }
  Judgement again(const std::string& text) {
    sequence_[0] -= static_cast<std::uint32_t>(text.size());
    return up(text);
  }
  Judgement udp(const std::string& text) {
    return feed(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, 53).payload(Bytes(text.begin(), text.end())));
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  const InspectionCounters& counters() const { return inspection_->counters(); }
  const flow::http::Counters& http() const { return inspection_->conversations().http_counters(); }

  std::function<void()> at_alert_;
  std::vector<std::uint32_t> sids_;
  bool by_device_ = false;
  std::uint64_t depth_ = 1 << 20;
  std::uint32_t sequence_[2] = {};
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

// Whichever way a frame would be inspected: the operator reads in inspect_left and inspect_overloaded_frames that there
// was no alert for want of time.
TEST_F(InspectionLateTest, WhatADeviceFoundIsLeftAndCountedOnEveryWay) {
  struct Case {
    const char* what;
    const char* rule;
    std::function<Judgement()> frame;
    std::uint64_t left, left_of_dropped;
  };
  const char* const of_udp = "alert udp any any -> any any (content:\"evil\"; sid:1;)\n";
  const char* const of_streams = "alert tcp any any -> any 80 (content:\"evil\"; sid:1;)\n";
  const char* const of_packets = "alert tcp-pkt any any -> any 80 (content:\"evil\"; sid:1;)\n";
  const auto behind_fin = [&] {
    segment(true, ack | fin, "an end");
    late();
    return up("evil");
  };
  const Case cases[] = {
      {"a datagram", of_udp, [&] { return udp("evil"); }, 1, 1},
      {"a stream's piece", of_streams, [&] { return up("evil"); }, 1, 1},
      {"a segment, by itself, and its stream's piece", of_packets, [&] { return up("evil"); }, 2, 1},
      {"what its stream does not take", of_streams, behind_fin, 1, 1},
      {"what its stream does not take, by itself before", of_packets, behind_fin, 2, 1},
  };
  for (const Case& one : cases) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::string(one.what) + (drops ? ", drop" : ", pass"));
      use(one.rule, drops, true);
      late();
      const Judgement judgement = one.frame();
      EXPECT_EQ(judgement.drop, drops);
      EXPECT_TRUE(judgement.overload);
      if (drops) {
        EXPECT_EQ(judgement.why, DropReason::budget);
      }
      EXPECT_THAT(alerts(), IsEmpty());
      EXPECT_EQ(counters().left, drops ? one.left_of_dropped : one.left);
      EXPECT_EQ(counters().overloaded, 1U);
      EXPECT_EQ(counters().confirmed, 0U);
    }
  }
}

// Of more keys than it reports nobody knows which: the core would search for all of them, when it has no time.
TEST_F(InspectionLateTest, WhatADeviceFoundTooMuchInIsLeftAndCounted) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    use("alert udp any any -> any any (content:\"evil\"; sid:1;)\n", drops);
    const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).payload({'e', 'v', 'i', 'l'}).build();
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const KeyHits hits{inspection_->rules().generation(), nullptr, match::max_hits + 1, false};
    late();
    const std::uint64_t searched = counters().searched;
    EXPECT_EQ(inspection_->frame(frame, now_ += 1000, hits).drop, drops);
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_EQ(counters().searched, searched);
    EXPECT_EQ(counters().left, 1U);
    EXPECT_EQ(counters().overloaded, 1U);
    in_time();
    EXPECT_FALSE(inspection_->frame(frame, now_ += 1000, hits).drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
  }
}

// Wherever the device's key is in it: an attack whose first part came in a late batch, and whose last byte does not, is
// found.
TEST_F(InspectionLateTest, WhatBeganInAPieceThatWasLeftIsFoundWhenItEnds) {
  const std::string pattern = "an-evil-pattern-that-is-longer-than-any-key";
  std::uint64_t left = 0;
  for (std::size_t cut = 1; cut < pattern.size(); ++cut) {
    SCOPED_TRACE(cut);
    use("alert tcp any any -> any 80 (content:\"" + pattern + "\"; sid:1;)\n", false, true);
    up("what the device has looked at. ");
    late();
    up(pattern.substr(0, cut));
    left += counters().left;
    in_time();
    up(pattern.substr(cut));
    EXPECT_THAT(alerts(), ElementsAre(1));
  }
  EXPECT_GT(left, 0U) << "some of these pieces had keys";
}

// HTTP that its first bytes do not give away: where frames pass, it is parsed, and nobody searches it; where they are
// dropped, so is the frame that shows it, and it is inspected when it comes again.
TEST_F(InspectionLateTest, HttpThatIsOnlyFoundToBeWhenItIsParsedIsLeftOrComesAgain) {
  for (const auto& pieces :
       {std::vector<std::string>{"G", "ET /evil HTTP/1.1\r\n\r\n"}, {"SEA", "RCH /evil HTTP/1.1\r\n\r\n"}}) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(pieces.front() + (drops ? ", drop" : ", pass"));
      use(of_uris, drops);
      late();
      EXPECT_FALSE(up(pieces[0]).drop);
      EXPECT_EQ(up(pieces[1]).drop, drops);
      if (drops) {
        EXPECT_THAT(alerts(), IsEmpty());
        EXPECT_EQ(counters().http_left, 1U);
        in_time();
        EXPECT_FALSE(again(pieces[1]).drop);
      }
      EXPECT_EQ(alerts().size(), drops ? 1U : 0U);
      EXPECT_EQ(counters().left, drops ? 0U : 1U);
      EXPECT_EQ(counters().overloaded, 1U);
      EXPECT_EQ(http().stopped[gap], 0U);
      in_time();
      up(evil);
      EXPECT_THAT(alerts(), ElementsAre(1)) << "the connection is parsed on";
    }
  }
}

// Not only of flows that are known to be HTTP, and whether or not a device has looked at the payload: a flow's first
// request would go by unseen, and never come again.
TEST_F(InspectionLateTest, AFlowsFirstBytesAreDroppedIfTheyLookLikeHttp) {
  struct Case {
    std::string text;
    bool dropped;
  };
  for (const auto& [text, dropped] : {Case{evil, true},
                                      {"\r\nPOST /evil HTTP/1.1\r\n\r\n", true},
                                      {"SSH-2.0 a client", false},
                                      {"GETTING /evil HTTP/1.1\r\n\r\n", true},
                                      {"GETTING evil", false}}) {
    for (const bool by_device : {false, true}) {
      SCOPED_TRACE(text + (by_device ? " by keys" : ""));
      use(of_uris, true, by_device);
      late();
      const Judgement judgement = up(text);
      EXPECT_EQ(judgement.drop, dropped);
      EXPECT_EQ(counters().http_left, dropped ? 1U : 0U);
      EXPECT_EQ(counters().overloaded, dropped ? 1U : 0U);
      EXPECT_THAT(alerts(), IsEmpty());
      if (!dropped) continue;
      EXPECT_EQ(judgement.why, DropReason::budget);
      in_time();
      EXPECT_FALSE(again(text).drop);
      EXPECT_THAT(alerts(), ElementsAre(1)) << "it is sent again";
    }
  }
}

// A connection that was HTTP is not for ever: nothing would be parsed of what is dropped, and of a long download that
// is most.
TEST_F(InspectionLateTest, WhatIsParsedNoFurtherGoesOn) {
  constexpr std::uint64_t depth = 400;
  struct Case {
    const char* what;
    std::vector<std::pair<bool, std::string>> before;  // to the server, what
    bool up_dropped, down_dropped;
  };
  const std::string request = "GET / HTTP/1.1\r\n\r\n", header = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
  const std::string filled = header + std::string(depth - header.size(), 'x');
  const Case cases[] = {
      {"an answer", {{true, request}, {false, header}}, true, true},
      {"an answer up to the depth", {{true, request}, {false, filled}}, true, false},
      {"beyond", {{true, request}, {false, filled}, {false, "more"}}, true, false},
      {"across", {{true, request}, {false, header}, {false, std::string(depth, 'x')}}, true, false},
      {"another protocol",
       {{true, "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"},
        {false, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"}},
       false,
       false},
      {"a tunnel", {{true, "CONNECT a:443 HTTP/1.1\r\n\r\n"}, {false, "HTTP/1.1 200 OK\r\n\r\n"}}, false, false},
      {"no HTTP", {{true, "SSH-2.0 a client\r\n"}, {false, "SSH-2.0 a server\r\n"}}, false, false},
  };
  for (const Case& one : cases) {
    for (const bool up : {true, false}) {
      SCOPED_TRACE(std::string(one.what) + (up ? ", up" : ", down"));
      depth_ = depth;
      use(of_uris, true);
      in_time();
      for (const auto& [to_server, text] : one.before) EXPECT_FALSE(segment(to_server, ack, text).drop);
      late();
      const bool dropped = up ? one.up_dropped : one.down_dropped;
      EXPECT_EQ(segment(up, ack, evil).drop, dropped);
      EXPECT_EQ(counters().http_left, dropped ? 1U : 0U);
      EXPECT_EQ(counters().overloaded, dropped ? 1U : 0U);
    }
  }
}

// No rule is asked of it, so nothing is lost of it: it is not dropped, and no metric says that it was left.
TEST_F(InspectionLateTest, AFlowThatARuleLetsPassGoesOn) {
  for (const bool drops : {false, true}) {
    for (const bool by_device : {false, true}) {
      SCOPED_TRACE(std::string(drops ? "drop" : "pass") + (by_device ? " by keys" : ""));
      use(std::string(of_uris) + "pass tcp any any -> any 80 (content:\"friend\"; sid:2;)\n" +
              "alert tcp any any -> any 80 (content:\"keyword\"; sid:3;)\n",
          drops, by_device);
      up("GET /friend HTTP/1.1\r\n\r\n");
      late();
      EXPECT_FALSE(up(evil).drop);
      EXPECT_FALSE(up("GET /keyword HTTP/1.1\r\n\r\n").drop);
      EXPECT_EQ(counters().http_left, 0U);
      EXPECT_EQ(counters().left, 0U);
      EXPECT_EQ(counters().overloaded, 0U);
      EXPECT_EQ(http().transactions, 3U);
      EXPECT_EQ(http().stopped[gap], 0U);
      EXPECT_THAT(alerts(), IsEmpty());
    }
  }
}

// Such rules need nothing that a device finds, of whatever else it has found something.
TEST_F(InspectionLateTest, RulesWithoutContentsHoldForALateFrameToo) {
  for (const bool drops : {false, true}) {
    for (const char* payload : {"a thing", "a pattern"}) {
      SCOPED_TRACE(std::string(payload) + (drops ? ", drop" : ", pass"));
      use("alert tcp any any -> any any (content:\"pattern\"; sid:1;)\n"
          "drop tcp any any -> any 80 (flags:PA; sid:2;)\n",
          drops, true);
      late();
      EXPECT_TRUE(segment(true, ack | packet::tcp_psh, payload).drop);
    }
  }
}

// What waited has been sent on before: where frames are dropped, all of the flow is that comes later.
TEST_F(InspectionLateTest, HttpThatOneFrameReleasesIsLeftWhenItsTimeIsOver) {
  for (const bool drops : {false, true}) {
    for (const bool is_late : {false, true}) {
      SCOPED_TRACE(std::string(is_late ? "late" : "in time") + (drops ? ", drop" : ", pass"));
      use("alert http any any -> any any (http.uri; content:\"/first\"; sid:1;)\n", drops);
      up("GET / HTTP/1.1\r\n\r\n");
      const std::string first = "GET /first HTTP/1.1\r\n\r\n";
      const std::uint32_t begin = sequence_[0];
      sequence_[0] += static_cast<std::uint32_t>(first.size());
      for (int i = 0; i < 100; ++i) up("GET /held HTTP/1.1\r\n\r\n");
      const std::uint32_t end = sequence_[0];
      sequence_[0] = begin;
      in_time();
      // Behind the look before the stream takes the frame, and before the first that waited.
      if (is_late) at_alert_ = [&] { inspection_->set_looks_until(0); };
      const Judgement judgement = up(first);
      at_alert_ = {};
      sequence_[0] = end;
      EXPECT_EQ(judgement.drop, is_late && drops);
      EXPECT_EQ(http().transactions, is_late ? 2U : 102U);
      in_time();
      EXPECT_EQ(up("GET / HTTP/1.1\r\n\r\n").drop, is_late && drops);
      EXPECT_EQ(counters().http_left != 0, is_late);
    }
  }
}

// Each frame since the thread last looked may take a tenth of what it may be stalled for; it is busy then, not stalled.
// In ticks that are longer than any test takes.
TEST_F(InspectionLateTest, AThreadIsStalledWhenItTakesLongerThanItsFramesCan) {
  constexpr std::uint64_t stall = std::uint64_t{1} << 34;
  struct Case {
    unsigned frames;         // with the one that is looked at
    std::uint64_t quarters;  // of `stall`: since the thread has looked
    bool left;
  };
  for (const Case& one : {Case{1, 3, true}, Case{1, 6, false}, Case{10, 6, true}, Case{10, 10, false},
                          Case{30, 14, true}, Case{30, 18, false}}) {
    SCOPED_TRACE(std::to_string(one.frames) + " frames, " + std::to_string(one.quarters) + " quarters");
    use(of_uris, false);
    up("GET / HTTP/1.1\r\n\r\n");
    in_time();
    const std::uint64_t looked = rte_rdtsc() - one.quarters * (stall / 4);
    inspection_->set_looks_until(looked + stall / 4, looked, stall);
    for (unsigned i = 1; i < one.frames; ++i) segment(true, ack);
    up(evil);
    EXPECT_EQ(counters().http_left, one.left ? 1U : 0U);
    EXPECT_EQ(alerts().size(), one.left ? 0U : 1U);
  }
}

// Nor by the counter of another core that is ahead.
TEST_F(InspectionLateTest, ABatchWithoutAnyTimeGetsNoneByBeingAway) {
  for (const std::uint64_t ahead : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    SCOPED_TRACE(ahead);
    use(of_uris, false);
    in_time();
    inspection_->set_looks_until(0, rte_rdtsc() + ahead, 1);
    up(evil);
    EXPECT_EQ(counters().http_left, 1U);
    EXPECT_THAT(alerts(), IsEmpty());
  }
}

}  // namespace
}  // namespace sluice::function
