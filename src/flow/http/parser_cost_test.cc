// What the parser costs: it is linear in what comes.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace test;

double cpu_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// What a connection costs that has sent `head` and goes on with `count` times `more`, each in a packet of its own.
double cost_of_more(Direction direction, const std::string& head, const std::string& more, int count) {
  Settings settings;
  settings.header_limit = 256U << 10;
  BlockPool pool(16U << 20);
  Sink sink;
  Parser parser(settings, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  if (direction == down) {
    parser.data(*connection, up, get.bytes);
  }
  parser.data(*connection, direction, head);
  const double begin = cpu_ms();
  for (int i = 0; i < count; ++i) {
    parser.data(*connection, direction, more);
  }
  const double end = cpu_ms();
  EXPECT_TRUE(sink.stops.empty());
  parser.close(connection);
  return end - begin;
}

// Whatever waits, a byte that comes does not have it read again.
TEST(HttpCost, NothingThatWaitsIsReadAgain) {
  constexpr int count = 10'000;
  constexpr std::size_t waits = 200'000;
  const std::string post = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunked = "HTTP/1.1 200 ok\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string folded = "HTTP/1.0 200 ok\r\nA\r\n";
  for (int i = 0; i < 4; ++i) {
    folded += ' ' + std::string(waits, 'a') + "\r\n";
  }
  struct Case {
    const char* what;
    Direction direction;
    std::string head, more;
  };
  const Case cases[] = {
      {"blank lines before a request", up, std::string(waits, '\n'), "\n"},
      {"blanks before a request", up, std::string(waits, ' '), " "},
      {"blanks before a chunk's size", up, post + std::string(waits, ' '), " "},
      {"line ends before a chunk's size", down, chunked + std::string(waits, '\r'), "\r"},
      {"zeros of a chunk's size", down, chunked + std::string(waits, '0'), "0"},
      {"what stands behind a chunk's size", down, chunked + "5;" + std::string(waits, 'a'), "a"},
      {"a trailer", down, chunked + "0\r\nA: " + std::string(waits, 'a'), "a"},
      {"a request line", up, "GET /" + std::string(waits, 'a'), "a"},
      {"a status line behind blanks", down, std::string(4000, ' ') + "HTTP/1.1 " + std::string(waits, 'a'), "a"},
      {"blanks before a status line", down, std::string(waits, ' ') + "HTTP/1.1 200 ok", "a"},
      {"CRs of a header", down, "HTTP/1.1 200 ok\r\nA:" + std::string(waits, '\r'), "\r"},
      {"folded lines", down, folded + " :\n", " :\n"},
  };
  const double ordinary = cost_of_more(up, "GET / HTTP/1.1\r\nA: " + std::string(waits, 'a'), "a", count);
  for (const Case& c : cases) {
    EXPECT_LT(cost_of_more(c.direction, c.head, c.more, count), 20 * ordinary + 50) << c.what << ", ms of CPU";
  }
}

// Names that are alike but for their ends are not compared each with each, over a megabyte of them.
TEST(HttpCost, LongNamesThatAreNearlyTheSame) {
  std::string request = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 255; ++i) {
    request += std::string(3'800, 'n') + std::to_string(i) + ":\r\n";
  }
  BlockPool pool(16U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, request);
  const double begin = cpu_ms();
  parser.data(*connection, up, "\r\n");
  EXPECT_LT(cpu_ms() - begin, 30) << "ms of CPU";
  ASSERT_EQ(sink.exchanges.size(), 1U);
  EXPECT_GT(sink.exchanges[0].request_headers.size(), 255U * 3'800);
  parser.close(connection);
}

// However many rules ask for one of them, in how ever many fields, and whatever is in their names.
TEST(HttpCost, FieldsAreFoundAtOnce) {
  struct Ask final : TransactionSink {
    void transaction(Connection&, Event event, Transaction& transaction) override {
      if (event != Event::request_headers) return;
      for (int i = 0; i < 10'000; ++i) bytes += transaction.request.field(FieldName::cookie).size();
    }
    void stopped(Connection&, StopReason) override { ADD_FAILURE(); }
    std::size_t bytes = 0;
  };
  std::string request = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 50; ++i) {
    request += "c" + std::string(17'000, '\0') + std::to_string(i) + ":\r\n";
  }
  BlockPool pool(16U << 20);
  Ask sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, request + "Cookie: x\r\n");
  const double begin = cpu_ms();
  parser.data(*connection, up, "\r\n");
  EXPECT_LT(cpu_ms() - begin, 100) << "ms of CPU";
  EXPECT_EQ(sink.bytes, 10'000U);
  parser.close(connection);
}

}  // namespace
}  // namespace sluice::flow::http
