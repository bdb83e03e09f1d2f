// HTTP when its memory or records are used up: rules hold on for whoever goes on, and what cannot be inspected is
// dropped, or goes on uninspected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "function/inspect/http_capacity_notes.h"
#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;
constexpr std::size_t mss = 1400;
constexpr std::uint16_t first = 4000, others = 5000, last = 6000;  // ports of clients

class InspectionHttpCapacity : public testing::Test, public AlertSink {
 protected:
  void use(bool drops, std::uint32_t connections, std::size_t bytes, const std::string& more = "") {
    auto rules = test::rules_of(
        "drop http any any -> any any (http.uri; content:\"/evil\"; sid:1;)\n"
        "drop http any any -> any any (http.request_body; content:\"evil-body\"; sid:2;)\n" +
        more);
    ASSERT_NE(rules, nullptr);
    InspectionSettings settings = test::small_settings();
    settings.drop_on_http_limit = drops;
    settings.conversations.extras = 256;
    settings.conversations.http_connections = connections;
    settings.conversations.http_transactions = 2 * connections;
    settings.conversations.http_bytes = bytes;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(std::move(rules)), settings, *this);
    sids_.clear();
    drops_.clear();
    clients_.clear();
  }
  void alert(const Alert& alert) override { sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid); }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }

  bool segment(std::uint16_t port, bool to_server, std::uint8_t flags, const std::string& text = "") {
    auto& sequence = clients_.try_emplace(port, std::array<std::uint32_t, 2>{1000, 5000}).first->second;
    std::uint32_t& mine = sequence[to_server ? 0 : 1];
    const Bytes bytes = test::segment_of(to_server, flags, mine, sequence[to_server ? 1 : 0], text, port).build();
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & syn) != 0 ? 1 : 0);
    return inspection_->frame({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000).drop;
  }
  // In segments, behind a handshake; whether one of them is dropped.
  bool says(std::uint16_t port, const std::string& text) {
    if (!clients_.contains(port)) {
      segment(port, true, syn);
      segment(port, false, syn | ack);
      segment(port, true, ack);
    }
    bool dropped = false;
    for (std::size_t at = 0; at < text.size(); at += mss) dropped |= segment(port, true, ack, text.substr(at, mss));
    return dropped;
  }
  bool answer(std::uint16_t port) { return segment(port, false, ack, "HTTP/1.1 200 ok\r\nContent-Length: 0\r\n\r\n"); }

  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  std::map<std::uint16_t, std::array<std::uint32_t, 2>> clients_;
  std::uint64_t now_ = 0;
  std::unique_ptr<Inspection> inspection_;  // last: it may report at its end
};

std::string post(std::size_t length, const std::string& body) {
  return "POST /fine HTTP/1.1\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" + body;
}

const std::string get = "GET /fine HTTP/1.1\r\n\r\n", evil = "GET /evil HTTP/1.1\r\n\r\n";

