// Conversations that a rule has dropped: what they hold is others' at once, and they stay dropped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_frames_trial_test.h"
#include "function/inspect/refused_streams_notes.h"

namespace sluice::function {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, fin = packet::tcp_fin, rst = packet::tcp_rst;

constexpr char in_uri[] = "drop http any any -> any any (http.uri; content:\"/evilpath\"; sid:1;)\n";
constexpr char in_stream[] =
    "drop tcp any any -> any any (flow:established,to_server; content:\"forbidden\"; sid:2;)\n";

class InspectionDropped : public InspectionTest {
 protected:
  Judgement from(std::uint16_t port, bool to_server, std::uint8_t flags, std::uint32_t sequence,
                 std::uint32_t acknowledged, const std::string& text = "") {
    return feed(test::segment_of(to_server, flags, sequence, acknowledged, text, port));
  }
  // A conversation of that client's port begins with a request; whether it is dropped.
  bool asks(std::uint16_t port, const std::string& text) {
    from(port, true, syn, 1000, 0);
    from(port, false, syn | ack, 5000, 1001);
    from(port, true, ack, 1001, 5001);
    return from(port, true, ack, 1001, 5001, text).drop;
  }
  void expect_nothing_held(const char* when) {
    const flow::Conversations& conversations = inspection_->conversations();
    EXPECT_EQ(conversations.extras_in_use(), 0U) << when;
    EXPECT_EQ(conversations.stream_pool().in_use(), 0U) << when;
    EXPECT_EQ(inspection_->conversations().http_pool().in_use(), 0U) << when;
  }
};

const std::string evil = "GET /x HTTP/1.1\r\nX: forbidden-bytes\r\n\r\n";

// Each ends with a FIN, which the server never gets.
TEST_F(InspectionDropped, LeaveTheirRecordsToThoseThatCome) {
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    use(std::string(in_uri) + in_stream);
    for (std::uint16_t port = 4000; port < 4100; ++port) {
      ASSERT_TRUE(asks(port, evil));
      EXPECT_TRUE(from(port, true, ack | fin, 1001 + static_cast<std::uint32_t>(evil.size()), 5001).drop);
    }
    EXPECT_THAT(alerts(), testing::AllOf(testing::SizeIs(100), Each(2)));
    EXPECT_FALSE(asks(4100, "GET /fine HTTP/1.1\r\n\r\n"));
    EXPECT_TRUE(asks(4101, "GET /evilpath HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(alerts(), ElementsAre(1));
    EXPECT_EQ(inspection_->conversations().extras_refused(), 0U);
    EXPECT_EQ(inspection_->conversations().extras_in_use(), 1U);
    // Where all are in use none is asked for again.
    for (std::uint16_t port = 4200; port < 4263; ++port) asks(port, "GET /fine HTTP/1.1\r\n\r\n");
    EXPECT_EQ(inspection_->conversations().extras_in_use(), 64U);
    EXPECT_TRUE(from(4000, true, ack, 1001, 5001, evil).drop);
    EXPECT_EQ(inspection_->conversations().extras_refused(), 0U);
  }
}

TEST_F(InspectionDropped, HoldNothingWhateverComesAndAllOfItIsDropped) {
  const struct {
    const char* what;
    bool to_server;
    std::uint8_t flags;
    std::uint32_t sequence, acknowledged;
    std::string text;
  } cases[] = {{"a retransmission", true, ack, 1001, 5001, "GET /evil"},
               {"what it was completed by", true, ack, 1010, 5001, "path HTTP/1.1\r\n"},
               {"other bytes", true, ack, 1010, 5001, "     HTTP/1.1\r\n\r\n"},
               {"the next ones", true, ack, 1200, 5001, "GET / HTTP/1.1\r\n\r\n"},
               {"an answer", false, ack, 5001, 1010, "HTTP/1.1 200 ok\r\n\r\n"},
               {"an acknowledgment", false, ack, 5001, 1010, ""},
               {"a SYN", true, syn, 90'000, 0, ""},
               {"the client's FIN", true, ack | fin, 1218, 5001, ""},
               {"the server's FIN", false, ack | fin, 5020, 1010, ""},
               {"data behind it", true, ack, 1010, 5001, "path HTTP/1.1\r\n"},
               {"the client's RST", true, rst, 1219, 0, ""},
               {"data behind that", true, ack, 1010, 5001, "path HTTP/1.1\r\n"}};
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    use(in_uri);
    EXPECT_FALSE(asks(4000, "GET /evil"));
    from(4000, false, ack, 5001, 1010, "HTTP/1.1 100 Continue\r\n");
    EXPECT_EQ(inspection_->conversations().extras_in_use(), 1U);
    EXPECT_GT(inspection_->conversations().stream_pool().in_use(), 0U);
    EXPECT_TRUE(from(4000, true, ack, 1010, 5001, "path HTTP/1.1\r\n").drop);
    expect_nothing_held("by the packet that completes it");
    EXPECT_THAT(alerts(), ElementsAre(1));
    for (const auto& one : cases) {
      EXPECT_TRUE(from(4000, one.to_server, one.flags, one.sequence, one.acknowledged, one.text).drop) << one.what;
      expect_nothing_held(one.what);
    }
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_EQ(inspection_->conversations().table().in_use(), 1U);
  }
}

// The line's alert waits for the headers: it is reported before the request is given back.
TEST_F(InspectionDropped, AreReportedWithTheirRequest) {
  class Paths final : public AlertSink {
   public:
    void alert(const Alert& alert) override { all.emplace_back(alert.transaction->uri_raw()); }
    std::vector<std::string> all;
  } paths;
  inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(test::rules_of(in_uri)),
                                             test::small_settings(), paths);
  EXPECT_TRUE(asks(4000, "GET /evilpath HTTP/1.1\r\nHost: x\r\n"));
  expect_nothing_held("in the midst of its headers");
  EXPECT_THAT(paths.all, ElementsAre("/evilpath"));
  inspection_.reset();
}

TEST(RefusedStreamsNotes, ReportHowManyPacketsAtTimes) {
  RefusedStreamsNotes notes;
  constexpr std::uint64_t later = RefusedStreamsNotes::interval;
  EXPECT_EQ(notes.line(0, 0), "");
  EXPECT_THAT(notes.line(1, 1), testing::StartsWith("inspect: 1 packet with data since this was last said, "));
  EXPECT_EQ(notes.line(4, later), "") << "too soon";
  EXPECT_THAT(notes.line(5, later + 1), testing::StartsWith("inspect: 4 packets with data "));
  EXPECT_EQ(notes.line(5, 3 * later), "");
}

}  // namespace
}  // namespace sluice::function
