// What the tests of the parser share: its sink, and conversations in pieces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "flow/http/connection.h"
#include "flow/http/packed_test.h"
#include "flow/recorder.h"

namespace sluice::flow::http::test {

using flow::test::Exchange;
inline constexpr Direction up = Direction::to_server;
inline constexpr Direction down = Direction::to_client;

struct Sink final : TransactionSink {
  void transaction(Connection&, Event event, Transaction& transaction) override {
    if (transaction.number >= exchanges.size()) {
      exchanges.resize(transaction.number + 1);
    }
    flow::test::write_down(exchanges[transaction.number], event, transaction);
  }
  void stopped(Connection&, StopReason reason) override { stops.push_back(reason); }
  void limited(Connection&, Limit limit) override { limits.push_back(limit); }
  bool decodes(Connection&, std::uint64_t bytes) override {
    asked_for += bytes;
    return true;
  }
  std::uint64_t asked_for = 0;
  std::vector<Exchange> exchanges;
  std::vector<StopReason> stops;
  std::vector<Limit> limits;
};

struct Part {
  Direction direction;
  std::string bytes;
};

// The parts, each cut into pieces of `piece` bytes, and the connection's end.
inline Sink parse(const std::vector<Part>& parts, std::size_t piece = std::string::npos, Settings settings = {},
                  std::size_t pool_bytes = 2U << 20) {
  BlockPool pool(pool_bytes);
  Sink sink;
  Parser parser(settings, pool, 1, 64, sink);
  Connection* const connection = parser.open();
  for (const Part& part : parts) {
    for (std::size_t at = 0; at < part.bytes.size(); at += std::min(piece, part.bytes.size() - at)) {
      parser.data(*connection, part.direction, std::string_view(part.bytes).substr(at, piece));
    }
  }
  parser.close(connection);
  EXPECT_EQ(pool.in_use(), 0U) << "memory that nobody gave back";
  EXPECT_NE(parser.open(), nullptr);
  return sink;
}

inline const Part get = {up, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"};

inline std::string gzip(std::string_view text) {
  return packed(text, 31);
}

}  // namespace sluice::flow::http::test
