// HTTP beyond a limit: the flow is dropped from there on, or goes on uninspected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flow/http/packed_test.h"
#include "function/inspect/http_limit_notes.h"
#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;
constexpr std::size_t mss = 1400;

class InspectionHttpLimit : public testing::Test, public AlertSink {
 protected:
  void use(bool drops, const std::string& more = "", const std::string& action = "drop") {
    auto rules =
        test::rules_of(action + " http any any -> any any (http.user_agent; content:\"EVILUA\"; sid:1;)\n" + more);
    ASSERT_NE(rules, nullptr);
    InspectionSettings settings;
    settings.drop_on_http_limit = drops;
    settings.conversations.streams.drop_without_capacity = settings.conversations.streams.drop_conflicts = true;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(std::move(rules)),
                                               test::small_settings(settings), *this);
    sids_.clear();
    drops_.clear();
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    segment(true, syn);
    segment(false, syn | ack);
    segment(true, ack);
  }
  void alert(const Alert& alert) override { sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid); }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    const Bytes bytes = test::segment_of(to_server, flags, mine, sequence_[to_server ? 1 : 0], text).build();
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & syn) != 0 ? 1 : 0);
    return test::inspect(*inspection_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000,
                         by_device_);
  }
  // In segments; how many of them are dropped.
  int say(bool to_server, const std::string& text) {
    int dropped = 0;
    for (std::size_t at = 0; at < text.size(); at += mss) {
      dropped += segment(to_server, ack, text.substr(at, mss)).drop ? 1 : 0;
    }
    return dropped;
  }

  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  bool by_device_ = false;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;
  std::unique_ptr<Inspection> inspection_;  // last: it may report at its end
};

const std::string evil = "User-Agent: EVILUA\r\n\r\n";

std::string many_fields() {
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 1024; ++i) text += "h" + std::to_string(i) + ": v\r\n";
  return text + evil;
}

std::string in_codings() {
  std::string body = "body";
  for (int i = 0; i < 3; ++i) body = flow::http::test::packed(body, 31);
  return "POST / HTTP/1.1\r\nContent-Encoding: gzip,gzip,gzip\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST_F(InspectionHttpLimit, WhatGoesBeyondItDoesNotPassWhole) {
  const std::pair<const char*, std::string> cases[] = {
      {"a header", "GET / HTTP/1.1\r\nX: " + std::string(19'000, 'a') + "\r\n" + evil},
      {"a request line", "GET /" + std::string(30'000, 'a') + " HTTP/1.1\r\n" + evil},
      {"fields", many_fields()},
      {"codings", in_codings()},
      {"a chunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"},
      {"a length", "POST / HTTP/1.1\r\nContent-Length: 1_2\r\n\r\nabcdevilbody"},
  };
  for (const auto& [what, text] : cases) {
    for (const bool drops : {false, true}) {
      for (const bool by_device : {false, true}) {
        SCOPED_TRACE(std::string(what) + (drops ? ", drop" : ", pass") + (by_device ? ", by a device" : ""));
        by_device_ = by_device;
        use(drops);
        EXPECT_EQ(say(true, text) != 0, drops);
        EXPECT_EQ(segment(false, ack, "HTTP/1.1 200 ok\r\nContent-Length: 0\r\n\r\n").drop, drops);
        EXPECT_EQ(segment(true, ack, "GET / HTTP/1.1\r\n\r\n").drop, drops);
        EXPECT_EQ(drops_.empty(), !drops);
        if (!drops) continue;
        EXPECT_EQ(drops_.front(), DropReason::http_limit);
        EXPECT_EQ(std::count(drops_.begin(), drops_.end(), DropReason::http_limit), 1) << "then it is the flow that is";
        EXPECT_EQ(drops_.back(), DropReason::flow_drop);
        EXPECT_THAT(sids_, IsEmpty());
      }
    }
  }
}

// Nothing of it would be dropped if it were inspected.
TEST_F(InspectionHttpLimit, WhereNoRuleDropsItGoesOn) {
  use(true, "", "alert");
  EXPECT_EQ(say(true, "GET / HTTP/1.1\r\nX: " + std::string(19'000, 'a') + "\r\n" + evil), 0);
  EXPECT_EQ(say(true, "GET / HTTP/1.1\r\n\r\n"), 0);
  EXPECT_THAT(drops_, IsEmpty());
}

// What still was inspected is reported, and the rule is why.
TEST_F(InspectionHttpLimit, ARuleThatHoldsBeforeItIsReported) {
  use(true);
  std::string text = many_fields();
  text.insert(text.find("h0:"), "User-Agent: EVILUA\r\n");
  say(true, text);
  EXPECT_THAT(sids_, ElementsAre(1));
  EXPECT_EQ(drops_.front(), DropReason::rules);
}

TEST_F(InspectionHttpLimit, OtherProtocolsAndWhatARuleLetsByGoOn) {
  use(true);
  EXPECT_EQ(say(true, "\x16\x03" + std::string(50'000, 'a')), 0);
  EXPECT_EQ(say(false, "\x16\x03" + std::string(50'000, 'a')), 0);
  use(true, "pass http any any -> any any (http.uri; content:\"/good\"; sid:2;)\n");
  EXPECT_EQ(say(true, "GET /good HTTP/1.1\r\nX: " + std::string(30'000, 'a') + "\r\n\r\n"), 0);
  EXPECT_THAT(drops_, IsEmpty());
}

// Refused, HTTP/2's preface is a request like others, and what follows it is HTTP.
TEST_F(InspectionHttpLimit, HttpGoesOnBehindAPrefaceThatTheServerRefuses) {
  for (const bool answered : {false, true}) {
    SCOPED_TRACE(answered);
    use(true);
    EXPECT_EQ(say(true, "PRI * HTTP/2.0\r\n\r\n"), 0);
    const std::string no = answered ? "HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n" : "";
    EXPECT_EQ(say(false, no), 0);
    EXPECT_EQ(say(true, "GET / HTTP/1.1\r\n" + evil), 1);
    EXPECT_THAT(sids_, ElementsAre(1));
  }
}

TEST(HttpLimitNotes, ReportWhichSettingsAndHowManyConversationsAtTimes) {
  HttpLimitNotes notes;
  constexpr std::uint64_t later = HttpLimitNotes::interval;
  EXPECT_EQ(notes.line({}, 0, true), "");
  EXPECT_EQ(notes.line({0, 1}, 1, true),
            "inspect: 1 HTTP conversation beyond a limit since this was last said, dropped from there on "
            "(on_http_limit): header_limit (1)");
  EXPECT_EQ(notes.line({0, 2}, later, true), "") << "too soon";
  EXPECT_EQ(
      notes.line({0, 3, 0, 1, 0, 1, 1, 2}, later + 1, false),
      "inspect: 7 HTTP conversations beyond a limit since this was last said, inspected no further, or not whole, "
      "and let by (on_http_limit): header_limit (2), header_fields (1), chunks of a request that cannot be read "
      "(1), requests whose end servers read in more than one way (1), http_memory or http used up (2)");
  EXPECT_EQ(notes.line({0, 3, 0, 1, 0, 1, 1, 2}, 3 * later, true), "");
}

}  // namespace
}  // namespace sluice::function
