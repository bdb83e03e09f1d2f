// What of HTTP goes beyond a limit, and what does not: other protocols, and what is ordinary.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "flow/http/parser_trial_test.h"

namespace sluice::flow::http {
namespace {

using namespace test;
using namespace std::string_literals;

std::string fields(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "h" + std::to_string(i) + ": v\r\n";
  return lines;
}

std::string of(std::size_t size, char c = 'a') {
  return std::string(size, c);
}

// In a body of as many codings.
std::string packed_body(int codings) {
  std::string body = "BODY", names = "identity";
  for (int i = 0; i < codings; ++i) {
    body = gzip(body);
    names += ", gzip";
  }
  return "Content-Encoding: " + names + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

const std::string settings_frame("\0\0\0\4\0\0\0\0\0", 9), http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings_frame;

struct Case {
  const char* what;
  std::vector<Part> parts;
  std::vector<Limit> limits;
};

void expect(const std::vector<Case>& cases, const Settings& settings = {}) {
  for (const Case& one : cases) {
    for (const std::size_t piece : {std::string::npos, std::size_t{1000}, std::size_t{1}}) {
      SCOPED_TRACE(std::string(one.what) + ", " + std::to_string(piece));
      EXPECT_EQ(parse(one.parts, piece, settings, 16U << 20).limits, one.limits);
    }
  }
}

TEST(HttpLimits, WhatIsHttpIsReportedOnce) {
  const std::string next = "GET /evil HTTP/1.1\r\n\r\n", head = "GET / HTTP/1.1\r\n", ok = "HTTP/1.1 200 ok\r\n";
  const std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::vector<Limit> line{Limit::header_line}, many{Limit::fields}, codings{Limit::codings}, chunk{Limit::chunk};
  expect({
      {"a header", {{up, head + "X: " + of(19'000) + "\r\n\r\n"}}, line},
      {"a header that does not end", {{up, head + "X: " + of(30'000)}}, line},
      {"a header of a request without version", {{up, "GET /\r\nX: " + of(19'000) + "\r\n\r\n"}}, line},
      {"a header of a method that nobody knows", {{up, "FOO / HTTP/1.1\r\nX: " + of(19'000) + "\r\n\r\n"}}, line},
      {"a header of the second request", {get, {up, head + "X: " + of(19'000) + "\r\n\r\n" + next}}, line},
      {"a request line", {{up, "GET /" + of(30'000) + " HTTP/1.1\r\n\r\n" + next}}, line},
      {"a request line that does not end", {{up, "GET /" + of(30'000)}}, line},
      {"a later one", {get, {up, "FOO" + of(30'000) + " / HTTP/1.1\r\n\r\n"}}, line},
      {"blanks before a request", {{up, of(30'000, ' ') + next}}, line},
      {"a status line", {{down, "HTTP/1.1 200 " + of(30'000)}}, line},
      {"an answer's header", {get, {down, ok + "X: " + of(19'000) + "\r\n\r\n"}}, line},
      {"what waits for the answer to CONNECT", {{up, "CONNECT h:1 HTTP/1.1\r\n\r\n" + of(30'000)}}, line},
      {"what waits for the answer to what may be HTTP/2", {{up, http2 + of(100'000)}, {down, ok}}, line},
      {"fields", {{up, head + fields(1025) + "\r\n" + head + fields(1025) + "\r\n"}}, many},
      {"an answer's fields", {get, {down, ok + fields(1025) + "\r\n"}}, many},
      {"fields, with its trailers", {{up, chunks + "0\r\n" + fields(1024) + "\r\n"}}, many},
      {"codings", {get, {down, ok + packed_body(3)}}, codings},
      {"a request's codings", {{up, "POST / HTTP/1.1\r\n" + packed_body(3)}}, codings},
      {"no chunk", {{up, chunks + "xyz\r\n" + next}}, chunk},
      {"what stands behind a chunk's size", {{up, chunks + "1;" + of(19'000) + "\r\na\r\n"}}, line},
  });
  Settings small;
  small.headers_limit = 5'000;
  const std::vector<Limit> all{Limit::headers};
  expect({{"headers", {{up, head + "A: " + of(4'000) + "\r\nB: " + of(2'000) + "\r\n\r\n"}}, all},
          {"a request line alone", {{up, "GET /" + of(5'000) + " HTTP/1.1\r\n"}}, all},
          {"trailers", {{up, chunks + "0\r\nA: " + of(4'000) + "\r\nB: " + of(2'000) + "\r\n\r\n"}}, all}},
         small);
}

// What servers read in more than one way. Each is reported before a line ends that some end earlier.
TEST(HttpLimits, ChunksOfRequestsThatAreNotPlainAreNone) {
  const std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::vector<Case> cases;
  const char* const odd[] = {"0x8\r\n", "0_8\r\n", "+8\r\n",        "-8\r\n",       "8 junk",           "8 8\r\n",
                             "8\rx",    "8\r\r",   "8\n",           " 8\r\n",       "\r\n8\r\n",        "8;a\n",
                             "8;a\rb",  "8\v\r\n", "1\r\na\n1\r\n", "1\r\nax1\r\n", "1\r\nax\r\n1\r\n", "1\r\na1\r\n",
                             "0x",      "0 junk"};
  for (const char* const one : odd) cases.push_back({one, {{up, chunks + one}}, {Limit::chunk}});
  const char* const plain[] = {"8\r\nevilbody\r\n0\r\n\r\n",
                               "008;a=\"b c\";d\r\nevilbody\r\nA \t; x\r\n0123456789\r\n0 ;\r\n\r\n",
                               "1\r\n\r\r\n1\r\n\n\r\n0\r\nA: b\r\n\r\n"};
  for (const char* const one : plain) cases.push_back({one, {{up, chunks + one + "GET / HTTP/1.1\r\n\r\n"}}, {}});
  expect(cases);
}

TEST(HttpLimits, RequestsWhoseEndServersReadInMoreThanOneWay) {
  const std::string post = "POST / HTTP/1.1\r\nA: b\r\n", chunked = "Transfer-Encoding: chunked\r\n",
                    length = "Content-Length: 8\r\n";
  std::vector<Case> cases;
  const std::string odd[] = {
      "Content-Length: 1_2\r\n",
      "Content-Length: +8\r\n",
      "Content-Length: -8\r\n",
      "Content-Length: 0x8\r\n",
      "Content-Length:\r\n",
      "Content-Length: \r\n",
      "Content-Length: x\r\n",
      "Content-Length: 8 9\r\n",
      "Content-Length: 8\v\r\n",
      "Content-Length: \0"
      "8\r\n"s,
      "Content-Length: 9223372036854775808\r\n",
      "Content-Length: 18446744073709551616\r\n",
      "Content-Length: 0, 8\r\n",
      "Content-Length: 8, 8\r\n",
      "Content-Length: 0\r\n" + length,
      length + "Content-Length: 0\r\n",
      "Content-Length : 8\r\n",
      "Content\0-Length: 8\r\n"s,
      "Content-Length:\r\n 8\r\n",
      "C: d\r\n Content-Length: 8\r\n",
      chunked + length,
      length + chunked,
      chunked + chunked,
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked, chunked\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: chunked;a\r\n",
      "Transfer-Encoding:\r\n",
      "Transfer-Encoding: \vchunked\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Transfer-Encoding:\r\n chunked\r\n",
      "C: d\r\n\tTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\n ,x\r\n",
      // To some there is no length behind these.
      "C: d\n" + length,
      "C: d\n" + chunked,
      "junk\r\n" + length,
      "junk\r\n" + chunked,
      "C d: e\r\n" + length,
      "C\xe9: d\r\n" + length,
      ": d\r\n" + length,
      length + "junk\r\n",
      " \n" + length,
      "\t\n" + length,
      "\0\n"s + length,
      " \n",
  };
  for (const std::string& one : odd) cases.push_back({one.c_str(), {{up, post + one + "\r\n"}}, {Limit::framing}});
  const std::string plain[] = {length + "\r\nevilbody",
                               length + length + "\r\nevilbody",
                               "CONTENT-LENGTH:008 \t\r\n\r\nevilbody",
                               "transfer-encoding:\tChunked \r\n\r\n8\r\nevilbody\r\n0\r\n\r\n",
                               "Content-Length: 0\r\n\r\n",
                               "C: d\r\n e: f\r\n" + length + "\r\nevilbody",
                               "junk\r\nC d: e\r\nF: g\n\r\n",
                               " \r\n" + length + "\r\nevilbody"};
  for (const std::string& one : plain)
    cases.push_back({one.c_str(), {{up, post + one + "GET / HTTP/1.1\r\n\r\n"}}, {}});
  const std::string longest = "Content-Length: 9223372036854775807\r\n\r\n";
  cases.push_back({"the largest length", {{up, post + longest}}, {}});
  for (const char* const version : {" HTTP/1.0", " HTTP/1.2", " http/1.1", ""}) {
    const std::string line = "POST /" + std::string(version) + "\r\n";
    cases.push_back({"chunks, but another version", {{up, line + chunked + "\r\n"}}, {Limit::framing}});
    cases.push_back({"a length, and another version", {{up, line + length + "\r\nevilbody"}}, {}});
  }
  cases.push_back({"lines that LF ends", {{up, "POST / HTTP/1.1\nA: b\nContent-Length: 8\n\nevilbody"}}, {}});
  cases.push_back({"the first line that LF ends", {{up, "POST / HTTP/1.1\n" + length + "\r\n"}}, {Limit::framing}});
  cases.push_back(
      {"trailers that a blank ends", {{up, post + chunked + "\r\n0\r\nA: b\r\n \nC: d\r\n\r\n"}}, {Limit::framing}});
  for (const char* const line : {"junk", "GET /evil HTTP/1.1", "A b: c", "A\x01: b"}) {  // headers' end to some
    cases.push_back({line, {{up, post + chunked + "\r\n0\r\n" + line + "\r\n\r\n"}}, {Limit::framing}});
  }
  cases.push_back({"a trailer that LF ends", {{up, post + chunked + "\r\n0\r\nA: b\n\r\n"}}, {Limit::framing}});
  cases.push_back({"a trailer", {{up, post + chunked + "\r\n0\r\nA: b\r\n\r\n" + get.bytes}}, {}});
  cases.push_back({"an answer's", {get, {down, "HTTP/1.1 200 ok\r\n" + chunked + "\r\n0\r\njunk\r\n\r\n"}}, {}});
  cases.push_back({"behind an answer to what looks like no request",
                   {{up, "\x16\x03\n"}, {down, "HTTP/1.1 400 no\r\n\r\n"}, {up, "x"}},
                   {Limit::framing}});
  for (const char* const line : {"G(T / HTTP/1.1\r\n", "GET\x1c/\x1cHTTP/1.1\r\n", "\xa0GET / HTTP/1.1\r\n"}) {
    cases.push_back({"a method that is no token", {{up, line}}, {Limit::framing}});
    cases.push_back({"a later one", {get, {up, line}}, {Limit::framing}});
  }
  cases.push_back(
      {"an answer", {get, {down, "HTTP/1.0 200 ok\r\nContent-Length: 1_2\r\n" + chunked + "\r\n0\r\n\r\n"}}, {}});
  cases.push_back({"another protocol", {{up, "FOO / BAR/1.0\r\n" + length + chunked + "\r\n"}}, {}});
  expect(cases);
}

// Before the line is whole: to some servers it is.
TEST(HttpLimits, CRsAloneInRequests) {
  const std::string post = "POST / HTTP/1.1\r\n", chunked = "Transfer-Encoding: chunked\r\n\r\n0\r\n";
  std::vector<Case> cases;
  const std::string odd[] = {
      post + "A: b\rC",          post + "A: b\r\r",          post + "A: b\r\r\n",    post + "\rA: b\r\n",
      post + "A: b\r\nC: d\r e", post + chunked + "A: b\rC", "GET / HTTP/1.1\rA",    "GET /\r\r\n",
      get.bytes + "GET /\rA",    "FOO / HTTP/1.1\rA",        "FOO /a\rb HTTP/1.1\rA"};
  for (const std::string& one : odd) cases.push_back({one.c_str(), {{up, one}}, {Limit::framing}});
  const std::string plain[] = {post + "A: b\r",
                               post + "A: b\n\n",
                               "\r\r\r\n" + get.bytes,
                               get.bytes + "\r\r\n" + get.bytes,
                               post + "Content-Length: 2\r\n\r\n\r\r",
                               "FOO /a b\rc\nd\re\n",
                               "EHLO a\rb"};
  for (const std::string& one : plain) cases.push_back({one.c_str(), {{up, one}}, {}});
  cases.push_back({"an answer", {get, {down, "HTTP/1.1 200 ok\rA: b\rC: d\r\n\r\n"}}, {}});
  cases.push_back({"a tunnel", {{up, "CONNECT h:1 HTTP/1.1\r\n\r\n\ra\rb"}, {down, "HTTP/1.1 200 ok\r\n\r\n"}}, {}});
  expect(cases);
}

TEST(HttpLimits, OtherProtocolsAndWhatIsOrdinaryAreNot) {
  const std::string head = "GET / HTTP/1.1\r\n", ok = "HTTP/1.1 200 ok\r\n";
  expect({
      {"another protocol", {{up, "\x16\x03" + of(50'000)}, {down, "\x16\x03" + of(50'000)}}, {}},
      {"a line of another one", {{up, "EHLO " + of(50'000)}}, {}},
      {"what its server answers as HTTP", {{up, "\x16\x03\n" + of(50'000)}, {down, ok + "\r\n"}, {down, of(9)}}, {}},
      {"a server that speaks first", {{down, "220 mail\r\n"}, {up, "GET /" + of(50'000)}}, {}},
      {"RTSP, with frames between its requests",
       {{up, "OPTIONS rtsp://h/a RTSP/1.0\r\nCSeq: 1\r\n\r\n"},
        {down, "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
        {up, "$" + of(50'000)}},
       {}},
      {"a cache's key that looks like a path", {{up, "set /key 0 0 30000\r\n" + of(30'000) + "\r\n"}}, {}},
      {"WebSocket",
       {{up, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"},
        {down, "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
        {up, of(50'000)}},
       {}},
      {"HTTP/2", {{up, http2}, {down, settings_frame + of(50'000)}, {up, of(50'000)}}, {}},
      {"HTTP/2 ahead of its server", {{up, http2 + of(70'000)}, {down, settings_frame}, {up, of(50'000)}}, {}},
      {"blank lines before a request", {{up, of(50'000, '\n') + head + "\r\n"}}, {}},
      {"a header of 17,000 bytes", {{up, head + "X: " + of(17'000) + "\r\n\r\n"}}, {}},
      {"as many fields as there may be", {{up, head + fields(1024) + "\r\n"}}, {}},
      {"and trailers",
       {{up, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + fields(1023) + "\r\n"}},
       {}},
      {"two codings", {get, {down, ok + packed_body(2)}}, {}},
      {"three, of no body", {get, {down, ok + "Content-Encoding: gzip, gzip, gzip\r\nContent-Length: 0\r\n\r\n"}}, {}},
      {"a body of any size", {get, {down, ok + "Content-Length: 3000000\r\n\r\n" + of(3'000'000)}}, {}},
      {"an answer that is not in chunks", {get, {down, ok + "Transfer-Encoding: chunked\r\n\r\nxyz" + of(50'000)}}, {}},
  });
}

TEST(HttpLimits, ConnectionsAreCountedByTheirLimit) {
  BlockPool pool(1U << 20);
  Sink sink;
  Parser parser({}, pool, 1, 8, sink);
  for (const std::string& bytes : {"GET / HTTP/1.1\r\n" + fields(1025) + "\r\n", "GET /" + of(30'000)}) {
    Connection* const connection = parser.open();
    parser.data(*connection, up, bytes);
    parser.close(connection);
  }
  EXPECT_EQ(parser.counters().limited[static_cast<unsigned>(Limit::fields)], 1U);
  EXPECT_EQ(parser.counters().limited[static_cast<unsigned>(Limit::header_line)], 1U);
  EXPECT_EQ(sink.limits, (std::vector{Limit::fields, Limit::header_line}));
}

// However many fields there are, and however alike: NULs, which names are compared without, make them many of one name.
TEST(HttpLimits, AsManyFieldsAsThereMayBeAreMergedInTheirOrder) {
  Settings settings;
  settings.max_headers = Settings::most_fields;
  settings.headers_limit = 1'000'000;
  std::string different, same, expected;
  for (unsigned i = 0; i < Settings::most_fields; ++i) {
    different += "h" + std::to_string(i) + ":\r\n";
    expected += "h" + std::to_string(i) + ": \r\n";
    std::string name = "a" + of(20, '\0');
    std::swap(name[0], name[i % 20]);
    same += name + ":\r\n";
  }
  const Sink one = parse({{up, "GET / HTTP/1.1\r\n" + different + "\r\n"}}, std::string::npos, settings, 16U << 20);
  EXPECT_EQ(one.exchanges.at(0).request_headers, expected);
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  const Sink other = parse({{up, "GET / HTTP/1.1\r\n" + same + "\r\n"}}, std::string::npos, settings, 16U << 20);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  EXPECT_LT((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1'000'000, 200) << "ms of CPU";
  EXPECT_EQ(other.exchanges.at(0).request_names.find("a", 25), std::string::npos) << "one name";
}

}  // namespace
}  // namespace sluice::flow::http
