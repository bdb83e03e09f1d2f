// What the parser does when connections, transactions or memory are used up.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace test;

TEST(HttpCapacity, WithoutMemoryItStopsAndSaysSo) {
  BlockPool pool(1);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  std::vector<std::uint8_t*> blocks;
  while (std::uint8_t* const block = pool.take(256)) {
    blocks.push_back(block);
  }
  parser.data(*connection, up, get.bytes);
  EXPECT_EQ(sink.stops, std::vector{StopReason::no_memory});
  EXPECT_EQ(sink.limits, std::vector{Limit::memory});
  parser.close(connection);
  for (std::uint8_t* const block : blocks) {
    pool.give(block);
  }
}

// A body that is not looked at as its reader sees it is counted, whyever that is.
TEST(HttpCapacity, BodiesThatAreNotDecodedAreCounted) {
  std::string random;
  for (std::uint32_t i = 0, x = 1; i < 3000; ++i) {
    x = x * 1664525 + 1013904223;
    random += static_cast<char>(x >> 24);
  }
  const std::string packed = gzip(random);
  std::string garbled = packed;
  garbled[10] |= 6;  // a type of block that is none
  struct Case {
    const char* what;
    std::string codings, body;
    std::size_t capacity;  // of the pool
    std::uint64_t lost, undecoded;
    std::uint64_t gap = 0;
  };
  const Case cases[] = {
      {"all is well", "gzip", packed, 1U << 20, 0, 0},
      {"no capacity for a layer", "gzip", packed, 10U << 10, 1, 0},
      {"no capacity for zlib's window", "gzip", packed, 32U << 10, 1, 0},
      {"three layers", "gzip, gzip, gzip", gzip(gzip(packed)), 1U << 20, 0, 1},
      {"an error", "gzip", garbled, 1U << 20, 0, 1},
      {"a gap", "gzip", packed, 1U << 20, 0, 1, 1000},
      {"cut by its end", "gzip", packed.substr(0, 1000), 1U << 20, 0, 0},
      {"no body", "gzip, gzip, gzip", "", 10U << 10, 0, 0},
      {"no coding", "identity", packed, 10U << 10, 0, 0},
  };
  for (const Case& c : cases) {
    BlockPool pool(1U << 20);
    std::vector<std::uint8_t*> taken;
    for (std::size_t size = 512U << 10; size >= c.capacity; size /= 2) {
      taken.push_back(pool.take(size));
    }
    Sink sink;
    Parser parser({}, pool, 1, 8, sink);
    Connection* const connection = parser.open();
    parser.data(*connection, up, get.bytes);
    parser.data(*connection, down,
                "HTTP/1.1 200 ok\r\nContent-Encoding: " + c.codings +
                    "\r\nContent-Length: " + std::to_string(c.body.size() + c.gap) + "\r\n\r\n");
    if (c.gap != 0) {
      parser.data(*connection, down, c.body.substr(0, 100));
      parser.gap(*connection, down, c.gap);
      parser.data(*connection, down, c.body.substr(100));
    } else {
      parser.data(*connection, down, c.body);
    }
    parser.close(connection);
    EXPECT_EQ(parser.counters().bodies_lost, c.lost) << c.what;
    EXPECT_EQ(parser.counters().bodies_undecoded, c.undecoded) << c.what;
    for (std::uint8_t* const block : taken) {
      pool.give(block);
    }
    EXPECT_EQ(pool.in_use(), 0U) << c.what;
  }
}