// Uploads that do not go on hold all of the memory, and give it to those that come. What they say then is not
// inspected.
TEST_F(InspectionHttpCapacity, UploadsThatAreSilentLeaveMemoryToOthers) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    use(drops, 128, 1U << 20);
    ASSERT_FALSE(says(first, get));
    ASSERT_FALSE(answer(first));
    for (std::uint16_t i = 0; i < 40; ++i) {
      ASSERT_FALSE(says(others + i, post(200'000, std::string(60'000, 'a'))));
    }
    EXPECT_TRUE(says(last, post(60'009, std::string(60'000, 'b') + "evil-body")));
    EXPECT_TRUE(says(last + 1, evil));
    EXPECT_TRUE(says(last + 2, "GET /fine HTTP/1.1\r\nX: " + std::string(14'000, 'a') + "\r\n\r\n" + evil));
    EXPECT_TRUE(says(first, evil)) << "it was there before them";
    EXPECT_THAT(sids_, ElementsAre(2, 1, 1, 1));
    EXPECT_EQ(inspection_->conversations().http_counters().bodies_lost, 0U);
    EXPECT_EQ(says(others, "evil-body"), drops);
    EXPECT_FALSE(says(others + 39, "aaaa")) << "there was no need of the last one's";
  }
}

// Connections that are kept alive take the records of each other, and lose nothing.
TEST_F(InspectionHttpCapacity, ConnectionsThatAreKeptAliveLeaveRecordsToOthers) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    use(drops, 16, 4U << 20, "alert http any any -> any any (http.uri; content:\"/fine\"; sid:3;)\n");
    for (std::uint16_t i = 0; i < 20; ++i) {
      ASSERT_FALSE(says(first + i, get));
      ASSERT_FALSE(answer(first + i));
    }
    ASSERT_FALSE(says(first, get));
    EXPECT_EQ(sids_.size(), 21U) << "the first one's second request is not its first";
    ASSERT_FALSE(answer(first));
    sids_.clear();
    EXPECT_TRUE(says(first + 1, evil));
    EXPECT_TRUE(says(first + 2, post(9, "evil-body")));
    EXPECT_THAT(sids_, ElementsAre(1, 3, 2));
    EXPECT_TRUE(says(first, evil)) << "of those that have given way to the two";
    EXPECT_EQ(inspection_->conversations().http_counters().limited[unsigned(flow::http::Limit::memory)], 0U);
  }
}

// Within a request it would go on uninspected.
TEST_F(InspectionHttpCapacity, WhatGaveWayWithinAMessageIsDropped) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    use(drops, 16, 4U << 20);
    ASSERT_FALSE(says(first, "GET /ev"));
    ASSERT_FALSE(says(first + 1, "\x16\x03"));
    for (std::uint16_t i = 0; i < 20; ++i) ASSERT_FALSE(says(others + i, get));
    EXPECT_EQ(says(first, "il HTTP/1.1\r\n\r\n"), drops);
    EXPECT_EQ(says(first, evil), drops);
    EXPECT_FALSE(says(first + 1, "aaaa")) << "another protocol's";
    EXPECT_THAT(sids_, IsEmpty());
    const std::vector<DropReason> expected(drops ? 2 : 0, DropReason::flow_drop);
    EXPECT_EQ(drops_, expected);
  }
}

// Nobody else has any to give.
TEST_F(InspectionHttpCapacity, WithoutMemoryABodyIsDropped) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    use(drops, 16, 1U << 20);
    ASSERT_FALSE(says(first, post(90'000, std::string(2'000, 'a'))));
    flow::BlockPool& pool = inspection_->conversations().http_pool();
    std::vector<void*> taken;
    for (std::size_t size = flow::BlockPool::largest; size >= flow::BlockPool::smallest; size /= 2) {
      while (void* const block = pool.take(size)) taken.push_back(block);
    }
    EXPECT_EQ(says(first, std::string(20'000, 'a')), drops);
    EXPECT_EQ(drops_.empty() ? DropReason::rules : drops_.front(), drops ? DropReason::http_limit : DropReason::rules);
    for (void* const block : taken) pool.give(block);
  }
}

TEST(HttpCapacityNotes, ReportWhatRanOutAtTimes) {
  HttpCapacityNotes notes;
  constexpr std::uint64_t later = HttpCapacityNotes::interval;
  EXPECT_EQ(notes.line({}, 0), "");
  EXPECT_EQ(notes.line({1, 0, 2}, 1),
            "inspect: capacity for HTTP has run out since this was last said: conversations without memory 1 "
            "(inspect_http_no_memory), evicted for others 0 (inspect_http_evicted), bodies cut short 2 "
            "(inspect_http_bodies_lost); [inspect] http_memory and http say how much there is");
  EXPECT_EQ(notes.line({1, 1, 2}, later), "") << "too soon";
  EXPECT_THAT(notes.line({1, 5, 2}, later + 1),
              testing::HasSubstr("memory 0 (inspect_http_no_memory), evicted for others 5 "));
  EXPECT_EQ(notes.line({1, 5, 2}, 3 * later), "");
}

}  // namespace
}  // namespace sluice::function
