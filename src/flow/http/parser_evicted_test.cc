// Who is evicted when memory, records or transactions are wanted, and what becomes of them.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace test;

// What is heard of connections, each known by a number.
struct Heard final : TransactionSink {
  void transaction(Connection& connection, Event event, Transaction& transaction) override {
    if (event == Event::request_line) lines.emplace_back(transaction.number, transaction.uri_raw());
    if (event == Event::request_complete && number_of(connection) == watched) {
      body = transaction.request.body_view();
    }
  }
  void stopped(Connection& connection, StopReason reason) override {
    stops.emplace_back(number_of(connection), reason);
    if (reason == StopReason::set_aside) rest = Parser::rest(connection);
  }
  void limited(Connection& connection, Limit limit) override { limits.emplace_back(number_of(connection), limit); }
  static std::size_t number_of(const Connection& connection) { return reinterpret_cast<std::size_t>(connection.user); }

  using Limits = std::vector<std::pair<std::size_t, Limit>>;
  std::vector<std::pair<std::uint64_t, std::string>> lines;
  std::vector<std::pair<std::size_t, StopReason>> stops;
  Limits limits;
  std::optional<Rest> rest;
  std::size_t watched = 0;
  std::string body;
};

class HttpEvicted : public testing::Test {
 protected:
  void use(std::uint32_t connections, std::uint32_t transactions, std::size_t bytes = 1U << 20) {
    parser_.reset();
    heard_ = {};
    last_ = 0;
    pool_ = std::make_unique<BlockPool>(bytes);
    parser_ = std::make_unique<Parser>(Settings{}, *pool_, connections, transactions, heard_);
  }
  Connection* open(const std::vector<Part>& parts, bool established = true, const Rest& rest = {}) {
    Connection* const connection = parser_->open(established, rest);
    connection->user = reinterpret_cast<void*>(++last_);
    for (const Part& part : parts) parser_->data(*connection, part.direction, part.bytes);
    return connection;
  }
  std::uint64_t stopped(StopReason reason) const { return parser_->counters().stopped[static_cast<unsigned>(reason)]; }

  std::unique_ptr<BlockPool> pool_;
  Heard heard_;
  std::unique_ptr<Parser> parser_;
  std::size_t last_ = 0;  // that was opened: 1 is the first
};

std::string of(std::size_t count) {
  return std::string(count, 'a');
}

