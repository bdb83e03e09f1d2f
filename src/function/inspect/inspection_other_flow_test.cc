// What a frame makes other flows report, by ending them or taking their capacity, and the frame itself: neither pays
// for the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, fin = packet::tcp_fin;

// Each is a prefilter match in "aaaa bbbb cccc dddd", and holds for nothing.
const std::string dear_rules =
    "drop tcp any any -> any any (content:\"aaaa\"; content:\"qqq\"; sid:1;)\n"
    "drop tcp any any -> any any (content:\"bbbb\"; content:\"qqq\"; sid:2;)\n"
    "drop tcp any any -> any any (content:\"cccc\"; content:\"qqq\"; sid:3;)\n"
    "drop tcp any any -> any any (content:\"dddd\"; content:\"qqq\"; sid:4;)\n";
const std::string dear = "aaaa bbbb cccc dddd";

const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string response = "HTTP/1.1 200 ok\r\nContent-Length: 100\r\n\r\nharmless";
// Of a body that is whole, or will be no more.
const std::string body_rule =
    "alert http any any -> any any (http.response_body; content:\"harmless\"; content:!\"zzz\"; sid:9;)\n";

class InspectionOtherFlowTest : public testing::Test, public AlertSink {
 protected:
  struct Reported {
    std::uint32_t sid;
    std::string ends;
    bool blocked;
    bool operator==(const Reported&) const = default;
  };

