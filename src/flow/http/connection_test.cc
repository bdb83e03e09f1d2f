#include "flow/http/connection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/http/brotli_bodies_test.h"
#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace std::string_literals;
using namespace test;

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

// Wherever its fields stand, the coding of the transfer is undone before those of the content.
TEST(HttpConnection, CodingsOfTheTransferAreUndoneFirst) {
  const std::string body = gzip(brotli_fox()),
                    chunk = std::to_string(body.size() / 16) + "0123456789abcdef"[body.size() % 16];
  ASSERT_LT(body.size(), 160U);
  for (const std::string fields : {"Content-Encoding: br\r\nTransfer-Encoding: gzip, chunked\r\n",
                                   "Transfer-Encoding: gzip, chunked\r\nContent-Encoding: br\r\n"}) {
    const Sink sink =
        parse({get, {down, "HTTP/1.1 200 ok\r\n" + fields + "\r\n" + chunk + "\r\n" + body + "\r\n0\r\n\r\n"}},
              std::string::npos);
    ASSERT_EQ(sink.exchanges.size(), 1U);
    EXPECT_EQ(sink.exchanges[0].response_body, fox) << fields;
  }
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

// The answers to those that were given up are known by their place, and how they end by what was asked.
TEST(HttpConnection, AnswersToRequestsThatWereGivenUp) {
  Settings settings;
  settings.pipelined = 3;
  const std::vector<Part> parts = {
      {up,
       "GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\nGET /4 HTTP/1.1\r\n\r\n"
       "HEAD /5 HTTP/1.1\r\n\r\nGET /6 HTTP/1.1\r\n\r\n"},
      {down,
       "HTTP/1.1 100 go on\r\n\r\nHTTP/1.1 200 one\r\nContent-Length: 1\r\n\r\n1"
       "HTTP/1.1 200 two\r\nContent-Length: 99\r\n\r\nHTTP/1.1 200 three\r\nContent-Length: 1\r\n\r\n3"
       "HTTP/1.1 200 four\r\nContent-Length: 1\r\n\r\n4HTTP/1.1 200 five\r\nContent-Length: 99\r\n\r\n"
       "HTTP/1.1 200 six\r\n\r\n6"}};
  for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
    std::string all;
    for (const Exchange& one : parse(parts, piece, settings).exchanges) {
      all += one.uri + one.status_message + one.response_body + (one.request_flags.missing ? "? " : " ");
    }
    EXPECT_EQ(all, "/1 /2 /3 /4four4 /5five /6six6 one1? two? three3? ");
  }
}

TEST(HttpConnection, AConnectThatWasGivenUpIsATunnelAllTheSame) {
  std::string all = "CONNECT h:1 HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 40; ++i) all += "GET / HTTP/1.1\r\n\r\n";
  const Sink sink = parse({{up, all}, {down, "HTTP/1.1 200 ok\r\n\r\n"}});
  EXPECT_EQ(sink.stops, std::vector{StopReason::tunnel});
}

TEST(HttpConnection, MoreAnswersAreOwedThanThereMayBe) {
  std::string requests;
  for (int i = 0; i < 4'096 + 32; ++i) requests += "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(parse({{up, requests}}).limits, std::vector<Limit>());
  EXPECT_EQ(parse({{up, requests + "GET / HTTP/1.1\r\n\r\n"}}).limits, std::vector{Limit::framing});
}

TEST(HttpConnection, BehindAProxyHeader) {
  const std::string v2("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\1\2\3\4\5\6\7\x08\0\1\0\2", 28);
  for (const std::string& header : {std::string("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"), v2}) {
    for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
      const Sink sink = parse({{up, header + "GET /a HTTP/1.1\r\n\r\n"}, {down, "HTTP/1.1 204 no\r\n\r\n"}}, piece);
      ASSERT_EQ(sink.exchanges.size(), 1U);
      EXPECT_EQ(sink.exchanges[0].uri, "/a");
    }
  }
}

// Servers that answer what has no known form read on behind it.
TEST(HttpConnection, BehindAnOddRequest) {
  const std::string odd[] = {"FOO  /ok HTTP/1.1",    "FOO ftp://x/ok HTTP/1.1",
                             "FOO ok HTTP/1.1",      std::string(2'100, 'A') + " /ok HTTP/1.1",
                             "\v\fGET /ok HTTP/1.1", "\fGET /ok"};
  for (const std::string& line : odd) {
    for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
      const Sink sink = parse({{up, line + "\r\n\r\nGET /next HTTP/1.1\r\n\r\n"}}, piece);
      ASSERT_EQ(sink.exchanges.size(), 2U) << line;
      EXPECT_EQ(sink.exchanges[1].uri, "/next") << line;
    }
  }
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
      {"a method that is no token", {{up, "G(T /\r\n"}, {down, "x"}}, StopReason::not_http},
      {"a line that is too long",
       {{up, std::string(20'000, '(') + " / HTTP/1.1\r\n"}, {down, "x"}},
       StopReason::not_http},
      {"an unknown method without a path or a version", {{up, "FOO bar\r\n"}, {down, "x"}}, StopReason::not_http},
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
  const std::string answers[] = {"200 ok\r\nContent-Length: 2\r\n\r\nok", "200 ok\r\nContent-Length: 0\r\n\r\n",
                                 "200 ok\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "204 no\r\n\r\n"};
  for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
    for (const std::string& one : answers) {
      SCOPED_TRACE(one);
      const Part answer{down, "HTTP/1.1 " + one};
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
