// HTTP in conversations with rules: what takes more time than a frame has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <zlib.h>

#include "flow/http/brotli_bodies_test.h"
#include "function/inspect/inspection_http_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t ack = packet::tcp_ack;
constexpr auto gap = static_cast<std::size_t>(flow::http::StopReason::gap);

// A frame that brings far more of a body than its own bytes, as compressed ones do, has the batch's time for it, and
// ordinary ones are not concerned.
TEST_F(InspectionHttpTest, SearchingBeyondWhatAFrameBringsCountsAsTime) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  const std::string body(60000, 'x');
  std::string small(1000, '\0');
  uLongf size = small.size();
  ASSERT_EQ(
      compress(reinterpret_cast<Bytef*>(small.data()), &size, reinterpret_cast<const Bytef*>(body.data()), body.size()),
      Z_OK);
  small.resize(size);
  const auto drops = [&](std::uint64_t ticks, const std::string& coding, const std::string& bytes) {
    use("alert http any any -> any any (file_data; content:\"the end\"; sid:1;)\n", settings);
    request();
    response("HTTP/1.1 200 ok\r\nContent-Encoding: " + coding + "\r\nContent-Length: " + std::to_string(bytes.size()) +
             "\r\n\r\n");
    bool dropped = false;
    for (std::size_t at = 0; at < bytes.size(); at += 1400) {
      inspection_->begin(ticks);
      dropped |= segment(false, ack, bytes.substr(at, 1400)).drop;
    }
    EXPECT_EQ(inspection_->counters().overloaded, dropped ? 1U : 0U);
    return dropped;
  };
  EXPECT_FALSE(drops(1, "identity", body)) << "an ordinary download";
  EXPECT_TRUE(drops(1, "deflate", small));
  EXPECT_FALSE(drops(ConfirmTime::unlimited, "deflate", small));
}

// However little comes out: here a gzip header whose name never ends, within another gzip.
TEST_F(InspectionHttpTest, DecodingFarMoreThanAFrameBringsCountsAsTimeAndEnds) {
  std::string inner("\x1f\x8b\x08\x08\0\0\0\0\0\x03", 10);
  inner += std::string(1'000'000, 'a');
  std::string body(4000, '\0');
  uLongf size = body.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(body.data()), &size, reinterpret_cast<const Bytef*>(inner.data()),
                     inner.size()),
            Z_OK);
  body.resize(size);
  constexpr std::uint64_t kilobyte = 4 * 1024;  // in ticks
  struct Case {
    std::uint64_t ticks, most;
    bool is_overload;
  };
  for (const Case& one :
       {Case{100 * kilobyte, ~std::uint64_t{0}, true}, Case{5000 * kilobyte, 100 * kilobyte, false}}) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(std::to_string(one.ticks) + (drops ? ", drop" : ", pass"));
      InspectionSettings settings;
      settings.drop_on_overload = drops;
      use("alert http any any -> any any (file_data; content:\"evil\"; sid:1;)\n", settings);
      inspection_->set_most_decoding(one.most);
      request();
      inspection_->begin(one.ticks);
      const Judgement judgement = segment(false, ack,
                                          "HTTP/1.1 200 ok\r\nContent-Encoding: deflate, deflate\r\nContent-Length: " +
                                              std::to_string(body.size()) + "\r\n\r\n" + body);
      EXPECT_EQ(judgement.drop, one.is_overload && drops);
      EXPECT_EQ(inspection_->counters().overloaded, one.is_overload ? 1U : 0U);
      EXPECT_GT(inspection_->spent(), 50 * kilobyte);
      EXPECT_LE(inspection_->spent(), 120 * kilobyte);
      EXPECT_EQ(inspection_->conversations().http_counters().bombs, 1U);
      EXPECT_EQ(inspection_->conversations().http_counters().transactions, 1U);
    }
  }
}

// br is decoded a window at a time. What that was too much for its frame, those behind it have less.
TEST_F(InspectionHttpTest, ABombInBrIsPaidForByItsBatch) {
  constexpr std::uint64_t kilobyte = 4 * 1024;  // in ticks
  use("alert http any any -> any any (file_data; content:\"evil\"; sid:1;)\n");
  inspection_->set_most_decoding(100 * kilobyte);
  const std::string bomb = flow::http::test::brotli_stored(flow::http::test::brotli_bomb());
  std::string all;
  for (int i = 0; i < 5; ++i) {
    request();
    all += "HTTP/1.1 200 ok\r\nContent-Encoding: br, br\r\nContent-Length: " + std::to_string(bomb.size()) +
           "\r\n\r\n" + bomb;
  }
  inspection_->begin(1000 * kilobyte);
  response(all);
  EXPECT_GE(inspection_->spent(), 200 * kilobyte);
  EXPECT_LE(inspection_->spent(), 300 * kilobyte);
}

// Traffic without prefilter matches is not concerned by the time that confirming may take.
TEST_F(InspectionHttpTest, WithoutTimeBodiesAreSearchedAndGoOn) {
  use("alert http any any -> any any (file_data; content:\"first\"; content:\"two\"; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 100\r\n\r\nfir");
  inspection_->begin(0);
  response("an ordinary piece");
  EXPECT_EQ(inspection_->counters().left, 0U);
  EXPECT_EQ(inspection_->counters().overloaded, 0U);
}