  void use(const std::string& text, const InspectionSettings& settings) {
    auto rules = test::rules_of(test::with_policy(text, settings.drop_on_overload));
    ASSERT_NE(rules, nullptr);
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(std::move(rules)), settings, *this);
    reported_.clear();
  }
  static InspectionSettings settings(std::uint32_t budget) {
    InspectionSettings settings = test::small_settings();
    settings.budget = budget;
    settings.drop_on_overload = true;
    return settings;
  }

  void alert(const Alert& alert) override {
    const match::PacketFacts& packet = *alert.packet;
    reported_.push_back({alert.rules->detector().rules().rules[alert.rule].sid,
                         std::to_string(packet.source_port) + " > " + std::to_string(packet.destination_port),
                         alert.blocked});
  }

  // A segment from or to 10.0.0.1's port; sequence numbers begin at 0 behind the SYNs.
  Judgement segment(std::uint16_t port, bool to_server, std::uint8_t flags, std::uint32_t sequence,
                    std::uint32_t acknowledged, const std::string& text = "") {
    const Bytes bytes =
        test::segment_of(to_server, flags, sequence + (to_server ? 1001 : 5001) - ((flags & syn) != 0 ? 1 : 0),
                         acknowledged + (to_server ? 5001 : 1001), text, port)
            .build();
    return inspection_->frame({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000);
  }
  void handshake(std::uint16_t port) {
    segment(port, true, syn, 0, 0);
    segment(port, false, syn | ack, 0, 0);
    segment(port, true, ack, 0, 0);
  }
  // Its body waits for more.
  void answered_request(std::uint16_t port) {
    handshake(port);
    segment(port, true, ack, 0, 0, request);
    segment(port, false, ack, 0, request.size(), response);
  }

  std::vector<Reported> reported_;
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

TEST_F(InspectionOtherFlowTest, HttpThatGivesWayIsNotDroppedForTheFrameThatTakesIt) {
  InspectionSettings one = settings(2);
  one.conversations.http_connections = 1;
  for (const bool is_dear : {false, true}) {
    use(body_rule + dear_rules, one);
    answered_request(4000);
    handshake(5000);
    EXPECT_EQ(segment(5000, true, ack, 0, 0, is_dear ? dear : "hello").drop, is_dear);
    EXPECT_FALSE(segment(4000, false, ack, response.size(), request.size(), "goes on").drop);
    EXPECT_THAT(reported_, ElementsAre(Reported{9, "80 > 4000", false}));
  }
}

// A frame that a rule drops, before its stream takes the other's capacity.
TEST_F(InspectionOtherFlowTest, AlertsOfHttpThatGivesWayAreNotBlockedWithTheFrame) {
  InspectionSettings one = settings(1000);
  one.conversations.http_connections = 1;
  use(body_rule + "drop tcp any any -> any any (content:\"aaaa\"; sid:1;)\n", one);
  answered_request(4000);
  handshake(5000);
  EXPECT_TRUE(segment(5000, true, ack, 0, 0, dear).drop);
  EXPECT_THAT(reported_, ElementsAre(Reported{1, "5000 > 80", true}, Reported{9, "80 > 4000", false}));
}

TEST_F(InspectionOtherFlowTest, AFrameDoesNotPayForAClosedFlowThatItEnds) {
  InspectionSettings one = settings(2);
  one.conversations.extras = 1;
  for (const bool limited : {false, true}) {
    use(dear_rules + "alert tcp any any -> any any (content:\"one rule more\"; sid:5;)\n", one);
    handshake(4000);
    segment(4000, true, ack, 100, 0, dear);  // waits for what is before it
    segment(4000, true, ack | fin, 100 + static_cast<std::uint32_t>(dear.size()), 0);
    segment(4000, false, ack | fin, 0, 0);
    const std::uint64_t left = inspection_->counters().left;
    handshake(5000);
    if (limited) inspection_->begin(1'000'000'000);
    const Judgement judgement = segment(5000, true, ack, 0, 0, "one rule more");
    EXPECT_FALSE(judgement.overload);
    EXPECT_FALSE(judgement.drop);
    EXPECT_EQ(inspection_->counters().left, left + 2) << "of the closed flow";
    EXPECT_THAT(reported_, testing::Contains(Reported{5, "5000 > 80", false}));
  }
}

TEST_F(InspectionOtherFlowTest, AFrameThatUsesUpItsTimeLeavesThatOfOthers) {
  InspectionSettings one = settings(10'000);
  one.conversations.http_connections = 1;
  std::string rules = body_rule, slow(40, 'a');
  for (int i = 1000; i < 1100; ++i) {
    const std::string number = std::to_string(i);
    rules += "alert tcp any any -> any any (content:\"dear" + number + "\"; pcre:\"/(a+)+[bc]" + number +
             "/\"; sid:" + number + ";)\n";
    slow += "dear" + number;
  }
  use(rules, one);
  answered_request(4000);
  handshake(5000);
  inspection_->begin(1 << 21);
  EXPECT_TRUE(segment(5000, true, ack, 0, 0, slow).overload);
  EXPECT_THAT(reported_, ElementsAre(Reported{9, "80 > 4000", false}));
  EXPECT_FALSE(segment(4000, false, ack, response.size(), request.size(), "goes on").drop);
}

TEST_F(InspectionOtherFlowTest, WithoutTimeAnotherFlowIsLeftAndNoFrameIs) {
  // One that decides, by the bit that it sets.
  const std::string rules =
      "alert http any any -> any any (http.response_body; content:\"harmless\"; content:!\"zzz\"; flowbits:set,seen; "
      "sid:9;)\n"
      "drop tcp any any -> any 9 (content:\"of no packet\"; flowbits:isset,seen; sid:10;)\n";
  InspectionSettings one = settings(1000);
  one.conversations.http_connections = 1;
  const struct {
    std::uint64_t ticks;
    bool is_inspected;
  } cases[] = {{0, false}, {1'000'000'000, true}};
  for (const auto& c : cases) {
    use(rules, one);
    answered_request(4000);
    handshake(5000);
    inspection_->begin(c.ticks, 4);
    inspection_->next(4);
    EXPECT_FALSE(segment(5000, true, ack, 0, 0, "hello").drop);
    EXPECT_EQ(reported_.size(), c.is_inspected ? 1U : 0U);
    EXPECT_EQ(inspection_->counters().left, c.is_inspected ? 0U : 1U);
    EXPECT_EQ(inspection_->counters().overloaded, 0U) << "no frame is";
    EXPECT_EQ(segment(4000, false, ack, response.size(), request.size(), "goes on").drop, !c.is_inspected);
  }
}

// Closed, it ends with two pieces that waited, of which the second was released.
TEST_F(InspectionOtherFlowTest, HttpThatALateBatchLeavesOfAnotherFlowIsNotTheFrames) {
  InspectionSettings one = settings(1000);
  one.conversations.extras = 1;
  use(body_rule, one);
  answered_request(4000);
  const auto sent = static_cast<std::uint32_t>(request.size());
  const auto received = static_cast<std::uint32_t>(response.size());
  segment(4000, false, ack, received + 10, sent, "waits");
  segment(4000, false, ack, received + 30, sent, "waits, too");
  segment(4000, true, ack | fin, sent, received);
  segment(4000, false, ack | fin, received + 40, sent);
  handshake(5000);
  inspection_->set_looks_until(0);
  const Judgement judgement = segment(5000, true, ack, 0, 0, "hello");
  EXPECT_FALSE(judgement.drop);
  EXPECT_FALSE(judgement.overload);
  EXPECT_EQ(inspection_->counters().http_left, 1U);
  EXPECT_EQ(inspection_->counters().overloaded, 0U);
}

// The request line is held until the rest of its headers comes; before that, its acknowledgement lets out what the
// server had sent behind a gap.
TEST_F(InspectionOtherFlowTest, HeldAlertsAreReportedOfTheirOwnPacket) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n"
      "alert tcp any any -> any any (flow:to_client; content:\"serverbytes\"; sid:2;)\n"
      "alert http any any -> any any (flow:to_client; file_data; content:\"serverbytes\"; sid:3;)\n",
      settings(1000));
  answered_request(4000);
  const auto sent = static_cast<std::uint32_t>(request.size());
  const auto received = static_cast<std::uint32_t>(response.size());
  segment(4000, false, ack, received + 10, sent, "serverbytes");
  reported_.clear();
  segment(4000, true, ack, sent, received + 21, "GET /evil HTTP/1.1\r\n");
  ASSERT_THAT(reported_, testing::Contains(Reported{1, "4000 > 80", false}));
  for (const Reported& one : reported_) EXPECT_EQ(one.ends, one.sid == 1 ? "4000 > 80" : "80 > 4000");
}

}  // namespace
}  // namespace sluice::function
