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
           // Addresses of one family alone.
           {"tcp 10.0.0.1 any -> 2001:db8::/32 any", "content:\"a\";",
            "destination: it is of IPv6, and the rule of IPv4: it could never hold"},
           {"ip 2001:db8::1 any <> [10.0.0.0/8,192.0.2.1] any", "", "destination: it is of IPv4, and the rule of IPv6"},
           {"tcp ![::/0] any -> 2001:db8::1 any", "", "destination: it is of IPv6, and the rule of IPv4"},
           {"tcp [!10.0.0.0/8,!::/0] any -> 2001:db8::1 any", "", "destination: it is of IPv6"},
           {"icmpv6 10.0.0.1 any -> 10.0.0.2 any", "", "source: it is of IPv4, and the rule of IPv6"},
           {"icmpv6 any any -> 10.0.0.2 any", "", "destination: it is of IPv4, and the rule of IPv6"},
           {"icmp any any -> 10.0.0.2 any", "icmpv6.hdr; content:\"a\";", "icmpv6.hdr: it is of IPv6, and the rule of"},
           {"ip 2001:db8::1 any -> any any", "ipopts:rr;", "ipopts: it is of IPv4, and the rule of IPv6"},
           {"tcp 10.0.0.1 any -> [10.0.0.2,2001:db8::/32] any", "", ""},
           {"tcp 10.0.0.1 any -> !2001:db8::/32 any", "", ""},
           {"icmpv6 !10.0.0.1 any -> !10.0.0.2 any", "", ""},
           {"icmp 10.0.0.1 any -> any any", "itype:128;", ""},
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
           {"tcp", "flow:only_frag; http.uri; content:\"a\";", "http_uri: it is of streams, and the rule only_frag"},
           {"tcp-stream", "flow:only_frag; content:\"a\";", "tcp-stream: the rule is only_frag"},
           {"tcp", "flow:only_frag; content:\"a\";", ""},
           {"tcp", "flow:no_frag; http.uri; content:\"a\";", ""},
           // Sizes.
           {"tcp", "content:\"abc\"; dsize:2;",
            "dsize: 2 bytes at most, and what the rule looks for in the payload needs 3: it could never hold"},
           {"udp", "dsize:<3; content:\"a\"; content:\"abc\";", "dsize: 2 bytes at most"},
           {"tcp", "content:\"abc\"; dsize:3;", ""},
           {"tcp", "content:!\"abc\"; dsize:2;", ""},
           {"tcp", "content:\"abc\"; dsize:>1;", ""},
           {"tcp", "content:\"abc\"; dsize:!2;", ""},
           {"tcp", "flow:only_stream; content:\"abc\"; dsize:2;", ""},
           // Sizes, and where contents and numbers have to lie.
           {"udp", "dsize:6; content:\"abc\"; offset:4;", "dsize: 6 bytes at most, and what the rule looks for in the"},
           {"udp", "dsize:7; content:\"abc\"; offset:4;", ""},
           {"udp", "dsize:7; content:\"ab\"; content:\"c\"; distance:5;", "dsize: 7 bytes at most"},
           {"udp", "dsize:8; content:\"ab\"; content:\"c\"; distance:5;", ""},
           {"udp", "dsize:3; content:\"abc\"; content:\"bc\"; distance:-2;", ""},
           {"udp", "dsize:3; content:\"abc\"; content:\"bcd\"; distance:-2;", "dsize: 3 bytes at most"},
           {"udp", "dsize:3; content:\"ab\"; content:!\"cd\"; distance:5;", ""},
           {"udp", "dsize:5; content:\"ab\"; content:!\"x\"; content:\"cd\"; distance:2;", "dsize: 5 bytes at most"},
           {"udp", "dsize:5; content:\"ab\"; content:\"cd\"; content:\"ef\"; distance:0;", ""},
           {"udp", "dsize:3; content:\"ab\"; pcre:\"/c/\"; content:\"d\"; distance:1;", ""},
           {"udp", "dsize:3; content:\"ab\"; pcre:\"/c?/R\"; content:\"d\"; distance:1;", "dsize: 3 bytes at most"},
           {"udp", "dsize:3; byte_test:2,>,5,2;", "dsize: 3 bytes at most"},
           {"udp", "dsize:4; byte_test:2,>,5,2;", ""},
           {"udp", "dsize:4; byte_test:2,!=,5,3;", "dsize: 4 bytes at most"},
           {"udp", "dsize:6; byte_extract:1,0,n; content:\"abc\"; offset:n;", ""},
           {"udp", "dsize:2; byte_extract:1,0,n; content:\"abc\"; offset:n;", "dsize: 2 bytes at most"},
           {"udp", "dsize:4; byte_jump:2,1; content:\"ab\"; distance:0;", "dsize: 4 bytes at most"},
           {"udp", "dsize:5; byte_jump:2,1; content:\"ab\"; distance:0;", ""},
           {"udp", "dsize:3; byte_jump:2,1,from_beginning; content:\"ab\"; distance:0;", ""},
           {"udp", "dsize:3; byte_jump:1,2,post_offset -3; content:\"ab\"; distance:0;", ""},
           {"udp", "dsize:5; content:\"ab\"; isdataat:4,relative;", "dsize: 5 bytes at most"},
           {"udp", "dsize:6; content:\"ab\"; isdataat:4,relative;", ""},
           {"udp", "dsize:5; isdataat:5;", "dsize: 5 bytes at most"},
           {"udp", "dsize:6; isdataat:5;", ""},
           {"udp", "dsize:5; isdataat:!9;", ""},
           {"http", "http.uri; bsize:3; content:\"/abc\";",
            "bsize: 3 bytes at most, and what the rule looks for in http_uri needs 4: it could never hold"},
           {"http", "http.uri; content:\"/abc\"; bsize:4;", ""},
           {"http", "http.uri; content:\"/abc\"; bsize:!3;", ""},
           {"http", "http.uri; content:\"/abc\"; bsize:>3;", ""},
           {"http", "http.uri; content:!\"/abc\"; bsize:3;", ""},
           {"http", "http.uri; content:\"a\"; http.host; content:\"abcd\"; http.uri; bsize:<3;", ""},
           {"http", "http.uri; content:\"abc\"; http.host; content:\"a\"; bsize:<3; http.uri; bsize:<3;",
            "bsize: 2 bytes at most, and what the rule looks for in http_uri"},
           {"http", "urilen:3; content:\"/abc\"; http_uri;",
            "urilen: 3 bytes at most, and what the rule looks for in http_uri needs 4: it could never hold"},
           {"http", "urilen:<9; content:\"abc\"; offset:6; http_uri;", "urilen: 8 bytes at most"},
           {"http", "urilen:3,raw; content:\"/abc\"; http_raw_uri;", "urilen: 3 bytes at most"},
           {"http", "urilen:3,raw; content:\"/abc\"; http_uri;", "urilen: 3 bytes at most"},
           {"http", "urilen:3; content:\"/a%20bc\"; http_raw_uri;", ""},
           {"http", "urilen:1<>5; content:\"/abc\"; http_uri;", ""},
           // Blanks where the buffer never has any.
           {"http", "content:\"GET \"; http_method;",
            "content: 'GET ' has a blank, and http_method never does: it could never hold"},
           {"http", "content:\"|09|GET\"; http_method;", "content: '?GET' has a tab, and http_method never does"},
           {"http", "http.method; content:\"G T\";", "content: 'G T' has a blank, and http_method"},
           {"http", "http.method; content:!\"GET \";", ""},
           {"http", "http.method; content:\"GET\";", ""},
           {"http", "http.stat_code; content:\"200 \";", "content: '200 ' has a blank, and http_stat_code"},
           {"http", "http.user_agent; content:\"a|0d 0a|\";", "content: 'a?\?' has a line end, and http_user_agent"},
           {"http", "http.user_agent; content:\"Agent \";", ""},
           {"http", "http.user_agent; content:\" Agent\";", ""},
           {"http", "http.user_agent; content:\" Agent\"; startswith;",
            "content: ' Agent' begins with a blank, and http_user_agent never does: it could never hold"},
           {"http", "http.user_agent; content:\" Agent\"; depth:6;", "content: ' Agent' begins with a blank"},
           {"http", "http.user_agent; content:\" Agent\"; depth:7;", ""},
           {"http", "http.user_agent; content:\" Agent\"; offset:1; depth:6;", ""},
           {"http", "http.user_agent; content:\" Agent\"; within:6;", ""},
           {"http", "http.user_agent; content:\" Agent\"; bsize:6;", "content: ' Agent' begins with a blank"},
           {"http", "http.user_agent; content:\" Agent\"; http.uri; content:\"/\"; bsize:6;", ""},
           {"http", "http.user_agent; content:\"Agent|09|\"; endswith;", "content: 'Agent?' ends with a tab"},
           {"http", "http.user_agent; content:\"Agent, \"; endswith;", ""},
           {"http", "http.stat_msg; content:\"OK \"; endswith;", "content: 'OK ' ends with a blank, and http_stat_msg"},
           {"http", "http.protocol; content:\"HTTP/1.1 \"; bsize:9;", "content: 'HTTP/1.1 ' ends with a blank"},
           {"http", "http.protocol; content:\"|00|HTTP\"; startswith;", "content: '?HTTP' begins with a zero byte"},
           {"http", "http.request_line; content:\"/|0a|\";", "content: '/?' has a line end, and http_request_line"},
           {"http", "http.uri.raw; content:\"a \"; endswith;", "content: 'a ' ends with a blank, and http_raw_uri"},
           {"http", "http.uri; content:\" \"; endswith;", ""},
           {"http", "http.uri; content:\"|0a|\";", ""},
           {"http", "http.header; content:\"a|0d 0a|\";", ""},
           {"http", "http.request_body; content:\" |0a|\"; startswith;", ""},
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

