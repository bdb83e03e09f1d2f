// What a message's pieces are.
#include "flow/http/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace std::string_literals;
using namespace test;

// One response to one GET.
Exchange response(const std::string& bytes, Settings settings = {}) {
  const Sink sink = parse({get, {down, bytes}}, std::string::npos, settings);
  EXPECT_FALSE(sink.exchanges.empty()) << bytes;
  return sink.exchanges.empty() ? Exchange{} : sink.exchanges[0];
}

TEST(HttpRequest, EveryPiece) {
  const Sink sink = parse({{up,
                            "POST http://User@WWW.Example.COM:81/a/../b%20c?x=%41 HTTP/1.1\r\n"
                            "Host: other\r\nUser-Agent:  agent 1 \r\nCookie: a=b\r\nX-Two: 1\r\nx-two: 2\r\n"
                            "Content-Length: 5\r\n\r\nhello"}});
  const Exchange& exchange = sink.exchanges.at(0);
  EXPECT_EQ(exchange.request_line, "POST http://User@WWW.Example.COM:81/a/../b%20c?x=%41 HTTP/1.1");
  EXPECT_EQ(exchange.method, "POST");
  EXPECT_EQ(exchange.uri_raw, "http://User@WWW.Example.COM:81/a/../b%20c?x=%41");
  EXPECT_EQ(exchange.uri, "/b c?x=A");
  EXPECT_EQ(exchange.version, "HTTP/1.1");
  EXPECT_EQ(exchange.host, "www.example.com");
  EXPECT_EQ(exchange.cookie, "a=b");
  EXPECT_EQ(exchange.request_names, "Host User-Agent Cookie X-Two Content-Length ");
  EXPECT_EQ(exchange.request_headers, "Host: other\r\nUser-Agent: agent 1\r\nX-Two: 1, 2\r\nContent-Length: 5\r\n");
  EXPECT_EQ(exchange.request_headers_raw,
            "Host: other\r\nUser-Agent:  agent 1 \r\nCookie: a=b\r\nX-Two: 1\r\nx-two: 2\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(exchange.request_body, "hello");
  EXPECT_EQ(exchange.events, "lhbc");
}

TEST(HttpRequest, FirstLines) {
  struct Case {
    const char *line, *method, *uri, *version;
  };
  for (const Case& c : {Case{"GET /a HTTP/1.0\r\n", "GET", "/a", "HTTP/1.0"},
                        {"\r\n\nGET /a HTTP/1.0\n", "GET", "/a", "HTTP/1.0"},
                        {"GET   /a   HTTP/1.0 \r\n", "GET", "/a", "HTTP/1.0"},
                        {"GET\t/a HTTP/1.0\r\n", "GET", "/a", "HTTP/1.0"},
                        {"GET /a\r\n", "GET", "/a", ""},
                        {"get /a HTTP/1.0\r\n", "get", "/a", "HTTP/1.0"},
                        {"FOO /a HTTP/1.0\r\n", "FOO", "/a", "HTTP/1.0"},
                        {" \t\r\n  GET /a HTTP/1.0\r\n", "GET", "/a", "HTTP/1.0"},
                        {"M-SEARCH * HTTP/1.1\r\n", "M-SEARCH", "*", "HTTP/1.1"},
                        {"X!#$%&'*+-.^_`|~9 /a HTTP/1.1\r\n", "X!#$%&'*+-.^_`|~9", "/a", "HTTP/1.1"},
                        {"7 http://h/a HTTP/1.1\r\n", "7", "http://h/a", "HTTP/1.1"},
                        {"GET /a b HTTP/1.0\r\n", "GET", "/a b", "HTTP/1.0"},
                        {"GET /a?b=1 union  select 1 \t http/1.1 \r\n", "GET", "/a?b=1 union  select 1", "http/1.1"},
                        {"GET /a\tb\tc\tHTTP/1.0\r\n", "GET", "/a\tb\tc", "HTTP/1.0"},
                        {"GET /a\tb\x0b HTTP/1.0\r\n", "GET", "/a\tb\x0b", "HTTP/1.0"},
                        {"GET /a HTTP/1.0 HTTP/1.1\r\n", "GET", "/a HTTP/1.0", "HTTP/1.1"},
                        {"GET /a b\r\n", "GET", "/a", "b"},
                        {"GET /a HTTP/1.0 b\r\n", "GET", "/a", "HTTP/1.0 b"},
                        {"GET /a b xHTTP/1.0\r\n", "GET", "/a", "b xHTTP/1.0"},
                        {"GET HTTP/1.0\r\n", "GET", "HTTP/1.0", ""},
                        {"GET \r\n", "GET", "", ""}}) {
    const Sink sink = parse({{up, std::string(c.line) + "A: b\r\n\r\n"}});
    ASSERT_EQ(sink.exchanges.size(), 1U) << c.line;
    EXPECT_EQ(sink.exchanges[0].method, c.method) << c.line;
    EXPECT_EQ(sink.exchanges[0].uri_raw, c.uri) << c.line;
    EXPECT_EQ(sink.exchanges[0].version, c.version) << c.line;
    EXPECT_EQ(sink.exchanges[0].request_headers, "A: b\r\n") << c.line;
    EXPECT_EQ(sink.exchanges[0].request_flags.http_0_9, c.version[0] == '\0') << c.line;
  }
}

TEST(HttpRequest, HeadersFoldAndAreTrimmed) {
  const Sink sink =
      parse({{up, "GET / HTTP/1.1\r\nA : one\r\n two\r\nno colon\r\n: no name\r\nB\t:\tx\t\r\nC:\r\n\r\n"}});
  EXPECT_EQ(sink.exchanges.at(0).request_headers, "A: one two\r\nB: x\r\nC: \r\n");
  EXPECT_TRUE(sink.exchanges.at(0).request_flags.folded);
}

TEST(HttpRequest, ALineOfOneSpaceEndsHeadersUnlessLfFollows) {
  const std::string head = "GET /1 HTTP/1.1\nA: b\n \n";
  const std::string next = "GET /2 HTTP/1.1\n\n";
  for (const std::string& between : {std::string(), std::string("\n")}) {
    for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
      const Sink sink = parse({{up, head + between + next}}, piece);
      ASSERT_EQ(sink.exchanges.size(), 2U);
      EXPECT_EQ(sink.exchanges[0].request_headers_raw, "A: b\n \n" + between);
      EXPECT_EQ(sink.exchanges[1].uri, "/2");
    }
  }
}

