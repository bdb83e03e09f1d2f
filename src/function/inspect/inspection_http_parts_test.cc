// Of an HTTP message: which of its parts are there for a rule, and flowbits that one part sets and another asks for.
// The right values are those of Suricata 7.0.10.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "function/inspect/inspection_http_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string of_request = "alert http any any -> any any (flow:to_server,established; ";
const std::string of_answer = "alert http any any -> any any (flow:to_client,established; ";

class InspectionHttpParts : public InspectionHttpTest {
 protected:
  // Those of `buffers` that are there, by a check that holds for all that is.
  std::vector<std::string> there(const std::string& from, const std::vector<std::string>& buffers,
                                 const std::string& check, const std::string& asked, const std::string& answered) {
    std::string text;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      text += (from + buffers[b]).append("; ").append(check) + "; sid:" + std::to_string(b + 1) + ";)\n";
    }
    use(text);
    post(asked);
    if (!answered.empty()) response(answered);
    std::vector<std::string> names;
    for (const std::uint32_t sid : alerts()) names.push_back(buffers[sid - 1]);
    return names;
  }
};

const std::vector<std::string> of_requests{"http.user_agent", "http.referer",      "http.accept",
                                           "http.accept_enc", "http.accept_lang",  "http.cookie",
                                           "http.connection", "http.content_type", "http.content_len"};
const std::vector<std::string> of_answers{"http.cookie", "http.connection", "http.content_type", "http.location",
                                          "http.server"};

TEST_F(InspectionHttpParts, AHeaderWithoutAValueIsThereAndOneThatIsNotThereIsNot) {
  const std::string empty =
      "GET / HTTP/1.1\r\nHost: x\r\nUser-Agent:\r\nReferer: "
      "\r\nAccept:\r\nAccept-Encoding:\r\nAccept-Language:\r\nCookie:\r\n"
      "Connection:\r\nContent-Type:\r\nContent-Length: \r\n\r\n";
  const std::string none = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string empty_answer =
      "HTTP/1.1 200 OK\r\nSet-Cookie:\r\nConnection: \r\nContent-Type:\r\nLocation:\r\nServer:\r\nContent-Length: "
      "0\r\n\r\n";
  const std::string none_answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  for (const std::string check :
       {"bsize:0", "content:!\"zzz\"", "pcre:\"/^$/\"", "isdataat:!0", "bsize:<5", "pcre:!\"/z/\""}) {
    EXPECT_THAT(there(of_request, of_requests, check, empty, ""), testing::UnorderedElementsAreArray(of_requests))
        << check;
    EXPECT_THAT(there(of_request, of_requests, check, none, ""), IsEmpty()) << check;
    EXPECT_THAT(there(of_answer, of_answers, check, none, empty_answer), testing::UnorderedElementsAreArray(of_answers))
        << check;
    EXPECT_THAT(there(of_answer, of_answers, check, none, none_answer), IsEmpty()) << check;
  }
}

