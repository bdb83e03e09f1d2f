// Rules of streams alone (tcp-stream, flow:only_stream) see what is in the stream and nothing else; and what a SYN
// brings is of the conversation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "function/inspect/inspection_scope_trial_test.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, fin = packet::tcp_fin, rst = packet::tcp_rst;
constexpr bool up = true, down = false;

// A segment; `at`: of its first byte in the side's stream.
struct Sent {
  bool to_server;
  std::uint8_t flags;
  int at;
  std::string text;
};

class StreamOnlyTest : public InspectionScopeTest {
 protected:
  Judgement send(const Sent& sent, std::uint32_t acknowledged) {
    const std::uint32_t first[] = {1001, 5001};
    const std::uint32_t sequence = first[sent.to_server ? 0 : 1] + static_cast<std::uint32_t>(sent.at);
    return feed(test::segment_of(sent.to_server, sent.flags, sequence, first[sent.to_server ? 1 : 0] + acknowledged,
                                 sent.text));
  }
  std::set<std::uint32_t> reported() {
    const std::vector<std::uint32_t> all = alerts();
    return {all.begin(), all.end()};
  }
};

// What is beside the stream, rules of packets see, and those of no kind; so no evasion is missed.
TEST_F(StreamOnlyTest, WhatIsBesideTheStreamIsForOtherRules) {
  const std::set<std::uint32_t> beside{3, 4, 5}, in{1, 2, 3, 4, 5}, good{6, 7};
  const auto with_good = [&](std::set<std::uint32_t> sids) {
    sids.insert(good.begin(), good.end());
    return sids;
  };
  struct Case {
    const char* what;
    std::vector<Sent> sent;
    std::set<std::uint32_t> reported;
  };
  for (const Case& c : {
           Case{"in order", {{up, ack, 0, "GOODEVIL"}}, with_good(in)},
           Case{"other bytes again", {{up, ack, 0, "GOOD"}, {up, ack, 0, "EVIL"}}, with_good(beside)},
           Case{"longer", {{up, ack, 0, "GOOD"}, {up, ack, 0, "EVILmore"}}, with_good(beside)},
           Case{"of what waits", {{up, ack, 2, "GOOD"}, {up, ack, 2, "EVIL"}, {up, ack, 0, "xx"}}, with_good(beside)},
           Case{
               "behind a FIN", {{up, ack, 0, "GOOD"}, {up, ack | fin, 4, ""}, {up, ack, 5, "EVIL"}}, with_good(beside)},
           Case{"at a FIN's place", {{up, ack | fin, 0, "GOOD"}, {up, ack, 4, "EVIL"}}, with_good(beside)},
           Case{"over a FIN", {{up, ack | fin, 0, "GOOD"}, {up, ack, 2, "ODEVIL"}}, with_good(beside)},
           Case{"of the other side's, behind its FIN",
                {{down, ack, 0, "GOOD"}, {down, ack | fin, 4, ""}, {down, ack, 5, "EVIL"}},
                with_good(beside)},
           Case{"first data behind a FIN", {{up, ack | fin, 0, ""}, {up, ack, 1, "EVIL"}}, beside},
           Case{"first data at a FIN's place", {{up, ack | fin, 0, ""}, {up, ack, 0, "EVIL"}}, beside},
           Case{"before a FIN that came early", {{up, ack | fin, 8, ""}, {up, ack, 0, "GOODEVIL"}}, with_good(in)},
           Case{"behind an RST",
                {{up, ack, 0, "GOOD"}, {up, ack | rst, 4, ""}, {up, ack, 4, "EVIL"}},
                with_good(beside)},
           Case{"behind the other side's RST",
                {{up, ack, 0, "GOOD"}, {down, ack | rst, 0, ""}, {up, ack, 4, "EVIL"}},
                with_good(beside)},
           Case{"first data behind an RST", {{up, ack | rst, 0, ""}, {up, ack, 0, "EVIL"}}, beside},
           Case{"first data behind the other side's RST", {{down, ack | rst, 0, ""}, {up, ack, 0, "EVIL"}}, beside},
           Case{"in an RST", {{up, ack, 0, "GOOD"}, {up, ack | rst, 4, "EVIL"}}, with_good(beside)},
           Case{"behind an RST that fits nowhere",
                {{up, ack, 0, "GOOD"}, {up, rst, 90'000, ""}, {up, ack, 4, "EVIL"}},
                with_good(in)},
           Case{"beyond the depth",
                {{up, ack, 0, "GOOD"}, {up, ack, 4, "xxxxxxxx"}, {up, ack, 12, "EVIL"}},
                with_good(beside)},
           Case{"over the depth", {{up, ack, 0, "GOODxxEVIL"}}, with_good(beside)},
           Case{"far ahead", {{up, ack, 0, "GOOD"}, {up, ack, 60'000, "EVIL"}}, with_good(beside)},
           Case{"before the stream", {{up, ack, 0, "GOOD"}, {up, ack, -4, "EVIL"}}, with_good(beside)},
           Case{"again as it was", {{up, ack, 0, "EVIL"}, {up, ack, 0, "EVIL"}}, in},
           Case{"in two pieces", {{up, ack, 0, "EV"}, {up, ack, 2, "IL"}}, {1, 2, 3}},
           Case{"in two pieces over an RST", {{up, ack, 0, "EV"}, {up, ack | rst, 2, ""}, {up, ack, 2, "IL"}}, {}},
           Case{"in two pieces over a FIN", {{up, ack, 0, "EV"}, {up, ack | fin, 2, ""}, {up, ack, 2, "IL"}}, {}},
       }) {
    for (const bool inline_too : {false, true}) {
      streams_.depth = 8;
      streams_.ahead = 1000;
      streams_.drop_conflicts = streams_.drop_without_capacity = inline_too;
      use("alert tcp-stream any any -> any any (content:\"EVIL\"; sid:1;)\n"
          "alert tcp any any -> any any (flow:only_stream; content:\"EVIL\"; sid:2;)\n"
          "alert tcp any any -> any any (content:\"EVIL\"; sid:3;)\n"
          "alert tcp-pkt any any -> any any (content:\"EVIL\"; sid:4;)\n"
          "alert tcp any any -> any any (flow:no_stream; content:\"EVIL\"; sid:5;)\n"
          "alert tcp-stream any any -> any any (content:\"GOOD\"; sid:6;)\n"
          "alert tcp any any -> any any (flow:only_stream; content:\"GOOD\"; sid:7;)\n");
      handshake();
      for (const Sent& sent : c.sent) send(sent, 0);
      inspection_->finish();
      EXPECT_EQ(reported(), c.reported) << c.what << (inline_too ? ", inline" : "");
    }
  }
}

// TCP Fast Open (RFC 7413): a server hands on a SYN's data at once, so it is of an established conversation.
TEST_F(StreamOnlyTest, DataInASynIsOfAnEstablishedConversation) {
  const std::string cookie(
      "\x22\x0a"
      "cookie12\x01\x01",
      12),
      experiment(
          "\xfe\x0c\xf9\x89"
          "cookie12",
          12);
  const std::string request = "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n";
  const auto syn_with = [&](const std::string& options, const std::string& text) {
    packet::Bytes bytes = test::segment_of(true, syn, 1000, 0, options + text).build();
    bytes[14 + 20 + 12] = static_cast<std::uint8_t>((20 + options.size()) / 4 << 4);
    frame_ = reinterpret_cast<const char*>(bytes.data());
    return inspection_->frame({frame_, bytes.size()}, now_ += 1000);
  };
  const std::string rules =
      " tcp any any -> any any (flow:established,to_server; content:\"evil\"; sid:1;)\n"
      "alert http any any -> any any (flow:established,to_server; http.uri; content:\"evil\"; flowbits:set,x; sid:2;)\n"
      "alert tcp any any -> any any (flow:not_established; content:\"evil\"; sid:3;)\n"
      "alert tcp any any -> any any (flow:established; dsize:>1; content:\"evil\"; sid:4;)\n"
      "alert http any any -> any any (flow:established,to_client; flowbits:isset,x; http.stat_code; content:\"200\"; "
      "sid:5;)\n"
      "alert tcp-stream any any -> any any (content:\"GET /evil\"; sid:6;)\n";
  for (const std::string& options : {cookie, experiment}) {
    use("alert" + rules);
    syn_with(options, request);
    EXPECT_EQ(reported(), (std::set<std::uint32_t>{1, 2, 6}));
    // The server answers before its SYN-ACK is acknowledged.
    const auto sent = static_cast<std::uint32_t>(request.size());
    feed(test::segment_of(false, syn | ack, 5000, 1001 + sent));
    feed(test::segment_of(false, ack, 5001, 1001 + sent, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    EXPECT_THAT(alerts(), ElementsAre(5));
  }
  use("drop" + rules);
  EXPECT_TRUE(syn_with(cookie, request).drop) << "the client sends it again without data";
  // In two pieces, of which the second comes with the handshake's end.
  use("alert" + rules);
  syn_with(cookie, request.substr(0, 7));
  feed(test::segment_of(false, syn | ack, 5000, 1008));
  feed(test::segment_of(true, ack, 1008, 5001, request.substr(7)));
  EXPECT_EQ(reported(), (std::set<std::uint32_t>{1, 2, 6}));
  // Without the option hosts take nothing before the handshake is done.
  use("alert" + rules);
  syn_with("", request);
  EXPECT_EQ(reported(), (std::set<std::uint32_t>{3, 6}));
}

}  // namespace
}  // namespace sluice::function
