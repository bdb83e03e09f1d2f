// HTTP in conversations with rules: bodies as they grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <set>

#include "flow/http/brotli_bodies_test.h"
#include "flow/http/packed_test.h"
#include "function/inspect/inspection_http_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t ack = packet::tcp_ack, fin = packet::tcp_fin;

// As Suricata has them, cookies among them.
TEST_F(InspectionHttpTest, NamesOfHeadersStandInTheOrderOfTheLines) {
  use("alert http any any -> any any (flow:to_server; http.header_names; content:\"|0d 0a|Host|0d 0a|Cookie|0d 0a|A|0d "
      "0a|B|0d 0a 0d 0a|\"; startswith; endswith; http.header; content:!\"Cookie\"; http.cookie; content:\"c=1, d=2\"; "
      "sid:1;)\n"
      "alert http any any -> any any (flow:to_client; http.header_names; content:\"|0d 0a|Set-Cookie|0d 0a|Cookie|0d "
      "0a|Content-Length|0d 0a 0d 0a|\"; startswith; endswith; http.header; content:!\"Set-Cookie\"; sid:2;)\n");
  post("GET / HTTP/1.1\r\nHost: x\r\nCookie: c=1\r\nA: 1\r\ncookie: d=2\r\nB: 2\r\na: 3\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
  response("HTTP/1.1 200 ok\r\nSet-Cookie: e=1\r\nCookie: f=2\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionHttpTest, BodiesInBrAreLookedAtDecoded) {
  use("alert http any any -> any any (file_data; content:\"item 413\"; sid:1;)\n"
      "alert http any any -> any any (flow:to_server; http.request_body; content:\"lazy dog\"; sid:2;)\n");
  const std::string fox = flow::http::test::brotli_fox();
  post("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Length: " + std::to_string(fox.size()) +
       "\r\n\r\n" + fox);
  EXPECT_THAT(alerts(), ElementsAre(2));
  response("HTTP/1.1 200 ok\r\nContent-Encoding: br\r\n\r\n" +
           flow::http::test::from_hex(flow::http::test::list_page_hex));
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// The payload is what was sent, whatever is decoded of it besides.
TEST_F(InspectionHttpTest, RawbytesAreLookedForInWhatWasSent) {
  const std::string any = "alert tcp any any -> any any (";
  use(any + "content:\"/%65vil\"; rawbytes; sid:1;)\n" + any + "content:\"/evil\"; rawbytes; sid:2;)\n" + any +
      "content:\"/evil\"; http_uri; sid:3;)\n" + any + "content:\"ab|0d 0a|2\"; rawbytes; sid:4;)\n" + any +
      "content:\"abcd\"; rawbytes; sid:5;)\n" + any + "content:\"abcd\"; http_client_body; sid:6;)\n");
  post("POST /%65vil HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n");
  EXPECT_THAT(alerts(), testing::UnorderedElementsAre(1, 3, 4, 6));
}

// What stands behind a body in chunks is among the headers, for rules of headers and for those of headers and bodies.
// What held without it is not reported again.
TEST_F(InspectionHttpTest, TrailersAreHeaders) {
  use("drop http any any -> any any (flow:to_server; http.header; content:\"EVILHDR\"; sid:1;)\n"
      "alert http any any -> any any (flow:to_server; http.header.raw; content:\"X-A: EVILHDR\"; sid:2;)\n"
      "alert http any any -> any any (flow:to_server; http.header_names; content:\"|0d 0a|X-A|0d 0a|\"; sid:3;)\n"
      "alert http any any -> any any (http.header; content:\"EVIL\"; http.request_body; content:\"body\"; sid:4;)\n"
      "alert http any any -> any any (http.uri; content:\"/a\"; http.header; content:\"Host\"; sid:5;)\n"
      "alert http any any -> any any (flow:to_client; http.header; content:\"X-B|3a| c\"; sid:6;)\n");
  const std::string chunks = "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
  post("POST /a HTTP/1.1\r\n" + chunks + "\r\n");
  EXPECT_THAT(alerts(), ElementsAre(5));
  response("HTTP/1.1 200 ok\r\n" + chunks);
  response("X-B: c\r\n");
  EXPECT_THAT(alerts(), IsEmpty());
  response("\r\n");
  EXPECT_THAT(alerts(), ElementsAre(6));
  post("POST /a HTTP/1.1\r\n" + chunks);
  EXPECT_THAT(alerts(), ElementsAre(5));
  EXPECT_FALSE(segment(true, ack, "X-A: EVIL").drop);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_TRUE(segment(true, ack, "HDR\r\n\r\n").drop);
  EXPECT_THAT(alerts(), ElementsAre(1, 2, 3));
}

TEST_F(InspectionHttpTest, TrailersAreHeadersToRulesOfBodies) {
  use("alert http any any -> any any (http.header; content:\"EVIL\"; http.request_body; content:\"body\"; sid:4;)\n");
  post("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n");
  EXPECT_THAT(alerts(), IsEmpty());
  post("X-A: EVIL\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(4));
}

// Contents in any order and across pieces, each rule once, though the last byte never comes.
TEST_F(InspectionHttpTest, ABodyIsInspectedAsItGrows) {
  use("alert http any any -> any any (file_data; content:\"first part\"; content:\"two\"; sid:1;)\n"
      "drop http any any -> any any (flow:to_client; file_data; content:\"evil\"; sid:2;)\n"
      "alert http any any -> any any (content:\"posted\"; http_client_body; content:\"ab\"; http_uri; sid:3;)\n"
      "alert http any any -> any any (file_data; pcre:\"/t[w]o+ /\"; sid:4;)\n");
  post("POST /ab HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\npos");
  EXPECT_THAT(alerts(), IsEmpty());
  post("ted");
  EXPECT_THAT(alerts(), ElementsAre(3));
  post("posted");
  EXPECT_THAT(alerts(), IsEmpty());
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\nthe fir");
  response("st part");
  response(", and then ");
  EXPECT_THAT(alerts(), IsEmpty());
  response("two ");
  EXPECT_THAT(alerts(), ElementsAre(1, 4));
  response("two first part ev");
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_TRUE(segment(false, ack, "il").drop);
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// Of bodies in pieces: with the piece that makes a rule hold it is reported, whatever of it lies in earlier ones.
TEST_F(InspectionHttpTest, AGrowingBodyIsConfirmedAsIfAllOfItWereEachTime) {
  std::mt19937 random(4);
  const auto letters = [&](std::size_t most) {
    std::string text;
    for (std::size_t left = 1 + random() % most; left != 0; --left) text += "aabc"[random() % 4];
    return text;
  };
  std::size_t holding = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::string text;
    for (int sid = 1; sid <= 8; ++sid) {
      text += "alert http any any -> any any (flow:to_client; file_data; content:\"" + letters(3) + "\"; ";
      for (std::size_t left = random() % 3; left != 0; --left) {
        text += "content:\"" + letters(3) + "\"; ";
        if (random() % 2 == 0) text += "distance:" + std::to_string(random() % 9) + "; ";
        if (random() % 3 == 0) text += "nocase; ";
      }
      if (random() % 4 == 0) text += "pcre:\"/b.?c/R\"; ";
      text += "sid:" + std::to_string(sid) + ";)\n";
    }
    use(text);
    const auto set = match::read_rules_text(text, "test.rules");
    ASSERT_TRUE(set && set->refused.empty()) << text;
    std::vector<match::PayloadMatcher> matchers;
    for (const match::Rule& rule : set->rules) matchers.push_back(std::move(*match::PayloadMatcher::make(rule)));
    match::PayloadMatcher::Scratch scratch;
    request();
    response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\n");
    std::string body;
    std::set<std::uint32_t> reported;
    for (int pieces = 0; pieces < 20; ++pieces) {
      const std::string piece = letters(5);
      body += piece;
      response(piece);
      match::Buffers buffers;
      buffers.set(match::Buffer::file_data, body);
      std::vector<std::uint32_t> wanted;
      for (std::uint32_t r = 0; r < matchers.size(); ++r) {
        const bool holds = matchers[r].matches(buffers, scratch) == match::PayloadVerdict::yes;
        if (holds && reported.insert(r + 1).second) wanted.push_back(r + 1);
      }
      holding += wanted.size();
      ASSERT_THAT(alerts(), testing::UnorderedElementsAreArray(wanted)) << text << " on " << body << " by " << piece;
    }
  }
  EXPECT_GT(holding, 200U);
}

// A rule of HTTP that needs bytes in the payload which ordinary traffic does not have is tried only where these are in
// the window, whoever has searched it, and in however many segments they came.
TEST_F(InspectionHttpTest, RulesThatNeedRareBytesOfThePayloadWaitForThese) {
  const std::string rules =
      "alert http any any -> any any (content:\"GET\"; http_method; content:\"rare-q7z-bytes\"; sid:1;)\n";
  const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n";
  struct Case {
    std::vector<std::string> segments;
    std::vector<std::uint32_t> sids;
    std::uint64_t confirmed;
  };
  const std::vector<Case> cases = {
      {{get + "\r\n", get + "\r\n"}, {}, 0},
      {{get + "X: rare-q7z\r\n\r\n", get + "\r\n"}, {}, 2},
      {{get + "X: rare-q7z-bytes\r\n\r\n"}, {1}, 1},
      {{get + "X: rare", "-q7z-b", "ytes\r\n\r\n", get + "\r\n"}, {1}, 2},
      {{get + "X: rare-q7z-bytes\r\n\r\n", get + "\r\n", get + "\r\n"}, {1, 1, 1}, 3},
      {{get + "X: rare-q7z-bytes\r\n\r\n", get + "Y: " + std::string(3000, 'y') + "\r\n\r\n", get + "\r\n"}, {1, 1}, 2},
  };
  for (const bool by_device : {false, true}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.segments.front() + (by_device ? " by keys" : ""));
      by_device_ = by_device;
      use(rules);
      for (const std::string& text : one.segments) segment(true, ack, text);
      EXPECT_EQ(alerts(), one.sids);
      if (!by_device) {
        EXPECT_LE(inspection_->counters().confirmed, one.confirmed);
      }
    }
  }
}

// Each buffer once, for the rules of all points; of a body what is new, with what a pattern may begin in.
TEST_F(InspectionHttpTest, WhatABufferHoldsIsSearchedOnce) {
  use("alert http any any -> any any (http.uri; content:\"/a\"; sid:1;)\n"
      "alert http any any -> any any (http.uri; content:\"/a\"; http.cookie; content:\"c\"; sid:2;)\n"
      "alert http any any -> any any (http.uri; content:\"/abc\"; http.request_body; content:\"b\"; sid:3;)\n"
      "alert http any any -> any any (http.uri; content:\"/abcd\"; http.stat_code; content:\"2\"; sid:4;)\n"
      "alert http any any -> any any (file_data; content:\"wxyz\"; sid:5;)\n");
  post("POST /abcd HTTP/1.1\r\nHost: x\r\nCookie: c\r\nContent-Length: 1\r\n\r\nb");
  EXPECT_THAT(alerts(), ElementsAre(1, 2, 3));
  const std::uint64_t before = inspection_->counters().searched;
  const std::string head = "HTTP/1.1 200 ok\r\nContent-Length: 3000\r\n\r\n", body(1000, 'x');
  response(head);
  EXPECT_THAT(alerts(), ElementsAre(4));
  const std::uint64_t of_head = inspection_->counters().searched - before;
  EXPECT_EQ(of_head, head.size()) << "by the payload's rules, and nothing of the request again";
  response(body);
  response(body);
  EXPECT_LE(inspection_->counters().searched - before, of_head + 2 * 2 * (body.size() + 4));
}

// However many patterns a body holds, none of it is searched again.
TEST_F(InspectionHttpTest, ABodyOfManyPatternsIsSearchedAsItGrows) {
  constexpr unsigned count = 40;
  std::string text, body;
  std::vector<std::uint32_t> sids;
  for (unsigned i = 0; i < count; ++i) {
    const std::string word = "word" + std::to_string(100 + i);
    text += "alert http any any -> any any (file_data; content:\"" + word +
            "\"; content:\"the end\"; sid:" + std::to_string(i + 1) + ";)\n";
    body += word + " ";
    sids.push_back(i + 1);
  }
  use(text);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 100000\r\n\r\n");
  const std::uint64_t before = inspection_->counters().searched;
  for (const char c : body) response(std::string(1, c));
  EXPECT_LT(inspection_->counters().searched - before, body.size() * 40);
  EXPECT_THAT(alerts(), IsEmpty());
  response("the end");
  EXPECT_EQ(alerts(), sids);
}

// The frame that completes it is dropped, though the body does not end, and whatever its first bytes could be besides.
TEST_F(InspectionHttpTest, AShortBodyInDeflateIsInspectedAsItComes) {
  const std::string text = "what a client shows of it: bad-bytes";
  const std::string raw = flow::http::test::packed(text, -15), zlib = flow::http::test::packed(text, 15);
  struct Case {
    const char* coding;
    std::string body;
    std::size_t cut;
  };
  for (const Case& one : {Case{"deflate", raw, 20},
                          {"deflate", zlib, 20},
                          {"deflate, deflate", flow::http::test::packed(raw, -15), 20},
                          {"deflate", "bad-bytesan rudfux", 9}}) {
    SCOPED_TRACE(one.coding);
    use("drop http any any -> any any (flow:to_client; file_data; content:\"bad-bytes\"; sid:1;)\n");
    request();
    response(std::string("HTTP/1.1 200 ok\r\nTransfer-Encoding: chunked\r\nContent-Encoding: ") + one.coding +
             "\r\n\r\nff\r\n");
    EXPECT_FALSE(segment(false, ack, one.body.substr(0, one.cut)).drop);
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_TRUE(segment(false, ack, one.body.substr(one.cut)).drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
  }
}

// A server that decodes none sees what is behind the coding's end, and in gzip's header.
TEST_F(InspectionHttpTest, ACodedBodyOfARequestIsInspectedAsItCameToo) {
  std::string named = flow::http::test::packed("harmless", 31);
  named[3] |= 8;  // a name follows
  named.insert(10, std::string("cmd=bad-bytes") + '\0');
  const std::string hidden[] = {flow::http::test::packed("harmless", 31) + "&cmd=bad-bytes",
                                std::string("\1\3\0\374\377abc&cmd=bad-bytes", 22), named,
                                flow::http::test::packed("it is bad-bytes", 31)};
  for (const std::string& body : hidden) {
    use("drop http any any -> any any (http.request_body; content:\"bad-bytes\"; sid:1;)\n");
    const std::string head = "POST / HTTP/1.1\r\nContent-Encoding: " + std::string(body[0] == 1 ? "deflate" : "gzip") +
                             "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    EXPECT_FALSE(segment(true, ack, head + body.substr(0, 5)).drop);
    EXPECT_TRUE(segment(true, ack, body.substr(5)).drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
  }
}

// What nobody has looked for may be there: in what other rules let by, and what came before the rules.
TEST_F(InspectionHttpTest, BytesOfThePayloadThatNobodyHasLookedForAreTakenAsThere) {
  const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n", token = "X: rare-q7z-bytes\r\n";
  use("pass tcp any any -> any any (dsize:25; sid:9;)\n"
      "alert http any any -> any any (http.cookie; content:\"c=1\"; pkt_data; content:\"rare-q7z-bytes\"; sid:2;)\n");
  segment(true, ack, get);
  segment(true, ack, token + "Y: 1\r\n");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, "Cookie: c=1\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(2));

  use("alert http any any -> any any (http.cookie; content:\"c=1\"; sid:3;)\n");
  segment(true, ack, get + token);
  inspection_->exchange(std::make_unique<InspectionSearch>(test::rules_of(
      "alert http any any -> any any (http.cookie; content:\"c=1\"; pkt_data; content:\"rare-q7z-bytes\"; sid:2;)\n")));
  segment(true, ack, "Cookie: c=1\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// The numbers of those that have held in a transaction are other rules' then.
TEST_F(InspectionHttpTest, RulesThatHeldBeforeAnExchangeKeepNoNewOnesFromHolding) {
  use("alert http any any -> any any (http.uri; content:\"/a\"; sid:1;)\n");
  segment(true, ack, "GET /a HTTP/1.1\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
  inspection_->exchange(std::make_unique<InspectionSearch>(
      test::rules_of("alert http any any -> any any (http.host; content:\"x\"; sid:2;)\n")));
  segment(true, ack, "Host: x\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// What the client's packet sets free of the response is looked at with the server's bytes.
TEST_F(InspectionHttpTest, ThePayloadOfAResponseIsTheServers) {
  use("alert http any any -> any any (flow:to_client; http.response_body; content:\"bodybytes\"; "
      "pkt_data; content:\"clientword\"; sid:1;)\n"
      "alert http any any -> any any (flow:to_client; http.response_body; content:\"bodybytes\"; "
      "pkt_data; content:\"200 fine\"; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 19\r\n\r\nbodybytes");
  EXPECT_THAT(alerts(), IsEmpty());
  sequence_[1] += 10;
  response("HTTP/1.1 200 fine\r\n");
  post("GET /clientword HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(alerts(), IsEmpty());
  response("Content-Length: 19\r\n\r\nbodybytes");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

// A stream is looked at before the parser has its piece.
TEST_F(InspectionHttpTest, AnAlertKnowsItsTransactionAndOneInTheStreamTheOneThatGoesOn) {
  use("alert http any any -> any any (content:\"GET\"; http_method; sid:1;)\n"
      "alert tcp any any -> any any (content:\"from-a-stream\"; sid:2;)\n"
      "alert http any any -> any any (file_data; content:\"in-a-body\"; sid:3;)\n");
  const auto reported = [&] { return std::pair(alerts(), std::exchange(urls_, {})); };
  const auto is = [](std::vector<std::uint32_t> sids, std::vector<std::string> urls) { return std::pair(sids, urls); };
  segment(true, ack, "GET /from-a-stream HTTP/1.1\r\n");
  EXPECT_EQ(reported(), is({2, 1}, {"", "/from-a-stream "}))
      << "nobody knows the request before its first piece is taken";
  segment(true, ack, "X: from-a-stream\r\n\r\n");
  EXPECT_EQ(reported(), is({2}, {"/from-a-stream "}));
  response("HTTP/1.1 200 ok\r\nX: from-a-stream\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(reported(), is({2}, {"/from-a-stream "})) << "nor its answer's status";
  response("from-a-stream in-a-body");
  EXPECT_EQ(reported(), is({2, 3}, {"/from-a-stream 200", "/from-a-stream 200"}));
  segment(true, ack, "GET /2 HTTP/1.1\r\n\r\n");
  reported();
  response("from-a-stream");
  EXPECT_EQ(reported(), is({2}, {""})) << "one of two that wait for their answers' ends";
}

// And one whose headers come later is reported with its line.
TEST_F(InspectionHttpTest, AnAlertOfARequestLineKnowsTheHeadersThatComeWithIt) {
  use("alert http any any -> any any (content:\"/1\"; http_uri; sid:1;)\n"
      "drop http any any -> any any (content:\"/2\"; http_uri; sid:2;)\n"
      "alert http any any -> any any (content:\"agent\"; http_user_agent; sid:3;)\n");
  const std::string headers = "Host: one\r\nUser-Agent: agent\r\n\r\n";
  segment(true, ack, "GET /1 HTTP/1.1\r\n" + headers + "GET /1/again HTTP/1.1\r\n" + headers);
  EXPECT_THAT(alerts(), ElementsAre(1, 3, 1, 3));
  EXPECT_THAT(std::exchange(hosts_, {}), ElementsAre("one", "one", "one", "one"));
  EXPECT_TRUE(segment(true, ack, "GET /2 HTTP/1.1\r\n").drop);
  EXPECT_THAT(alerts(), ElementsAre(2)) << "before the frame's end";
  EXPECT_THAT(hosts_, ElementsAre(""));
  EXPECT_EQ(blocked_, 1U);
}

TEST_F(InspectionHttpTest, ARequestThatIsDroppedIsReportedWithItsHeaders) {
  use("drop http any any -> any any (content:\"/2\"; http_uri; sid:2;)\n");
  EXPECT_TRUE(segment(true, ack, "GET /2 HTTP/1.1\r\nHost: two\r\n\r\n").drop);
  EXPECT_THAT(alerts(), ElementsAre(2));
  EXPECT_THAT(hosts_, ElementsAre("two"));
  EXPECT_EQ(blocked_, 1U);
}

TEST_F(InspectionHttpTest, WhatABodysEndMayRefuteWaitsForIt) {
  use("alert http any any -> any any (file_data; content:\"ab\"; content:!\"cd\"; within:2; sid:1;)\n"
      "alert http any any -> any any (file_data; content:\"ab\"; endswith; sid:2;)\n"
      "alert http any any -> any any (file_data; content:\"ab\"; isdataat:!2,relative; sid:3;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 6\r\n\r\nxxab");
  EXPECT_THAT(alerts(), IsEmpty());
  response("cd");
  EXPECT_THAT(alerts(), IsEmpty());
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 6\r\n\r\nxxxx");
  response("ab");
  EXPECT_THAT(alerts(), ElementsAre(1, 2, 3));
}

TEST_F(InspectionHttpTest, ABodysLimitIsAnEndOfIt) {
  InspectionSettings settings;
  settings.conversations.http.response_body_limit = 100;
  use("alert http any any -> any any (file_data; content:\"ab\"; content:!\"cd\"; sid:1;)\n", settings);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\nab" + std::string(98, 'x'));
  EXPECT_THAT(alerts(), IsEmpty());
  response("x");
  EXPECT_THAT(alerts(), ElementsAre(1));
  response(std::string(899, 'x'));
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionHttpTest, HeadersWithoutADirectionAreThoseOfBothMessages) {
  use("alert http any any -> any any (content:\"Evil\"; http_header; sid:1;)\n"
      "alert http any any -> any any (content:\"Evil\"; http_header; content:\"/\"; http_uri; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nServer: Evil\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
  post("GET / HTTP/1.1\r\nUser-Agent: Evil\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1, 2));
  response("HTTP/1.1 200 ok\r\nServer: Evil\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// More patterns than are remembered: the whole body is searched each time.
TEST_F(InspectionHttpTest, ABodyOfManyPatternsIsInspectedAsItGrows) {
  std::string rules, body;
  std::vector<std::uint32_t> all;
  for (unsigned i = 1; i <= 20; ++i) {
    const std::string number = std::to_string(100 + i);
    rules += "alert http any any -> any any (file_data; content:\"pattern" + number +
             "\"; content:\"last\"; sid:" + number + ";)\n";
    body += "pattern" + number;
    all.push_back(100 + i);
  }
  use(rules);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\n" + body);
  response("la");
  EXPECT_THAT(alerts(), IsEmpty());
  response("st");
  EXPECT_EQ(alerts(), all);
  response("and more");
  segment(false, fin | ack);
  EXPECT_THAT(alerts(), IsEmpty());
}

// Of a body that is searched anew, slice by slice, each of which has the pattern in each of its buffers.
TEST_F(InspectionHttpTest, WhatBodiesHoldAgainAndAgainTakesNoMoreCapacity) {
  const std::string rules =
      "alert http any any -> any any (file_data; content:\"evil\"; content:\"zq\"; sid:1;)\n"
      "alert http any any -> any any (http.response_body; content:\"evil\"; content:\"zq\"; sid:2;)\n";
  use(rules);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000000\r\n\r\n");
  std::string text;
  while (text.size() < 1400) text += "evil ";
  for (int i = 0; i < 60; ++i) response(text);
  auto search = std::make_unique<InspectionSearch>(test::rules_of(rules));
  const InspectionSearch& now = *search;
  const std::size_t capacity = now.prefilter_matches.capacity();
  inspection_->exchange(std::move(search));
  const std::uint64_t before = inspection_->counters().searched;
  response("evil");
  EXPECT_GT(inspection_->counters().searched, before + 2 * 80'000U);
  EXPECT_EQ(now.prefilter_matches.capacity(), capacity);
  EXPECT_GT(inspection_->counters().confirmed, 0U);
}

}  // namespace
}  // namespace sluice::function