TEST_F(InspectionHttpParts, NothingHoldsOfABodyThatIsNotThere) {
  const std::vector<std::string> bodies{"http.request_body", "http.response_body", "file.data"};
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  for (const std::string check :
       {"content:!\"zzz\"", "bsize:<5", "bsize:0", "isdataat:!0", "pcre:!\"/z/\"", "pcre:\"/^$/\""}) {
    for (const std::string asked :
         {"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
      EXPECT_THAT(there(of_request, {bodies[0], bodies[2]}, check, asked, ok), IsEmpty()) << check << asked;
    }
    for (const std::string answered :
         {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
      EXPECT_THAT(there(of_answer, {bodies[1], bodies[2]}, check, get, answered), IsEmpty()) << check << answered;
    }
    EXPECT_THAT(there(of_answer, {bodies[1], bodies[2]}, check, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
                IsEmpty())
        << check;
  }
  EXPECT_THAT(there(of_request, {bodies[0], bodies[2]}, "bsize:3",
                    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", ok),
              UnorderedElementsAre(bodies[0], bodies[2]));
  EXPECT_THAT(there(of_answer, {bodies[1], bodies[2]}, "bsize:2", get, ok), UnorderedElementsAre(bodies[1], bodies[2]));
}

TEST_F(InspectionHttpParts, NothingHoldsOfHeadersAReasonOrAHostThatAreNotThere) {
  const std::string check = "bsize:<99";
  const std::vector<std::string> of_either{"http.header", "http.header_names"};
  EXPECT_THAT(there(of_request, of_either, check, "GET / HTTP/1.0\r\n\r\n", ""), IsEmpty());
  EXPECT_THAT(there(of_request, of_either, check, "GET / HTTP/1.0\r\nA: b\r\n\r\n", ""),
              UnorderedElementsAre(of_either[0], of_either[1]));
  EXPECT_THAT(there(of_answer, {"http.header", "http.header_names", "http.stat_msg", "http.stat_code"}, check,
                    "GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200\r\n\r\nx"),
              ElementsAre("http.stat_code"));
  EXPECT_THAT(there(of_request, {"http.host", "http.host.raw"}, check, "GET / HTTP/1.1\r\nHost:\r\n\r\n", ""),
              ElementsAre("http.host.raw"));
  EXPECT_THAT(there(of_request, {"http.start"}, "bsize:17", "GET /a HTTP/1.0\r\n\r\n", ""), ElementsAre("http.start"));
}

struct Part {
  std::string name, check;
};
const std::array<Part, 8> parts{{{"uri", "http.uri; content:\"/index\""},
                                 {"method", "http.method; content:\"POST\""},
                                 {"line", "http.request_line; content:\"POST\""},
                                 {"agent", "http.user_agent; content:\"Probe\""},
                                 {"referer", "http.referer; content:\"ref\""},
                                 {"cookie", "http.cookie; content:\"c=1\""},
                                 {"header", "http.header; content:\"Host\""},
                                 {"body", "http.request_body; content:\"BODY\""}}};
const std::string whole =
    "POST /index.php HTTP/1.1\r\nHost: h\r\nUser-Agent: Probe/1.0\r\nReferer: ref\r\nCookie: c=1\r\nContent-Length: "
    "4\r\n\r\nBODY";

// In one segment, and cut between and within all parts.
TEST_F(InspectionHttpParts, AFlowbitThatOnePartSetsHoldsForEveryOtherPartOfTheRequest) {
  for (const Part& sets : parts) {
    for (const Part& asks : parts) {
      if (sets.name == asks.name) continue;
      // The asking rule stands first, by its place and its sid.
      const std::string rules = of_request + "flowbits:isset,x; " + asks.check + "; sid:1;)\n" + of_request +
                                sets.check + "; flowbits:set,x; flowbits:noalert; sid:2;)\n";
      for (const std::size_t size : {whole.size(), std::size_t{7}, std::size_t{50}}) {
        use(rules);
        for (std::size_t at = 0; at < whole.size(); at += size) post(whole.substr(at, size));
        EXPECT_THAT(alerts(), ElementsAre(1)) << sets.name << " for " << asks.name << ", segments of " << size;
      }
    }
  }
}

TEST_F(InspectionHttpParts, AChainOfFlowbitsGoesThroughAllPartsInAnyOrder) {
  use(of_request + "flowbits:isset,c; http.method; content:\"POST\"; sid:1;)\n" + of_request +
      "flowbits:isset,b; http.uri; content:\"/index\"; flowbits:set,c; sid:2;)\n" + of_request +
      "flowbits:isset,a; http.cookie; content:\"c=1\"; flowbits:set,b; sid:3;)\n" + of_request +
      "http.request_body; content:\"BODY\"; flowbits:set,a; sid:4;)\n");
  post(whole);
  EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2, 3, 4));
  post(whole);  // the next request's, once each
  EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2, 3, 4));
}

TEST_F(InspectionHttpParts, AFlowbitThatHeadersSetIsSetForWhatAsksThatItIsNot) {
  use(of_request + "flowbits:isnotset,x; http.uri; content:\"/index\"; sid:1;)\n" + of_request +
      "http.user_agent; content:\"Probe\"; flowbits:set,x; sid:2;)\n");
  post(whole);
  EXPECT_THAT(alerts(), ElementsAre(2));
  use(of_request + "flowbits:isset,x; http.uri; content:\"/index\"; sid:1;)\n" + of_request +
      "http.user_agent; content:\"Probe\"; flowbits:toggle,x; flowbits:noalert; sid:2;)\n");
  post(whole);
  EXPECT_THAT(alerts(), ElementsAre(1));
  post(whole);  // and is toggled back before it is asked for
  EXPECT_THAT(alerts(), IsEmpty());
}

