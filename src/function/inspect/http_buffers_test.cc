// That no buffer of HTTP has what rules are refused for (match/rules/buffer_bytes.h), whatever is sent.
#include "function/inspect/http_buffers.h"

#include <gtest/gtest.h>

#include <random>

#include "flow/http/connection.h"
#include "match/rules/buffer_bytes.h"

namespace sluice::function {
namespace {

using flow::Direction;
using flow::http::Connection;
using flow::http::Event;
using flow::http::Transaction;
using match::Buffer;

bool has_any(std::string_view text, std::string_view bytes) {
  return text.find_first_of(bytes) != std::string_view::npos;
}

struct Sink final : flow::http::TransactionSink {
  void transaction(Connection&, Event event, Transaction& transaction) override {
    for (const auto& [at, point] : {std::pair{Event::request_line, match::Point::request_line},
                                    std::pair{Event::request_headers, match::Point::request_headers},
                                    std::pair{Event::request_trailers, match::Point::request_body},
                                    std::pair{Event::response_headers, match::Point::response_headers},
                                    std::pair{Event::response_trailers, match::Point::response_body}}) {
      if (at == event) look(point, transaction);
    }
  }
  void look(match::Point point, const Transaction& transaction) {
    match::BufferSet all(~std::uint64_t{0});
    match::Buffers buffers;
    std::string text;
    set_http_buffers(buffers, point, transaction, all, text);
    for (std::size_t b = 0; b < match::buffer_count; ++b) {
      const auto buffer = static_cast<Buffer>(b);
      const auto bytes = buffers[buffer];
      if (!bytes || bytes->empty()) continue;
      ++seen[b];
      const match::BytesNever never = match::bytes_never_in(buffer);
      EXPECT_FALSE(has_any(*bytes, never.anywhere)) << name_of(buffer) << ": " << testing::PrintToString(*bytes);
      EXPECT_FALSE(has_any(bytes->substr(0, 1), never.first)) << name_of(buffer) << testing::PrintToString(*bytes);
      EXPECT_FALSE(has_any(bytes->substr(bytes->size() - 1), never.last))
          << name_of(buffer) << ": " << testing::PrintToString(*bytes);
    }
  }
  void stopped(Connection&, flow::http::StopReason) override {}
  void limited(Connection&, flow::http::Limit) override {}
  bool decodes(Connection&, std::uint64_t) override { return true; }
  std::array<std::size_t, match::buffer_count> seen{};
};

// Words of messages among blanks of every kind.
class Messages {
 public:
  std::string request() {
    return blanks(1) + "GET" + blank() + blanks(2) + pick({"/a", "http://h /b", "http://[h] ", "%0a%20", "/a b", "*"}) +
           blanks(3) + pick({"HTTP/1.1", "HTTP/1.0", "X", ""}) + blanks(2) + fields("Cookie") + "\r\n";
  }
  std::string response() {
    return blanks(1) + "HTTP/1.1" + blank() + blanks(2) + pick({"200", "404x", "20\0"}) + blanks(2) +
           pick({"OK", "Not Found", ""}) + blanks(2) + fields("Set-Cookie") + "\r\n";
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string pick(std::initializer_list<const char*> of) { return *(of.begin() + below(of.size())); }
  std::string blank() { return std::string(1, " \t\v\f\r"[below(5)]); }
  std::string blanks(std::size_t most) {
    std::string text;
    for (std::size_t n = below(most + 1); n > 0; --n) text += below(4) == 0 ? std::string(1, '\0') : blank();
    return text;
  }
  std::string fields(const std::string& cookie) {
    std::string text = pick({"\r\n", "\n", "\r\n"});
    for (std::size_t n = below(8); n > 0; --n) {
      std::string name = pick({"Host", "User-Agent", "Referer", "Accept", "Accept-Encoding", "Accept-Language",
                               "Connection", "Content-Type", "Content-Length", "Location", "Server", "C"});
      if (name == "C") name = cookie;
      text += blanks(1) + name + blanks(1) + ":" + blanks(2) + pick({"", "0", "a b", "user@h:1", "[::1] x"}) +
              blanks(2) + pick({"\r\n", "\n", "\r\n\t", "\r\n "});
      if (text.ends_with('\t') || text.ends_with(' ')) text += pick({"", "more"}) + blanks(1) + "\r\n";
    }
    return text;
  }

  std::mt19937 random_{7};
};

TEST(HttpBuffers, NeverHaveTheBytesThatTheyNeverHave) {
  Sink sink;
  Messages messages;
  for (int n = 0; n < 20'000; ++n) {
    flow::BlockPool pool(2U << 20);
    flow::http::Parser parser({}, pool, 1, 4, sink);
    Connection* const connection = parser.open();
    parser.data(*connection, Direction::to_server, messages.request());
    parser.data(*connection, Direction::to_client, messages.response());
    parser.close(connection);
  }
  for (std::size_t b = 0; b < match::buffer_count; ++b) {
    const auto buffer = static_cast<Buffer>(b);
    const bool is_asked = !match::bytes_never_in(buffer).anywhere.empty();
    EXPECT_TRUE(!is_asked || sink.seen[b] > 100) << name_of(buffer);
  }
}

}  // namespace
}  // namespace sluice::function
