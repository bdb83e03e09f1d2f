#include "flow/http/connection.h"

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
TEST(HttpConnection, ARequestsBodyIsShownBothWays) {
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

// What comes with a packet is used up before the sink is asked, and does not add up over packets.
TEST(HttpConnection, TheSinkIsAskedForDecodingBeyondWhatAPacketBrings) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, get.bytes);
  const std::string packet = "HTTP/1.1 200 ok\r\nContent-Encoding: gzip\r\n\r\n" + gzip(std::string(100'000, 'a'));
  parser.begin_packet();
  parser.begin_packet();
  parser.data(*connection, down, packet);
  const std::uint64_t made = 100'000 + ContentDecoder::member_worth;
  EXPECT_EQ(sink.asked_for, made - Parser::free_decoding - Parser::decoded_to * packet.size());
  parser.close(connection);
}

TEST(HttpConnection, Pipelined) {
  const std::vector<Part> parts = {
      {up, "GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n"},
      {down,
       "HTTP/1.1 200 one\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 two\r\nContent-Length: 9\r\n\r\n"
       "HTTP/1.1 200 three\r\n\r\n3"}};
  for (const std::size_t piece : {std::string::npos, std::size_t{1}, std::size_t{5}}) {
    const Sink sink = parse(parts, piece);
    ASSERT_EQ(sink.exchanges.size(), 3U);
    EXPECT_EQ(sink.exchanges[0].uri + sink.exchanges[0].status_message + sink.exchanges[0].response_body, "/1one1");
    EXPECT_EQ(sink.exchanges[1].uri + sink.exchanges[1].status_message + sink.exchanges[1].response_body, "/2two");
    EXPECT_EQ(sink.exchanges[2].uri + sink.exchanges[2].status_message + sink.exchanges[2].response_body, "/3three3");
  }
}

TEST(HttpConnection, MoreRequestsThanMayWait) {
  Settings settings;
  settings.pipelined = 3;
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser(settings, pool, 1, 64, sink);
  Connection* const connection = parser.open();
  for (int i = 0; i < 10; ++i) {
    parser.data(*connection, up, "GET / HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(sink.exchanges.size(), 10U);
  EXPECT_TRUE(sink.stops.empty());
  EXPECT_EQ(parser.counters().unanswered, 7U);
  parser.close(connection);
}

TEST(HttpConnection, AResponseWithoutARequest) {
  const Sink sink = parse({{down, "HTTP/1.1 200 ok\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 201 ok\r\n\r\ny"}}, 3);
  ASSERT_EQ(sink.exchanges.size(), 2U);
  EXPECT_TRUE(sink.exchanges[0].request_flags.missing);
  EXPECT_EQ(sink.exchanges[0].events, "LHBC");
  EXPECT_EQ(sink.exchanges[1].status + sink.exchanges[1].response_body, "201y");
}

const std::string settings_frame("\0\0\0\4\0\0\0\0\0", 9);
const std::string http2_begins = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings_frame;

TEST(HttpConnection, WhyItStops) {
  struct Case {
    const char* what;
    std::vector<Part> parts;
    StopReason reason;
  };
  const Case cases[] = {
      {"another protocol", {{up, "\x16\x03\x01zz"}, {down, "\x16\x03\x03"}}, StopReason::not_http},
      {"a method that is no token", {{up, "G(T / HTTP/1.1\r\n"}, {down, "x"}}, StopReason::not_http},
      {"a method of 2,001 characters",
       {{up, std::string(2001, 'A') + " / HTTP/1.1\r\n"}, {down, "x"}},
       StopReason::not_http},
      {"an unknown method without a path", {{up, "FOO bar HTTP/1.1\r\n"}, {down, "x"}}, StopReason::not_http},
      {"a star that is no URI", {{up, "FOO *bar\r\n"}, {down, "x"}}, StopReason::not_http},
      {"the server speaks first", {{down, "220 mail ESMTP\r\n"}}, StopReason::not_http},
      {"CONNECT",
       {{up, "CONNECT h:443 HTTP/1.1\r\n\r\n"}, {down, "HTTP/1.1 200 ok\r\n\r\n"}, {up, "\x16\x03"}},
       StopReason::tunnel},
      {"WebSocket",
       {{up, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"},
        {down, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05"}},
       StopReason::upgrade},
      {"an answer of which the request is not known",
       {{down, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05"}},
       StopReason::upgrade},
      {"HTTP/2", {{up, http2_begins}, {down, settings_frame}, {up, std::string(50'000, '\0')}}, StopReason::http2},
      {"HTTP/2 with a request ahead of its server",
       {{up, http2_begins + std::string(70'000, '\0')}, {down, settings_frame}},
       StopReason::http2},
      {"headers without end", {{up, "GET / HTTP/1.1\r\nA: " + std::string(30'000, 'x')}}, StopReason::header_too_long},
      {"headers in many lines",
       {{up, "GET / HTTP/1.1\r\n" +
                 [] {
                   std::string lines;
                   for (int i = 0; i < 6'000; ++i) {
                     lines += "A: b" + std::string(200, ' ') + "\r\n";
                   }
                   return lines;
                 }()}},
       StopReason::header_too_long},
      {"an answer to a request of which not all fields are known",
       {{up, "GET / HTTP/1.1\r\n" +
                 [] {
                   std::string lines;
                   for (int i = 0; i < 1024; ++i) {
                     lines += "A" + std::to_string(i) + ":\r\n";
                   }
                   return lines;
                 }() +
                 "Upgrade: websocket\r\n\r\n"},
        {down, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05"}},
       StopReason::upgrade},
      {"a line with a chunk's size that is too long",
       {{up, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;" + std::string(18'000, 'x') + "\r\nabc\r\n"}},
       StopReason::bad_chunk},
      {"a chunk of a request",
       {{up, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}},
       StopReason::bad_chunk},
  };
  for (const Case& c : cases) {
    for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
      EXPECT_EQ(parse(c.parts, piece, {}, 16U << 20).stops, std::vector{c.reason}) << c.what;
    }
  }
}

TEST(HttpConnection, ResponsesThatAreNotChunkedAsTheySayAreCounted) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, get.bytes);
  parser.data(*connection, down, "HTTP/1.1 200 ok\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  EXPECT_EQ(parser.counters().bad_chunks, 0U);
  parser.data(*connection, down, "x");
  EXPECT_EQ(parser.counters().bad_chunks, 1U);
  parser.close(connection);
}

TEST(HttpConnection, ARefusedConnectGoesOn) {
  const Sink sink = parse({{up, "CONNECT Host:443 HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n"},
                           {down, "HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 ok\r\n\r\nx"}});
  ASSERT_EQ(sink.exchanges.size(), 2U);
  EXPECT_EQ(sink.exchanges[0].host, "host");
  EXPECT_EQ(sink.exchanges[1].uri, "/next");
  EXPECT_EQ(sink.exchanges[1].response_body, "x");
}

// For its server has it before the answer, and may refuse the CONNECT.
TEST(HttpConnection, ARequestBehindAConnectIsReadBeforeTheAnswer) {
  const std::string connect = "CONNECT h:443 HTTP/1.1\r\n\r\n";
  for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
    const Sink sink = parse({{up, connect + "\r\nGET /next HTTP/1.1\r\n\r\n"}}, piece);
    ASSERT_EQ(sink.exchanges.size(), 2U);
    EXPECT_EQ(sink.exchanges[1].uri, "/next");
    const Sink tunnel = parse({{up, connect + "GET /next HTTP/1.1\r\n\r\n"}, {down, "HTTP/1.1 200 ok\r\n\r\n"}}, piece);
    EXPECT_EQ(tunnel.stops, std::vector{StopReason::tunnel});
    EXPECT_EQ(parse({{up, connect + "\x16\x03\1"}}, piece).exchanges.size(), 1U);
  }
}

// As a server does that has one handler for all methods.
TEST(HttpConnection, AConnectThatIsAnsweredAsOtherRequestsGoesOn) {
  const std::string connect = "CONNECT h:443 HTTP/1.1\r\n\r\n", next = "\r\nGET /next HTTP/1.1\r\n\r\n";
  const std::string bodies[] = {"Content-Length: 2\r\n\r\nok", "Content-Length: 0\r\n\r\n",
                                "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"};
  for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
    for (const std::string& body : bodies) {
      SCOPED_TRACE(body);
      const Part answer{down, "HTTP/1.1 200 ok\r\n" + body};
      for (const bool early : {false, true}) {
        const Sink sink = early ? parse({{up, connect + next}, answer, answer}, piece)
                                : parse({{up, connect}, answer, {up, next}, answer}, piece);
        ASSERT_EQ(sink.exchanges.size(), 2U);
        EXPECT_EQ(sink.exchanges[1].uri, "/next");
        EXPECT_EQ(sink.exchanges[1].response_body, sink.exchanges[0].response_body);
        EXPECT_TRUE(sink.stops.empty());
      }
      const Sink tunnel = parse({{up, connect}, answer, {up, "\x16\x03\1"}, {down, "\x16\x03\1"}}, piece);
      EXPECT_EQ(tunnel.stops, std::vector{StopReason::tunnel}) << "a proxy's";
    }
  }
}

// What looks like HTTP/2, and is a request to its server, or cannot be the preface.
TEST(HttpConnection, ARefusedPrefaceGoesOn) {
  const std::string no = "HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n";
  const std::string pri = "PRI * HTTP/2.0\r\n\r\n", next = "GET /next HTTP/1.1\r\n\r\n";
  for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
    for (const std::string& first :
         {pri, pri + "SM\r\n", pri + "SM / HTTP/1.1\r\n\r\n", std::string("PRI * HTTP/2.0\r\nA: b\r\n\r\n"),
          std::string("PRI * HTTP/2.1\r\n\r\n"), "\r\n" + pri}) {
      SCOPED_TRACE(first);
      const Sink early = parse({{up, first + "\r\n" + next}}, piece);
      ASSERT_GT(early.exchanges.size(), 1U) << "it is no preface: before the answer";
      EXPECT_EQ(early.exchanges.back().uri, "/next");
      const Sink sink = parse({{up, first}, {down, no}, {up, "\r\n" + next}, {down, no}}, piece);
      ASSERT_GT(sink.exchanges.size(), 1U);
      EXPECT_EQ(sink.exchanges[0].uri, "*");
      EXPECT_EQ(sink.exchanges[0].status, "400");
      EXPECT_EQ(sink.exchanges.back().uri, "/next");
      EXPECT_TRUE(sink.stops.empty());
    }
    const Sink whole = parse({{up, http2_begins + "\r\n\r\n" + next}, {down, no}}, piece);
    ASSERT_GT(whole.exchanges.size(), 1U) << "the server says that it is none";
    EXPECT_EQ(whole.exchanges[0].status, "400");
    EXPECT_EQ(whole.exchanges.back().uri, "/next");
    const Sink page = parse({{up, pri + next}, {down, "<html>"}, {up, next}}, piece);
    ASSERT_EQ(page.exchanges.size(), 3U) << "a server of HTTP/0.9";
    EXPECT_EQ(page.exchanges[0].response_body, "<html>");
    const Sink held = parse({{up, pri}, {down, "<html>"}, {up, next}}, piece);
    ASSERT_EQ(held.exchanges.size(), 2U) << "likewise, and the request waited";
    EXPECT_EQ(held.exchanges[1].uri, "/next");
    const Sink later = parse({get, {down, "HTTP/1.1 204 ok\r\n\r\n"}, {up, http2_begins + "\r\n\r\n" + next}}, piece);
    EXPECT_EQ(later.exchanges.back().uri, "/next") << "a preface comes first";
  }
}

// As headers are: merged, folded, bounded, and however the segments are cut. What a body is they do not change.
TEST(HttpConnection, TrailersAreHeaders) {
  const std::string chunks = "Cookie: c=1\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n";
  const std::string trailers = "a: 2\r\nno colon\r\nB: b\r\n\tc\r\nCookie: d=2\r\nContent-Length: 7\r\n\r\n";
  const std::string next = "GET /next HTTP/1.1\r\nD: d\r\n\r\n";
  const std::string ok = "HTTP/1.1 200 ok\r\n";
  for (const std::size_t piece : {std::string::npos, std::size_t{1}, std::size_t{7}}) {
    const Sink sink = parse(
        {{up, "POST / HTTP/1.1\r\n" + chunks + trailers + next}, {down, ok + chunks + "B: b\r\n\r\n" + ok + "\r\nx"}},
        piece);
    ASSERT_EQ(sink.exchanges.size(), 2U);
    const Exchange& one = sink.exchanges[0];
    EXPECT_EQ(one.request_headers, "A: 1, 2\r\nTransfer-Encoding: chunked\r\nB: b\tc\r\nContent-Length: 7\r\n");
    EXPECT_EQ(one.request_names, "Cookie A Transfer-Encoding B Content-Length ");
    EXPECT_EQ(one.cookie, "c=1, d=2");
    EXPECT_EQ(one.request_headers_raw, "Cookie: c=1\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n" + trailers);
    EXPECT_EQ(one.request_body, "BODY");
    EXPECT_EQ(one.events, "lhbtcLHBTC");
    EXPECT_EQ(one.response_headers, "Cookie: c=1\r\nA: 1\r\nTransfer-Encoding: chunked\r\nB: b\r\n");
    EXPECT_EQ(sink.exchanges[1].uri, "/next");
    EXPECT_EQ(sink.exchanges[1].request_headers, "D: d\r\n");
    EXPECT_EQ(sink.exchanges[1].response_body, "x");
  }
  const Sink open = parse({{up, "POST / HTTP/1.1\r\n" + chunks + "B: b"}});
  EXPECT_EQ(open.exchanges.at(0).request_names, "Cookie A Transfer-Encoding B ") << "the end of the connection";
}

TEST(HttpConnection, ManyFieldsAreCut) {
  std::string request = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 1100; ++i) {
    request += "h" + std::to_string(i) + ": v\r\n";
  }
  const Sink sink = parse({{up, request + "\r\n"}});
  EXPECT_TRUE(sink.exchanges.at(0).request_flags.fields_truncated);
  EXPECT_NE(sink.exchanges[0].request_headers.find("h1023: v"), std::string::npos);
  EXPECT_EQ(sink.exchanges[0].request_headers.find("h1024: v"), std::string::npos);
}

// What a body is does not depend on how much stands before the fields that say so.
TEST(HttpConnection, FieldsThatAreCutStillSayWhatTheBodyIs) {
  const std::string body = gzip("BODY");
  const std::string gzipped =
      "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string chunked = "Transfer-Encoding: x\r\ntransfer-encoding: chunked\r\n\r\n4\r\nBODY\r\n0\r\n\r\n";
  for (const char* const filler : {"a:\r\n", "Content-Encoding: identity\r\n"}) {
    for (const int count : {0, 1023, 1024, 1100}) {
      std::string head = "HTTP/1.1 200 ok\r\n";
      for (int i = 0; i < count; ++i) {
        head += filler;
      }
      for (const std::string& rest : {gzipped, chunked}) {
        const Sink sink = parse({get, get, {down, head + rest + "HTTP/1.1 201 ok\r\n\r\n"}});
        ASSERT_EQ(sink.exchanges.size(), 2U) << filler << count;
        EXPECT_EQ(sink.exchanges[0].response_body, "BODY") << filler << count;
        EXPECT_EQ(sink.exchanges[1].status, "201") << filler << count;
        EXPECT_EQ(sink.exchanges[0].response_flags.fields_truncated, count >= 1023) << filler << count;
      }
    }
  }
  BlockPool pool(1U << 20);
  Sink sink;
  Settings settings;
  settings.max_headers = 1;
  Parser parser(settings, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, "GET / HTTP/1.1\r\nA: b\r\nB: c\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n");
  EXPECT_EQ(parser.counters().fields_truncated, 1U);
  parser.close(connection);
}

// As it comes, and from its beginning where it was first read as a coding that it is not in.
TEST(HttpConnection, ACodedBodyIsShownBeforeItEnds) {
  const std::string head = "HTTP/1.1 200 ok\r\nContent-Encoding: deflate\r\nContent-Length: 1000\r\n\r\n";
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* const connection = parser.open();
  parser.data(*connection, up, get.bytes + get.bytes);
  parser.data(*connection, down, head + packed("BODY", -15));
  EXPECT_EQ(sink.exchanges.at(0).fresh, "BODY");
  parser.close(connection);
  Connection* const other = parser.open();
  sink.exchanges.clear();
  parser.data(*other, up, get.bytes);
  parser.data(*other, down, head + "bad-bytes");
  EXPECT_EQ(sink.exchanges.at(0).response_body.size(), 8U) << "what it is as deflate";
  parser.data(*other, down, "an rudfux");
  EXPECT_EQ(sink.exchanges[0].response_body, "bad-bytesan rudfux");
  EXPECT_EQ(sink.exchanges[0].fresh, "bad-bytesan rudfux");
  parser.close(other);
  EXPECT_EQ(pool.in_use(), 0U);
}

// A line has a limit, and what stands before the one that matters does not use it up.
TEST(HttpConnection, PaddingDoesNotEndIt) {
  std::string padding;
  for (int i = 0; i < 50; ++i) {
    padding += "P" + std::to_string(i) + ": " + std::string(10'000, 'x') + "\r\n";
  }
  const Sink sink = parse({{up, "GET / HTTP/1.1\r\n" + padding + "Host: there\r\n\r\n"},
                           {down, "HTTP/1.1 200 ok\r\n" + padding + "Content-Length: 4\r\n\r\nBODY"}},
                          std::string::npos, {}, 16U << 20);
  ASSERT_EQ(sink.exchanges.size(), 1U);
  EXPECT_EQ(sink.exchanges[0].host, "there");
  EXPECT_EQ(sink.exchanges[0].response_body, "BODY");
  EXPECT_TRUE(sink.stops.empty());
}

TEST(HttpConnection, Gaps) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  Connection* connection = parser.open();
  parser.data(*connection, up, get.bytes);
  parser.data(*connection, down, "HTTP/1.1 200 ok\r\nContent-Length: 10\r\n\r\nab");
  parser.gap(*connection, down, 6);
  parser.data(*connection, down, "ijHTTP/1.1 200 ok\r\n");
  EXPECT_TRUE(sink.exchanges.at(0).response_flags.gap);
  EXPECT_EQ(sink.exchanges[0].response_body, "abij");
  EXPECT_EQ(sink.exchanges.size(), 2U) << "the next response is found";
  parser.gap(*connection, down, 1);
  EXPECT_EQ(sink.stops, std::vector{StopReason::gap});
  parser.close(connection);
  EXPECT_EQ(pool.in_use(), 0U);
}

// What is said of a conversation does not depend on where the segments were cut.
TEST(HttpConnection, CutAtEveryByteItIsTheSame) {
  const std::string request =
      "\r\nPOST /a//b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n folded\r\n \n\n3\r\nabc\r\n0\r\nT: "
      "r\r\n\r\n"
      "GET /2 HTTP/1.1\r\nCookie: c\r\n\r\n";
  const std::string answer =
      " junk\r\nHTTP/1.1 200 ok\n\rA: b\r c\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\nTransfer-Encoding:\r\n "
      "chunked\r\n\r\n4\r\nBODY\r\n0\r\n"
      "\r\nHTTP/1.1 304 no\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 ok\r\nContent-Length: 1\r\n\r\nyz";
  const auto summary = [](const Sink& sink) {
    std::string all;
    for (const Exchange& e : sink.exchanges) {
      for (const std::string& piece : {e.request_line, e.uri, e.host, e.request_headers, e.cookie, e.request_body,
                                       e.status_line, e.response_headers, e.response_body, e.fresh, e.events}) {
        all += piece + "|";
      }
      all += std::to_string(e.response_flags.unexpected_body) + std::to_string(e.response_flags.bare_line_end) + "\n";
    }
    return all;
  };
  const std::string whole = summary(parse({{up, request}, {down, answer}}));
  EXPECT_NE(whole.find("/a/b|x|"), std::string::npos) << whole;
  EXPECT_NE(whole.find("BODY|BODY|"), std::string::npos) << whole;
  EXPECT_NE(whole.find("yz|yz|"), std::string::npos) << whole;
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    EXPECT_EQ(summary(parse({{up, request.substr(0, cut)}, {up, request.substr(cut)}, {down, answer}})), whole) << cut;
  }
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    EXPECT_EQ(summary(parse({{up, request}, {down, answer.substr(0, cut)}, {down, answer.substr(cut)}})), whole) << cut;
  }
  EXPECT_EQ(summary(parse({{up, request}, {down, answer}}, 1)), whole);
}

}  // namespace
}  // namespace sluice::flow::http