// What comes in one segment is treated by the rules' order; what comes in a later one, later.
TEST_F(InspectionHttpParts, WhatAsksThatAFlowbitIsNotSetWaitsForTheRestOfTheSegment) {
  const std::size_t body = whole.size() - 4;
  for (const std::string part : {"http.uri; content:\"/index\"", "http.user_agent; content:\"Probe\""}) {
    use(of_request + "flowbits:isnotset,x; " + part + "; flowbits:set,y; sid:1;)\n" + of_request +
        "http.request_body; content:\"BODY\"; flowbits:set,x; sid:2;)\n" + of_request +
        "flowbits:isset,y; http.method; content:\"POST\"; sid:3;)\n");
    post(whole);
    EXPECT_THAT(alerts(), ElementsAre(2)) << part;
    use(of_request + "flowbits:isnotset,x; " + part + "; flowbits:set,y; sid:1;)\n" + of_request +
        "http.request_body; content:\"BODY\"; flowbits:set,x; sid:2;)\n" + of_request +
        "flowbits:isset,y; http.method; content:\"POST\"; sid:3;)\n");
    post(whole.substr(0, body));
    EXPECT_THAT(alerts(), ElementsAre(1, 3)) << part;
    EXPECT_EQ(urls_.back(), "/index.php ");
    post(whole.substr(body));
    EXPECT_THAT(alerts(), ElementsAre(2)) << part;
    // Of the next request it is set from the beginning.
    post(whole);
    EXPECT_THAT(alerts(), UnorderedElementsAre(2, 3)) << part;
  }
}

TEST_F(InspectionHttpParts, PartsThatSetAndClearAFlowbitDoSoInTheOrderOfTheirRules) {
  const std::string clears = of_request + "http.request_body; content:\"BODY\"; flowbits:unset,x; sid:2;)\n";
  const std::string sets = of_request + "http.uri; content:\"/index\"; flowbits:set,x; sid:3;)\n";
  const std::string asks = of_request + "flowbits:isset,x; http.method; content:\"POST\"; sid:4;)\n";
  use(asks + sets + clears);
  post(whole);
  EXPECT_THAT(alerts(), ElementsAre(2, 3, 4));
  use(asks + of_request + "http.uri; content:\"/index\"; flowbits:set,x; sid:1;)\n" + clears);
  post(whole);
  EXPECT_THAT(alerts(), ElementsAre(1, 2));
  // Two requests in a segment, each by itself.
  use(asks + of_request + "http.request_body; content:\"BODY\"; flowbits:toggle,x; sid:2;)\n");
  post(whole + whole);
  EXPECT_THAT(alerts(), ElementsAre(2, 4, 2));
}

TEST_F(InspectionHttpParts, WhatWaitsIsDroppedInTheFrameThatItWaitedIn) {
  use("drop http any any -> any any (flow:to_server,established; flowbits:isnotset,x; http.uri; content:\"/index\"; "
      "sid:1;)\n"
      "drop http any any -> any any (flow:to_server,established; http.request_body; content:\"other\"; "
      "flowbits:set,x; sid:2;)\n");
  EXPECT_TRUE(segment(true, packet::tcp_ack, whole).drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_TRUE(segment(true, packet::tcp_ack, whole).drop);  // the rest of the flow as well
}

TEST_F(InspectionHttpParts, AFlowbitThatHttpSetsHoldsForTheStreamThatBringsIt) {
  const std::string raw = "alert tcp any any -> any any (flow:to_server,established; flowbits:";
  for (const Part& sets : parts) {
    use(raw + "isset,x; content:\"index\"; sid:1;)\n" + raw + "isnotset,x; content:\"index\"; sid:2;)\n" + raw +
        "isset,y; content:\"index\"; sid:3;)\n" + of_request + sets.check + "; flowbits:set,x; sid:4;)\n");
    post(whole);
    // The stream is looked at before what is made of it, and again.
    EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2, 4)) << sets.name;
    post(whole);
    EXPECT_THAT(alerts(), UnorderedElementsAre(1, 4)) << sets.name;
  }
}

TEST_F(InspectionHttpParts, ARequestWithoutAVersionHasNeitherThatNorHeaders) {
  EXPECT_THAT(there(of_request, {"http.protocol", "http.header.raw", "http.method"}, "bsize:<99", "GET /a\r\n\r\n", ""),
              ElementsAre("http.method"));
}

TEST_F(InspectionHttpParts, AnAuthorityIsNoPath) {
  const std::string connect = "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_THAT(there(of_request, {"http.uri"}, "bsize:0", connect, ""), ElementsAre("http.uri"));
  EXPECT_THAT(there(of_request, {"http.uri.raw"}, "content:\"h:443\"", connect, ""), ElementsAre("http.uri.raw"));
}

TEST_F(InspectionHttpParts, AFlowbitThatAnAnswersBodySetsHoldsForItsStatusLine) {
  use(of_answer + "flowbits:isset,x; http.stat_code; content:\"200\"; sid:1;)\n" + of_answer +
      "http.response_body; content:\"RESP\"; flowbits:set,x; sid:2;)\n" + of_answer +
      "flowbits:isset,y; http.stat_msg; content:\"OK\"; sid:3;)\n" + of_answer +
      "http.server; content:\"srv\"; flowbits:set,y; sid:4;)\n");
  post("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  response("HTTP/1.1 200 OK\r\nServer: srv\r\nContent-Length: 4\r\n\r\nRESP");
  EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace sluice::function