// A lane that is behind lets HTTP go by, where it may.
TEST_F(InspectionHttpTest, WithoutTimeAndBehindBodiesGoBy) {
  use("alert http any any -> any any (file_data; content:\"first\"; content:\"two\"; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 100\r\n\r\nfir");
  inspection_->begin(0);
  inspection_->set_late_from(0);
  response("an ordinary piece");
  EXPECT_EQ(inspection_->counters().left, 1U);
  EXPECT_EQ(inspection_->counters().overloaded, 1U);
  inspection_->begin(0);
  response("another");
  EXPECT_EQ(inspection_->counters().overloaded, 1U) << "until the next begin()";
}

// A body goes on behind what was not parsed of it.
TEST_F(InspectionHttpTest, WithoutTimeToParseBodiesGoBy) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n"
      "alert http any any -> any any (file_data; content:\"first\"; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 20\r\n\r\n");
  inspection_->begin(0);
  inspection_->set_looks_until(0);
  response("0123456789 first,");
  EXPECT_EQ(inspection_->counters().http_left, 1U);
  EXPECT_EQ(inspection_->counters().overloaded, 1U);
  EXPECT_EQ(inspection_->conversations().http_counters().stopped[gap], 0U);
  inspection_->begin(match::Detector::unlimited);
  response("end");
  EXPECT_THAT(alerts(), IsEmpty());
  post("GET /evil HTTP/1.1\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1)) << "the connection is parsed on";
}

// What went by was no body: the connection is HTTP no further, its streams are inspected.
TEST_F(InspectionHttpTest, WithoutTimeToParseHeadersEndHttp) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"stream\"; sid:3;)\n");
  inspection_->begin(0);
  inspection_->set_looks_until(0);
  post("GET /evil HTTP/1.1\r\n\r\n");
  EXPECT_EQ(inspection_->conversations().http_counters().stopped[gap], 1U);
  inspection_->begin(match::Detector::unlimited);
  post("GET /evil HTTP/1.1\r\n\r\n");
  EXPECT_EQ(inspection_->counters().http_left, 1U) << "there is nothing to be parsed";
  EXPECT_THAT(alerts(), IsEmpty());
  post("stream");
  EXPECT_THAT(alerts(), ElementsAre(3));
}

// What a device has found in a frame goes by, too; what it has not found is looked at.
TEST_F(InspectionHttpTest, WithoutTimeToLookWhatADeviceFoundIsLeft) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    InspectionSettings settings;
    settings.drop_on_overload = drops;
    by_device_ = true;
    use("alert tcp any any -> any any (content:\"pattern\"; sid:1;)\n", settings);
    const std::uint32_t again = sequence_[0];
    inspection_->begin(match::Detector::unlimited);
    inspection_->set_looks_until(0);
    EXPECT_EQ(segment(true, ack, "a pattern").drop, drops);
    EXPECT_EQ(inspection_->counters().left, 1U);
    EXPECT_EQ(inspection_->counters().overloaded, 1U);
    EXPECT_EQ(inspection_->counters().confirmed, 0U);
    inspection_->begin(match::Detector::unlimited);
    if (drops) sequence_[0] = again;
    EXPECT_FALSE(segment(true, ack, "a pattern").drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
  }
}

// While the thread does not run it does not use up its time.
TEST_F(InspectionHttpTest, AThreadThatWasAwayHasItsTimeStill) {
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n");
  constexpr std::uint64_t time = 100'000, stall = 1'000'000'000;
  const auto left_after = [&](std::uint64_t ticks) {
    inspection_->begin(match::Detector::unlimited);
    const std::uint64_t now = rte_rdtsc();
    inspection_->set_looks_until(now - ticks + time, now - ticks, stall);
    const std::uint64_t left = inspection_->counters().http_left;
    request();
    return inspection_->counters().http_left != left;
  };
  EXPECT_FALSE(left_after(2 * stall));
  EXPECT_TRUE(left_after(stall / 2)) << "it was busy";
}

// What is dropped is nothing to the stream: sent again it is inspected.
TEST_F(InspectionHttpTest, WithoutTimeToParseFramesAreDroppedAndTheirStreamsGoOn) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  use("alert http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n", settings);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 0\r\n\r\n");
  const std::string text = "GET /evil HTTP/1.1\r\n\r\n";
  const std::uint32_t again = sequence_[0];
  inspection_->begin(match::Detector::unlimited);
  inspection_->set_looks_until(0);
  const Judgement judgement = segment(true, ack, text);
  EXPECT_TRUE(judgement.drop);
  EXPECT_EQ(judgement.why, DropReason::budget);
  EXPECT_FALSE(segment(true, ack).drop) << "it brings no bytes";
  EXPECT_EQ(inspection_->counters().http_left, 1U);
  EXPECT_THAT(alerts(), IsEmpty());
  inspection_->begin(match::Detector::unlimited);
  sequence_[0] = again;
  EXPECT_FALSE(segment(true, ack, text).drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Ordinary TCP is found to be none at once.
TEST_F(InspectionHttpTest, WithoutTimeToParseOtherStreamsGoOn) {
  use("alert tcp any any -> any any (content:\"stream\"; sid:3;)\n");
  inspection_->begin(0);
  inspection_->set_looks_until(0);
  post("SSH-2.0 a client");
  EXPECT_EQ(inspection_->counters().http_left, 0U);
  EXPECT_EQ(inspection_->counters().overloaded, 0U);
}

}  // namespace
}  // namespace sluice::function