// Those that have not shown to be HTTP go first, then those that were silent for longest.
TEST(HttpCapacity, TheOneThatWasSilentForLongestGivesWay) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 3, 8, sink);
  Connection* const first = parser.open();
  parser.data(*first, up, get.bytes);
  Connection* const silent = parser.open();
  parser.data(*silent, up, "G");
  Connection* const second = parser.open();
  parser.data(*second, up, get.bytes);
  EXPECT_EQ(parser.open(), silent);
  EXPECT_EQ(sink.stops, std::vector{StopReason::evicted});
  parser.data(*silent, up, get.bytes);
  parser.data(*first, down, "HTTP/1.1 200 ok\r\n");
  EXPECT_EQ(parser.open(), second);
  EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::evicted)], 2U);
  for (Connection* const one : {first, second, silent}) {
    parser.close(one);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

// They are forged, as far as one can see: whatever they show to be, they evict none that is established.
TEST(HttpCapacity, ThoseThatAreNotEstablishedGiveWayFirst) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 3, 64, sink);
  Connection* const silent = parser.open();
  parser.data(*silent, up, "G");
  Connection* const forged = parser.open(false);
  parser.data(*forged, up, get.bytes);
  Connection* const http = parser.open();
  parser.data(*http, up, get.bytes);
  EXPECT_EQ(parser.open(false), forged);
  parser.data(*forged, up, get.bytes);
  EXPECT_EQ(parser.open(), forged) << "not the one that was silent for longer, and is no HTTP yet";
  EXPECT_EQ(parser.open(false), nullptr);
  EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::no_memory)], 0U);
  EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::evicted)], 2U);
  parser.close(forged);
  Connection* const late = parser.open(false);
  parser.data(*late, up, get.bytes);
  late->established = true;
  parser.data(*late, up, "G");
  EXPECT_EQ(parser.open(false), nullptr) << "it is established now";
  EXPECT_EQ(late->waiting, 1U);
  for (Connection* const one : {silent, http, late}) {
    parser.close(one);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(HttpCapacity, ThoseThatAreNotEstablishedHaveAPartOfTheRest) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 16, 32, sink);
  std::vector<Connection*> forged;
  for (int i = 0; i < 4; ++i) {
    forged.push_back(parser.open(false));
    for (int k = 0; k < 3; ++k) {
      parser.data(*forged.back(), up, get.bytes);
    }
  }
  EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::evicted)], 2U) << "8 of 32 are for them";
  EXPECT_EQ(forged[3]->waiting, 3U);
  Connection* const true_one = parser.open();
  std::uint8_t* const half = pool.take(512U << 10);
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(parser.open(false), nullptr);
  parser.data(*forged[3], up, get.bytes);
  EXPECT_EQ(forged[3]->stopped, StopReason::no_memory);
  parser.data(*true_one, up, get.bytes);
  EXPECT_EQ(true_one->stopped, StopReason::none);
  pool.give(half);
}

TEST(HttpCapacity, ThoseThatAreNotEstablishedTakeNoTransactionsOfOthers) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 16, 32, sink);
  Connection* const true_one = parser.open();
  for (int i = 0; i < 8; ++i) {
    parser.data(*true_one, up, get.bytes);
  }
  Connection* const forged = parser.open(false);
  parser.data(*forged, up, get.bytes);
  EXPECT_EQ(forged->stopped, StopReason::no_memory);
  EXPECT_EQ(true_one->waiting, 8U);
  parser.close(true_one);
  parser.close(forged);
  EXPECT_EQ(pool.in_use(), 0U);
}

// One request ends one connection that waits for answers, however many are silent for longer.
TEST(HttpCapacity, ForATransactionOneThatHasSomeIsEvicted) {
  BlockPool pool(16U << 20);
  Sink sink;
  constexpr std::uint32_t transactions = 32;
  Parser parser({}, pool, 200, transactions, sink);
  for (int i = 0; i < 100; ++i) {
    parser.data(*parser.open(), up, "GET /");
  }
  for (std::uint32_t i = 0; i < transactions; ++i) {
    parser.data(*parser.open(), up, get.bytes);
  }
  Connection* const last = parser.open();
  for (std::uint64_t i = 1; i <= 2; ++i) {
    parser.data(*last, up, get.bytes);
    EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::evicted)], i);
    EXPECT_EQ(last->waiting, i);
  }
}

// Once half of the transactions are in use, two requests of a connection may wait; before that, `pipelined`.
TEST(HttpCapacity, HowManyRequestsMayWait) {
  BlockPool pool(16U << 20);
  Sink sink;
  Parser parser({}, pool, 16, 64, sink);
  Connection* const first = parser.open();
  const auto ask = [&](Connection* connection, int count) {
    for (int i = 0; i < count; ++i) {
      parser.data(*connection, up, get.bytes);
    }
  };
  ask(first, 31);
  EXPECT_EQ(first->waiting, 31U);
  Connection* const second = parser.open();
  ask(second, 5);
  EXPECT_EQ(second->waiting, 2U);
  EXPECT_EQ(parser.counters().unanswered, 3U);
  ask(first, 1);
  EXPECT_EQ(first->waiting, 31U) << "one was given up for it";
}

TEST(HttpCapacity, UnansweredRequestsDoNotTakeAllTransactions) {
  BlockPool pool(4U << 20);
  Sink sink;
  Parser parser({}, pool, 16, 32, sink);
  for (int i = 0; i < 15; ++i) {
    Connection* const one = parser.open();
    for (int k = 0; k < 40; ++k) {
      parser.data(*one, up, "GET / HTTP/1.1\r\n\r\n");
    }
  }
  Connection* const last = parser.open();
  parser.data(*last, up, get.bytes);
  EXPECT_EQ(last->stopped, StopReason::none);
  EXPECT_EQ(last->waiting, 1U);
  EXPECT_EQ(parser.counters().stopped[static_cast<unsigned>(StopReason::no_memory)], 0U);
}

}  // namespace
}  // namespace sluice::flow::http