// Who runs the rules has said them, for rules of others, too.
TEST(Contradictions, LeaveAddressesThatVariablesSay) {
  ReadOptions options;
  ASSERT_TRUE(options.variables.set("HOME_NET", "10.0.0.0/8"));
  ASSERT_TRUE(options.variables.set("PEER", "2001:db8::/32"));
  for (const char* header : {"icmpv6 any any -> $HOME_NET any", "tcp $HOME_NET any -> 2001:db8::1 any",
                             "tcp $HOME_NET any -> $PEER any", "icmpv6 [10.0.0.1,$HOME_NET] any -> !$PEER any"}) {
    const auto read = read_rule(text_of({header, "", ""}), options);
    EXPECT_TRUE(read) << header << ": " << (read ? "" : read.error().message);
  }
  const auto read = read_rule(text_of({"icmpv6 10.0.0.1 any -> $HOME_NET any", "", ""}), options);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::StartsWith("source: it is of IPv4"));
}

TEST(Contradictions, CountAsTheSameWhateverTheNumbers) {
  for (const auto& [one, other] :
       {std::pair{"http.uri; bsize:3; content:\"/abc\";", "http.uri; bsize:1; content:\"/b\";"},
        std::pair{"http.method; content:\"GET \";", "http.method; content:\"PUT \";"}}) {
    std::string reasons[2];
    EXPECT_FALSE(read_rule(text_of({"http", one, ""}), {}, &reasons[0]));
    EXPECT_FALSE(read_rule(text_of({"http", other, ""}), {}, &reasons[1]));
    EXPECT_EQ(reasons[0], reasons[1]);
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