const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
const std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string upload = "POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n";
const Part ok = {down, "HTTP/1.1 200 ok\r\nContent-Length: 2\r\n\r\nok"};
const Part post = {up, "POST / HTTP/1.1\r\nContent-Length: 60009\r\n\r\n" + of(60'000) + "evil-body"};

// Whatever it is that they hold. Of what is wanted now nothing is lost.
TEST_F(HttpEvicted, ThoseThatAreSilentLongestGiveWayInThePool) {
  const struct {
    const char* what;
    std::vector<Part> parts;
    StopReason reason;
  } cases[] = {{"bodies", {{up, upload + of(60'000)}}, StopReason::evicted},
               {"headers", {get, {down, "HTTP/1.1 200 ok\r\nA: " + of(17'000)}}, StopReason::evicted},
               {"first lines", {{up, "GET /" + of(17'000)}}, StopReason::evicted},
               {"what may be HTTP/2", {{up, preface + of(60'000)}}, StopReason::evicted},
               {"what was answered",
                {get, {down, "HTTP/1.1 200 ok\r\nContent-Length: 4000\r\n\r\n" + of(4'000)}},
                StopReason::set_aside}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    use(1000, 2000);
    for (int i = 0; i < 300; ++i) {
      const std::size_t before = heard_.stops.size();
      open(one.parts);
      EXPECT_LE(heard_.stops.size(), before + 4 * one.parts.size()) << "a few for each packet";
    }
    heard_.watched = last_ + 1;
    open({post});
    EXPECT_TRUE(heard_.body.ends_with("evil-body"));
    EXPECT_EQ(parser_->counters().bodies_lost, 0U);
    EXPECT_EQ(stopped(StopReason::no_memory), 0U);
    ASSERT_GT(heard_.stops.size(), 10U);
    for (std::size_t i = 0; i < heard_.stops.size(); ++i) {
      EXPECT_EQ(heard_.stops[i], std::pair(i + 1, one.reason)) << "in the order of their last bytes";
    }
    EXPECT_EQ(heard_.limits.size(), one.reason == StopReason::evicted ? heard_.stops.size() : 0U);
  }
}

// Those that lose nothing before others, however long these have been silent; and those that have said something again
// last.
TEST_F(HttpEvicted, WhoseMemoryIsTakenFirst) {
  use(100, 200, 4U << 20);
  Connection* const first = open({{up, upload + of(1000)}});
  Connection* const waits = open({{up, "GET /" + of(1000)}});
  open({{up, upload + of(1000)}});
  open({get, ok});
  Connection* const forged = open({}, false);
  parser_->data(*forged, up, "GET /" + of(1000));
  parser_->data(*first, up, "a");
  std::vector<void*> taken;
  while (void* const block = pool_->take(64U << 10)) taken.push_back(block);
  parser_->data(*first, up, "a");
  using enum StopReason;
  EXPECT_EQ(heard_.stops, (std::vector<std::pair<std::size_t, StopReason>>{
                              {5, evicted}, {4, set_aside}, {2, evicted}, {3, evicted}}));
  EXPECT_EQ(heard_.limits, (Heard::Limits{{2, Limit::memory}, {3, Limit::memory}}));
  EXPECT_EQ(waits->first, nullptr);
  EXPECT_EQ(first->stopped, none) << "not the one that is served";
  parser_->data(*first, up, "a");
  EXPECT_EQ(heard_.stops.size(), 4U);
  for (void* const block : taken) pool_->give(block);
}

TEST_F(HttpEvicted, OneThatIsNotEstablishedTakesNoMemoryOfOthers) {
  use(100, 200, 2U << 20);
  Connection* const forged = open({{up, "G"}}, false);
  open({{up, upload + of(1000)}});
  std::vector<void*> taken;
  while (void* const block = pool_->take(64U << 10)) taken.push_back(block);
  parser_->data(*forged, up, get.bytes.substr(1));
  EXPECT_EQ(heard_.stops, (std::vector{std::pair(std::size_t{1}, StopReason::no_memory)}));
  EXPECT_TRUE(heard_.limits.empty()) << "it is parsed when it is established";
  for (void* const block : taken) pool_->give(block);
}

// Small blocks that are held everywhere leave none that is large enough.
TEST_F(HttpEvicted, APoolInSmallPiecesIsFull) {
  use(1000, 2000, 4U << 20);
  std::vector<Connection*> all;
  for (int i = 0; i < 600; ++i) all.push_back(open({{up, "GET /" + of(4'000)}}));
  ASSERT_TRUE(heard_.stops.empty());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 8 != 0) parser_->close(all[i]);
  }
  ASSERT_LT(pool_->in_use(), pool_->capacity() / 4);
  std::vector<void*> large;
  for (const std::size_t size : {256U << 10, 128U << 10}) {
    while (void* const block = pool_->take(size)) large.push_back(block);
  }
  ASSERT_LT(pool_->in_use(), pool_->capacity() / 4 * 3);
  heard_.watched = last_ + 1;
  Connection* const last = open({});
  for (std::size_t at = 0; at < post.bytes.size(); at += 1000) parser_->data(*last, up, post.bytes.substr(at, 1000));
  EXPECT_TRUE(heard_.body.ends_with("evil-body"));
  EXPECT_EQ(parser_->counters().bodies_lost, 0U);
  EXPECT_FALSE(heard_.stops.empty());
  for (void* const block : large) pool_->give(block);
}

// Between messages: what it sends next is a message, whatever it looks like, and of the same connection.
TEST_F(HttpEvicted, BetweenMessagesItGoesOnInAnotherRecord) {
  use(1, 8);
  open({get, ok, get, ok});
  Connection* const second = open({});
  EXPECT_EQ(heard_.stops, (std::vector{std::pair(std::size_t{1}, StopReason::set_aside)}));
  parser_->close(second);
  ASSERT_TRUE(heard_.rest.has_value());
  Connection* const again = open({{up, "foo bar\r\n\r\n"}}, true, *heard_.rest);
  EXPECT_EQ(heard_.lines.back(), std::pair(std::uint64_t{2}, std::string("bar")));
  parser_->data(*again, up, "foo next\r\n" + of(30'000));
  EXPECT_EQ(heard_.lines.back(), std::pair(std::uint64_t{3}, std::string("next")));
  EXPECT_EQ(heard_.limits, (Heard::Limits{{3, Limit::header_line}})) << "it is HTTP";
  EXPECT_EQ(parser_->counters().connections, 2U) << "the first is none anew";
  EXPECT_EQ(stopped(StopReason::evicted), 0U);
}

TEST_F(HttpEvicted, WhichConnectionsAreBetweenMessages) {
  const Part connect = {up, "CONNECT h:1 HTTP/1.1\r\n\r\n"};
  const struct {
    const char* what;
    std::vector<Part> parts;
    bool is_between, is_limited;
  } cases[] = {
      {"nothing has come", {}, true, false},
      {"blank lines", {{up, "\r\n\r\n"}}, true, false},
      {"a client that has said what is no HTTP", {{up, "\x16\x03\n"}}, true, false},
      {"an answer", {get, ok}, true, false},
      {"an answer without a request", {ok}, true, false},
      {"a CONNECT that was refused", {connect, {down, "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n"}}, true, false},
      {"a byte of the next request", {get, ok, {up, "G"}}, false, true},
      {"a byte of the next answer", {get, ok, {down, "H"}}, false, true},
      {"a byte of the first request", {{up, "G"}}, false, true},
      {"what may be another protocol's", {{down, "HT"}}, false, false},
      {"headers", {{up, "GET / HTTP/1.1\r\n"}}, false, true},
      {"a body", {{up, upload}}, false, true},
      {"a chunk's size", {{up, chunks}}, false, true},
      {"a request that is not answered", {get}, false, true},
      {"the second of two", {get, get, ok}, false, true},
      {"an interim answer", {get, {down, "HTTP/1.1 100 go on\r\n\r\n"}}, false, true},
      {"an answer's body", {get, {down, "HTTP/1.1 200 ok\r\n\r\n"}}, false, true},
      {"perhaps a body", {get, {down, "HTTP/1.1 304 no\r\nContent-Length: 3\r\n\r\n"}}, false, true},
      {"an answer before its request is whole", {{up, upload}, ok}, false, true},
      {"a CONNECT", {connect}, false, true},
      {"what may be HTTP/2", {{up, preface}}, false, true},
      {"another protocol", {{up, "FOO / BAR/1.0\r\n"}}, false, false},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    use(1, 8);
    open(one.parts);
    open({});
    ASSERT_EQ(heard_.stops.size(), 1U);
    EXPECT_EQ(heard_.stops[0].second, one.is_between ? StopReason::set_aside : StopReason::evicted);
    EXPECT_EQ(heard_.limits, one.is_limited ? (Heard::Limits{{1, Limit::memory}}) : Heard::Limits{});
    EXPECT_EQ(parser_->counters().limited[static_cast<unsigned>(Limit::memory)], one.is_limited ? 1U : 0U);
  }
}

// What the other side has said before counts as it did.
TEST_F(HttpEvicted, WhatASideHasShownToBeIsKept) {
  use(1, 8);
  open({{up, "\x16\x03\n"}});
  parser_->close(open({}));
  Connection* const again = open({get}, true, *heard_.rest);
  EXPECT_EQ(again->first, nullptr) << "of a side that is no HTTP";
  parser_->data(*again, down, "HTTP/1.1 200 ok\r\n");
  EXPECT_NE(again->first, nullptr);
}

// Records and transactions, too, are first taken from those that lose nothing by it.
TEST_F(HttpEvicted, ThoseBetweenMessagesGiveWayBeforeOthers) {
  for (const bool of_records : {false, true}) {
    SCOPED_TRACE(of_records);
    use(of_records ? 3 : 8, of_records ? 8 : 3);
    Connection* const waits = open({get});
    open({get, ok});
    Connection* const body = open({{up, upload}});
    open({get});
    EXPECT_EQ(heard_.stops, (std::vector{std::pair(std::size_t{2}, StopReason::set_aside)}));
    EXPECT_EQ(waits->waiting, 1U);
    EXPECT_EQ(body->waiting, 1U);
  }
}

// Where nobody has any to give.
TEST_F(HttpEvicted, WithoutMemoryWhatIsHttpIsBeyondALimit) {
  std::string named = gzip("small");  // but long as it came
  named[3] = 8;
  named.insert(10, of(300) + '\0');
  const std::string coded =
      "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(named.size()) + "\r\n\r\n" +
      named;
  const struct {
    const char* what;
    std::vector<Part> before, after;
    bool is_limited;
  } cases[] = {
      {"a first request", {}, {get}, true},
      {"a method that nobody knows", {}, {{up, "FOO /x HTTP/1.1\r\n\r\n"}}, true},
      {"another protocol", {}, {{up, "\x16\x03\n"}}, false},
      {"headers", {{up, "GET / HTTP/1.1\r\n"}}, {{up, "A: " + of(10'000) + "\r\n"}}, true},
      {"an answer", {get}, {{down, "HTTP/1.1 200 ok\r\n\r\n"}}, true},
      {"a body", {{up, upload}}, {{up, of(100)}}, true},
      {"a body that is decoded",
       {{up, "POST / HTTP/1.1\r\nContent-Length: 999\r\nContent-Encoding: gzip\r\n\r\n"}},
       {{up, gzip(of(900))}},
       true},
      {"a body as it came", {{up, coded.substr(0, coded.size() - 1)}}, {{up, coded.substr(coded.size() - 1)}}, true}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    use(1, 8);
    Connection* const connection = open(one.before);
    std::vector<void*> taken;
    for (std::size_t size = BlockPool::largest; size >= BlockPool::smallest; size /= 2) {
      while (void* const block = pool_->take(size)) taken.push_back(block);
    }
    for (const Part& part : one.after) parser_->data(*connection, part.direction, part.bytes);
    EXPECT_EQ(heard_.limits, one.is_limited ? (Heard::Limits{{1, Limit::memory}}) : Heard::Limits{});
    for (void* const block : taken) pool_->give(block);
  }
}

// A coding for which there is no memory when its body begins.
TEST_F(HttpEvicted, ABodyThatIsNotDecodedForWantOfMemoryIsBeyondALimit) {
  use(1, 8);
  std::vector<void*> taken;
  for (std::size_t size = 512U << 10; size >= 16U << 10; size /= 2) taken.push_back(pool_->take(size));
  const std::string body = gzip(of(900));
  open({get, {down, "HTTP/1.1 200 ok\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n" + body}});
  EXPECT_EQ(heard_.limits, (Heard::Limits{{1, Limit::memory}})) << "before it ends";
  for (void* const block : taken) pool_->give(block);
}

}  // namespace
}  // namespace sluice::flow::http
