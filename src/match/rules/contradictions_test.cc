// Rules of which one part excludes another.
#include "match/rules/contradictions.h"

#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

struct Never {
  const char* header;  // protocol, and ports where they matter
  const char* options;
  const char* message;  // empty: it loads
};

std::string text_of(const Never& rule) {
  std::string header = rule.header;
  if (header.find(' ') == std::string::npos) header += " any any -> any any";
  return "alert " + header + " (" + rule.options + " sid:1;)";
}

TEST(Contradictions, RefuseARuleThatCouldNeverHold) {
  for (const Never& rule : {
           // The other message.
           Never{"http", "flow:to_client; http.uri; content:\"a\";",
                 "http_uri: it is of requests, and the flow to_client"},
           {"tcp", "flow:from_server; content:\"a\"; http_client_body;", "http_client_body: it is of requests"},
           {"http", "flow:to_server; http.stat_code; content:\"4\";",
            "http_stat_code: it is of responses, and the flow"},
           {"http", "flow:to_server; http.header; content:\"a\"; http.server; content:\"b\";", "http.server: it is of"},
           {"http", "flow:to_server; content:\"a\"; http_server_body;", "http_server_body: it is of responses"},
           {"http", "flow:to_client; http.uri; content:\"a\"; http.stat_code; content:\"4\";", ""},
           {"http", "flow:to_client; http.header; content:\"a\";", ""},
           {"http", "flow:to_server; http.cookie; content:\"a\";", ""},
           {"http", "flow:to_server; file_data; content:\"a\";", ""},
           {"http", "flow:to_client; file_data; content:\"a\";", ""},
           // Another protocol.
           {"udp", "http.uri; content:\"a\";", "http_uri: it is of TCP, and the rule of UDP: it could never hold"},
           {"icmp", "file_data; content:\"a\";", "file_data: it is of TCP, and the rule of ICMP"},
           {"ip", "http.uri; content:\"a\";", ""},
           {"udp", "flags:S;", "flags: it is of TCP, and the rule of UDP"},
           {"udp", "window:5;", "window: it is of TCP"},
           {"udp", "stream_size:client,>,5;", "stream_size: it is of TCP"},
           {"tcp", "itype:8;", "itype: it is of ICMP, and the rule of TCP"},
           {"http", "icmp_seq:8;", "icmp_seq: it is of ICMP"},
           {"ip", "flags:S; itype:8;", "itype: it is of ICMP, and the rule of TCP"},
           {"ip", "flags:S;", ""},
           {"tcp", "udp.hdr; content:\"a\";", "udp.hdr: it is of UDP, and the rule of TCP"},
           {"ipv4", "ipv6.hdr; content:\"a\";", "ipv6.hdr: it is of IPv6, and the rule of IPv4"},
           {"icmpv6", "icmpv4.hdr; content:\"a\";", "icmpv4.hdr: it is of IPv4, and the rule of IPv6"},
           {"tcp", "ipv6.hdr; content:\"a\";", ""},
           {"ipv6", "ipopts:rr;", "ipopts: it is of IPv4, and the rule of IPv6"},
           {"tcp", "ip_proto:17;", "ip_proto: it leaves nothing of TCP"},
           {"tcp", "ip_proto:!6;", "ip_proto: it leaves nothing of TCP"},
           {"tcp", "ip_proto:6;", ""},
           {"icmp", "ip_proto:58;", ""},
           // Packets or streams.
           {"tcp-pkt", "http.uri; content:\"a\";", "http_uri: it is of streams, and the rule tcp-pkt"},
           {"tcp", "flow:no_stream; http.uri; content:\"a\";", "http_uri: it is of streams, and the rule no_stream"},
           {"tcp-pkt", "flow:only_stream; content:\"a\";", "tcp-pkt: the rule is only_stream"},
           {"tcp-stream", "flow:no_stream; content:\"a\";", "no_stream: the rule is tcp-stream"},
           {"tcp-stream", "flags:A;", "tcp-stream: the rule looks at packets alone"},
           {"tcp", "flow:only_stream; tcp.hdr; content:\"a\";", "only_stream: the rule looks at packets alone"},
           {"udp", "flow:only_stream; content:\"a\";", "only_stream: it is of TCP"},
           {"tcp", "flow:only_stream; flags:A; content:\"a\";", ""},
           {"udp", "flow:no_stream; content:\"a\";", ""},
           // Sizes.
           {"tcp", "content:\"abc\"; dsize:2;", "dsize: a content of the rule has 3 bytes: it could never hold"},
           {"udp", "dsize:<3; content:\"a\"; content:\"abc\";", "dsize: a content of the rule has 3 bytes"},
           {"tcp", "content:\"abc\"; dsize:3;", ""},
           {"tcp", "content:!\"abc\"; dsize:2;", ""},
           {"tcp", "content:\"abc\"; dsize:>1;", ""},
           {"tcp", "content:\"abc\"; dsize:!2;", ""},
           {"tcp", "flow:only_stream; content:\"abc\"; dsize:2;", ""},
       }) {
    const auto read = read_rule(text_of(rule));
    if (*rule.message == '\0') {
      EXPECT_TRUE(read) << text_of(rule) << ": " << (read ? "" : read.error().message);
    } else {
      ASSERT_FALSE(read) << text_of(rule);
      EXPECT_THAT(read.error().message, testing::StartsWith(rule.message)) << text_of(rule);
    }
  }
}

// No mail is decoded, and HTTP is not what the rule means there.
TEST(Contradictions, RefuseFilesOfMail) {
  const std::string why = "file_data: it is of HTTP, and these ports of mail or files";
  for (const Never& rule : {
           Never{"tcp any any -> any 25", "flow:to_server; file_data; content:\"a\";", why.c_str()},
           {"tcp any [110,143] -> any any", "flow:to_client; file_data; content:\"a\";", why.c_str()},
           {"tcp any any -> any [25,587]", "file_data; content:\"a\";", why.c_str()},
           {"tcp any [80,110,143] -> any any", "flow:to_client; file_data; content:\"a\";", ""},
           {"tcp any any -> any any", "flow:to_server; file_data; content:\"a\";", ""},
           {"tcp any 25 -> any 80", "flow:to_server; file_data; content:\"a\";", ""},
           {"tcp any any -> any 25", "flow:to_server; content:\"a\";", ""},
       }) {
    const auto read = read_rule(text_of(rule));
    EXPECT_EQ(read ? "" : read.error().message, rule.message) << text_of(rule);
  }
}

TEST(Contradictions, RefuseANameThatNothingStandsBehind) {
  for (const char* options : {"http.uri;", "content:\"a\"; file_data;", "http.uri; http.method; content:\"GET\";"}) {
    const auto read = read_rule(with_options(options));
    ASSERT_FALSE(read) << options;
    EXPECT_THAT(read.error().message, testing::EndsWith(": nothing behind it looks at it")) << options;
  }
  for (const char* options : {"content:\"a\"; pkt_data;", "file_data; content:\"a\"; pkt_data; content:\"b\";",
                              "http.uri; bsize:3;", "file_data; content:\"a\"; http_uri;"}) {
    EXPECT_TRUE(read_rule(with_options(options))) << options;
  }
}

}  // namespace
}  // namespace sluice::match