TEST(HttpResponse, EveryPiece) {
  const Exchange exchange = response(
      "HTTP/1.1 404 Not Found\r\nServer: s\r\nSet-Cookie: c=1\r\nSet-Cookie: d=2\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_EQ(exchange.status_line, "HTTP/1.1 404 Not Found");
  EXPECT_EQ(exchange.response_version, "HTTP/1.1");
  EXPECT_EQ(exchange.status, "404");
  EXPECT_EQ(exchange.status_message, "Not Found");
  EXPECT_EQ(exchange.response_headers, "Server: s\r\nContent-Length: 4\r\n");
  EXPECT_EQ(exchange.set_cookie, "c=1, d=2");
  EXPECT_EQ(exchange.response_names, "Server Set-Cookie Content-Length ");
  EXPECT_EQ(exchange.response_body, "body");
  EXPECT_EQ(exchange.fresh, "body");
  EXPECT_EQ(exchange.events, "lhcLHBC");
}

// What servers send and browsers show all the same; the first part of each body is "BODY".
TEST(HttpResponse, Bodies) {
  struct Case {
    const char* what;
    std::string bytes, wanted;
  };
  const std::string ok = "HTTP/1.1 200 ok\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  const Case cases[] = {
      {"to the end", ok + "\r\nBODY and on", "BODY and on"},
      {"length", ok + "Content-Length: 4\r\n\r\nBODY", "BODY"},
      {"length too small", ok + "Content-Length: 2\r\n\r\nBODY", "BODY"},
      {"length too large", ok + "Content-Length: 20\r\n\r\nBODY", "BODY"},
      {"two numbers", ok + "Content-Length: 4 9\r\n\r\nBODY", "BODY"},
      {"junk before the number", ok + "Content-Length: ,4\r\n\r\nBODY", "BODY"},
      {"no number", ok + "Content-Length: x\r\n\r\nBODY", "BODY"},
      {"chunks", ok + chunked + "2\r\nBO\r\n2\r\nDY\r\n0\r\n\r\n", "BODY"},
      {"chunk sizes with zeros and spaces", ok + chunked + "0002 \r\nBO\r\n 2\r\nDY\r\n0\r\n\r\n", "BODY"},
      {"white space before", ok + chunked + "\f2\r\nBO\r\n\r\n\r2\r\nDY\r\n0\r\n\r\n", "BODY"},
      {"extensions", ok + chunked + "2;a=b\r\nBO\r\n2 ; x\r\nDY\r\n0\r\n\r\n", "BODY"},
      {"trailers", ok + chunked + "4\r\nBODY\r\n0\r\nA: b\r\n\r\n", "BODY"},
      {"LF only", "HTTP/1.1 200 ok\nTransfer-Encoding: chunked\n\n4\nBODY\n0\n\n", "BODY"},
      {"chunks not ended", ok + chunked + "4\r\nBODY", "BODY"},
      {"said to be chunked, is not", ok + chunked + "xBODY", "xBODY"},
      {"a size of 32 bits", ok + chunked + "80000000\r\nBODY", "BODY"},
      {"a size of 63 bits", ok + chunked + "007fffffffffffffff\r\nBODY", "BODY"},
      {"a size that is none", ok + chunked + "8000000000000000\r\nBODY", "8000000000000000\r\nBODY"},
      {"nor is one that only some read", ok + chunked + "0x4\r\nBODY", "0x4\r\nBODY"},
      {"nor is one with a line between", ok + chunked + "0_4\r\nBODY", "0_4\r\nBODY"},
      {"nor is one with a sign", ok + chunked + "+4\r\nBODY", "+4\r\nBODY"},
      {"one before anything", ok + chunked + "4 junk\r\nBODY\r\n0 junk\r\n\r\n", "BODY"},
      {"nor is this", ok + chunked + "10000000000000004\r\nBODY", "10000000000000004\r\nBODY"},
      {"length and chunked", ok + "Content-Length: 1\r\n" + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"chunked among others", ok + "Transfer-Encoding: x\r\nTransfer-Encoding: CHUNKED\r\n\r\n4\r\nBODY\r\n0\r\n\r\n",
       "BODY"},
      {"NUL in the name", ok + "Transfer\0-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n"s, "BODY"},
      {"folded name", ok + "Transfer-Encoding\r\n :chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"folded value", ok + "Transfer-Encoding:\r\n\tchunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"folded by NUL", ok + "Transfer-Encoding:\r\n\0chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n"s, "BODY"},
      {"a folded line that is a header", ok + "A: b\r\n Transfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n",
       "BODY"},
      {"in HTTP/1.0 it is not", "HTTP/1.0 200 ok\r\nA: b\r\n Transfer-Encoding: chunked\r\n\r\nBODY", "BODY"},
      {"a fold without a header", ok + " Transfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"CR only", "HTTP/1.1 200 ok\rTransfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"LF CR", "HTTP/1.1 200 ok\n\rTransfer-Encoding: chunked\n\rA: b\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"LF CR CR LF ends the headers", ok + "Transfer-Encoding: chunked\n\r\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"LF CR CR LF CR LF does, too", ok + "Transfer-Encoding: chunked\n\r\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"CR CR LF does not", ok + "\r\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"CR SP CR", ok + "\r \rTransfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"a blank line of one space ends them", ok + "Content-Length: 4\n \nBODY", "BODY"},
      {"unless another LF follows", ok + "Transfer-Encoding: chunked\n\t\n\n4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"no status", "HTTP/1.1\r\nContent-Length: 4\r\n\r\nBODY", "BODY"},
      {"odd version", "HTTP/1.1\0 200 ok\r\n"s + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"odd version and status", "HTTP/1.1foobar\r\n" + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"HTTP/0.9", "BODY of 0.9", "BODY of 0.9"},
      {"HTTP/0.9, lines", "BODY\r\nand\r\n", "BODY\r\nand\r\n"},
      {"HTTP/0.9, long", std::string(5000, 'x') + "\r\nHTTP/1.1", std::string(5000, 'x') + "\r\nHTTP/1.1"},
      {"blank lines before", " \t\r\n\n" + ok + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"junk before", " foobar\r\n" + ok + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"204 with a body", "HTTP/1.1 204 ok\r\n" + chunked + "4\r\nBODY\r\n0\r\n\r\n", "BODY"},
      {"304 with a body", "HTTP/1.1 304 ok\r\nContent-Length: 4\r\n\r\nBODY", "BODY"},
      {"an interim response", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + ok + "Content-Length: 4\r\n\r\nBODY", "BODY"},
      {"an upgrade that nobody asked for", "HTTP/1.1 101 Switching\r\n\r\n" + ok + "Content-Length: 4\r\n\r\nBODY",
       "BODY"},
      {"headers cut", ok + "Server: x", ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(response(c.bytes).response_body, c.wanted) << c.what;
    for (const std::size_t piece : {1U, 2U, 3U, 7U}) {
      const Sink sink = parse({get, {down, c.bytes}}, piece);
      ASSERT_EQ(sink.exchanges.size(), 1U) << c.what;
      EXPECT_EQ(sink.exchanges[0].response_body, c.wanted) << c.what << ", by " << piece;
      EXPECT_EQ(sink.exchanges[0].fresh, c.wanted) << c.what << ", by " << piece;
    }
  }
}

TEST(HttpResponse, Flags) {
  const std::string ok = "HTTP/1.1 200 ok\r\n";
  EXPECT_TRUE(response(ok + "Content-Length: 20\r\n\r\nBODY").response_flags.incomplete);
  EXPECT_FALSE(response(ok + "\r\nBODY").response_flags.incomplete);
  EXPECT_TRUE(response(ok + "Content-Length: 2\r\n\r\nBODY").response_flags.unexpected_body);
  EXPECT_TRUE(response(ok + "Content-Length: 2\r\nContent-Length: 4\r\n\r\nBODY").response_flags.length_conflict);
  EXPECT_FALSE(response(ok + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nBODY").response_flags.length_conflict);
  EXPECT_TRUE(response(ok + "Content-Length: 4,4\r\n\r\nBODY").response_flags.length_invalid);
  EXPECT_TRUE(response(ok + "Transfer-Encoding: chunked\r\n\r\nBODY").response_flags.bad_chunk == false);
  EXPECT_TRUE(response(ok + "Transfer-Encoding: chunked\r\n\r\nxBODY").response_flags.bad_chunk);
  EXPECT_TRUE(response("xBODY").response_flags.http_0_9);
  EXPECT_TRUE(response("HTTP/1.1 200 ok\n\nBODY").response_flags.bare_line_end);
  EXPECT_FALSE(response(ok + "\r\nBODY").response_flags.bare_line_end);
  EXPECT_TRUE(response(" x\r\n" + ok + "\r\nBODY").response_flags.junk_before);
  EXPECT_TRUE(response(ok + "Server: x").response_flags.incomplete);
  EXPECT_EQ(response(ok + "Server: x").response_headers, "Server: x\r\n");
  EXPECT_EQ(response("HTTP/1.1 100 Continue\r\n\r\n" + ok + "\r\n").interim, 1U);
}

TEST(HttpResponse, BodiesEndAtTheirLimit) {
  Settings settings;
  settings.response_body_limit = 10;
  const Exchange exchange = response("HTTP/1.1 200 ok\r\n\r\n0123456789abc", settings);
  EXPECT_EQ(exchange.response_body, "0123456789");
  EXPECT_TRUE(exchange.response_flags.body_truncated);
  EXPECT_FALSE(response("HTTP/1.1 200 ok\r\n\r\n0123456789", settings).response_flags.body_truncated);
}

// Decoded, and then as it came, which is what most servers see.
TEST(HttpRequest, ARequestsBodyIsShownBothWays) {
  for (const std::string& body : {gzip("decoded") + "&behind=it", gzip("decoded")}) {
    const std::string head =
        "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    const Sink sink = parse({{up, head + body.substr(0, 15)}, {up, body.substr(15)}, get});
    ASSERT_EQ(sink.exchanges.size(), 2U);
    EXPECT_EQ(sink.exchanges[0].request_body_before, "decoded");
    EXPECT_EQ(sink.exchanges[0].request_body, body);
    EXPECT_EQ(sink.exchanges[0].events, "lhbc");
  }
  Settings settings;
  settings.request_body_limit = 10;
  const std::string body = gzip("decoded");
  const Sink cut =
      parse({{up, "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n\r\n" + body}},
            std::string::npos, settings);
  EXPECT_EQ(cut.exchanges.at(0).request_body, body.substr(0, 10));
  EXPECT_TRUE(cut.exchanges.at(0).request_flags.body_truncated);
}

TEST(HttpResponse, ContentCodings) {
  const std::string body = gzip("decoded body");
  const std::string head = "HTTP/1.1 200 ok\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  EXPECT_EQ(response(head + "Content-Encoding: gzip\r\n\r\n" + body).response_body, "decoded body");
  EXPECT_EQ(response(head + "Content-Encoding :\tGZIP\v\r\n\r\n" + body).response_body, "decoded body");
  EXPECT_EQ(response(head + "\r\n" + body).response_body, body);
  const std::string chunk = std::string(1, "0123456789abcdef"[body.size() / 16]) +
                            "0123456789abcdef"[body.size() % 16] + "\r\n" + body + "\r\n0\r\n\r\n";
  EXPECT_EQ(response("HTTP/1.1 200 ok\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunk).response_body,
            "decoded body");
  const std::string twice = gzip(body);
  EXPECT_EQ(
      response("HTTP/1.1 200 ok\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n" + twice).response_body,
      "decoded body");
  Settings settings;
  settings.response_layers = 0;
  EXPECT_EQ(response(head + "Content-Encoding: gzip\r\n\r\n" + body, settings).response_body, body);
  settings.response_layers = 1;
  settings.decoded_limit = 1000;
  const Exchange bomb =
      response("HTTP/1.1 200 ok\r\nContent-Encoding: gzip\r\n\r\n" + gzip(std::string(100'000, 'a')), settings);
  EXPECT_TRUE(bomb.decoding.bomb);
}

}  // namespace
}  // namespace sluice::flow::http
