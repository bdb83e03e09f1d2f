// Options about headers, flows and rates; and of all options, why one refuses its rule.
#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Number {
  const char* option;
  NumberCheck check;
};

TEST(ReadRule, ReadsNumbersOfHeaders) {
  using F = HeaderField;
  for (const auto& [option, expected] : {
           Number{"dsize:8;", {F::payload_size, 8, 8}},
           Number{"dsize:>8;", {F::payload_size, 9, 65535}},
           Number{"dsize:<8;", {F::payload_size, 0, 7}},
           Number{"dsize:>=8;", {F::payload_size, 8, 65535}},
           Number{"dsize:<=8;", {F::payload_size, 0, 8}},
           Number{"dsize:!8;", {F::payload_size, 8, 8, true}},
           Number{"dsize:300<>400;", {F::payload_size, 301, 399}},
           Number{"ttl:1-5;", {F::ttl, 2, 4}},
           Number{"id:13170;", {F::ip_id, 13170, 13170}},
           Number{"tos:!4;", {F::tos, 4, 4, true}},
           Number{"ip_proto:igmp;", {F::ip_proto, 2, 2}},
           Number{"ip_proto:!tcp;", {F::ip_proto, 6, 6, true}},
           Number{"ip_proto:>134;", {F::ip_proto, 135, 255}},
           Number{"fragoffset:>0;", {F::fragment_offset, 1, 8191}},
           Number{"itype:8;", {F::icmp_type, 8, 8}},
           Number{"icode:>0;", {F::icmp_code, 1, 255}},
           Number{"icmp_id:666;", {F::icmp_id, 666, 666}},
           Number{"icmp_seq:0;", {F::icmp_sequence, 0, 0}},
           Number{"seq:4294967295;", {F::tcp_sequence, 4294967295U, 4294967295U}},
           Number{"ack:0;", {F::tcp_acknowledgement, 0, 0}},
           Number{"window:!55808;", {F::tcp_window, 55808, 55808, true}},
       }) {
    EXPECT_THAT(options(option).numbers, ElementsAre(expected)) << option;
  }
}

struct Bits {
  const char* option;
  BitCheck check;
};

TEST(ReadRule, ReadsBitsOfHeaders) {
  using F = BitCheck::Field;
  for (const auto& [option, expected] : {
           Bits{"flags:S,12;", {F::tcp_flags, BitMode::exactly, 0x02, 0xc0}},
           Bits{"flags:A+;", {F::tcp_flags, BitMode::all, 0x10, 0}},
           Bits{"flags:*SF;", {F::tcp_flags, BitMode::any, 0x03, 0}},
           Bits{"tcp.flags:!PUR,CE;", {F::tcp_flags, BitMode::not_all, 0x2c, 0xc0}},
           Bits{"flags:0;", {F::tcp_flags, BitMode::exactly, 0, 0}},
           Bits{"fragbits:M+;", {F::fragment_bits, BitMode::all, 1, 0}},
           Bits{"fragbits:!DR;", {F::fragment_bits, BitMode::not_all, 6, 0}},
       }) {
    EXPECT_THAT(options(option).bits, ElementsAre(expected)) << option;
  }
}

TEST(ReadRule, ReadsTheOtherHeaderOptions) {
  const Rule rule = options("ipopts:rr; ipopts:any; sameip; stream_size:server,<,1111;");
  EXPECT_THAT(rule.ip_options, ElementsAre(7, any_ip_option));
  EXPECT_TRUE(rule.same_ip);
  ASSERT_EQ(rule.stream_sizes.size(), 1U);
  EXPECT_EQ(rule.stream_sizes[0].side, StreamSizeCheck::Side::server);
  EXPECT_EQ(rule.stream_sizes[0].comparison, StreamSizeCheck::Comparison::less);
  EXPECT_EQ(rule.stream_sizes[0].bytes, 1111U);
}

TEST(ReadRule, ReadsFlows) {
  EXPECT_EQ(options("flow:to_server, established;").flow,
            (FlowCheck{FlowDirection::to_server, FlowState::established}));
  EXPECT_EQ(options("flow:from_server;").flow.direction, FlowDirection::to_client);
  EXPECT_EQ(options("flow:stateless;").flow.state, FlowState::stateless);
  EXPECT_EQ(options("flow:not_established,no_stream;").flow,
            (FlowCheck{FlowDirection::any, FlowState::not_established, FlowData::no_stream}));
}

TEST(ReadRule, ReadsFlowbits) {
  const Rule rule = options(
      "flowbits:set,a.b; flowbits:isset,x|y; flowbits:isnotset,v&w; flowbits:unset,u; "
      "flowbits:toggle,t; flowbits:set,s,group; flowbits:noalert;");
  EXPECT_TRUE(rule.noalert);
  ASSERT_EQ(rule.flowbits.size(), 6U);
  using O = Flowbits::Operation;
  const std::vector<O> operations{O::set, O::isset, O::isnotset, O::unset, O::toggle, O::set};
  for (std::size_t i = 0; i < operations.size(); ++i) EXPECT_EQ(rule.flowbits[i].operation, operations[i]) << i;
  EXPECT_TRUE(rule.flowbits[1].any);
  EXPECT_THAT(rule.flowbits[1].names, ElementsAre("x", "y"));
  EXPECT_FALSE(rule.flowbits[2].any);
  EXPECT_THAT(rule.flowbits[2].names, ElementsAre("v", "w"));
}

TEST(ReadRule, ReadsRates) {
  const Rule threshold = options("threshold:type both, track by_dst, count 10, seconds 60;");
  ASSERT_EQ(threshold.thresholds.size(), 1U);
  EXPECT_EQ(threshold.thresholds[0].type, Threshold::Type::both);
  EXPECT_EQ(threshold.thresholds[0].track, Track::by_dst);
  EXPECT_EQ(threshold.thresholds[0].count, 10U);
  EXPECT_EQ(threshold.thresholds[0].seconds, 60U);
  const Rule filter = options("detection_filter:track by_src,count 3,seconds 5,unique_on dst_port;");
  ASSERT_EQ(filter.detection_filters.size(), 1U);
  EXPECT_EQ(filter.detection_filters[0].unique, DetectionFilter::Unique::dst_port);
  EXPECT_EQ(filter.detection_filters[0].count, 3U);
}

class RefusedOption : public testing::TestWithParam<Refused> {};

TEST_P(RefusedOption, NamesItAndWhy) {
  const auto rule = read_rule(with_options(GetParam().options));
  ASSERT_FALSE(rule) << GetParam().options;
  EXPECT_THAT(rule.error().message, HasSubstr(GetParam().message)) << GetParam().options;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedOption,
    testing::Values(
        Refused{"asn1:bitstring_overflow;", "asn1: ASN.1 is not decoded"},
        Refused{"dce_iface:1;", "dce_iface: DCE/RPC is not parsed"},
        Refused{"tls.sni;", "tls.sni: TLS records are not parsed"},
        Refused{"dns.query;", "dns.query: DNS is not parsed"}, Refused{"tag:session;", "tag: packets after"},
        Refused{"contnet:\"a\";", "'contnet' is no option that is known"},
        Refused{"content:abc;", "content: 'abc' is no text in double quotes"},
        Refused{"content:\"\";", "content: it has no bytes"}, Refused{"content:\"|4|\";", "odd number of digits"},
        Refused{"content:\"|4G|\";", "no list of hexadecimal bytes"},
        Refused{"content:\"|41\";", "bar that is not closed"},
        Refused{"content:\"a\\n\";", "a backslash before something else"},
        Refused{"content:\"a\"b\";", "a quote without a backslash"}, Refused{"content;", "content: it has no value"},
        Refused{"nocase;", "nocase: no content is before it"},
        Refused{"rawbytes;", "rawbytes: no content is before it"},
        Refused{"http_uri;", "http_uri: no content is before it"},
        Refused{"content:\"a\"; nocase:1;", "nocase: it takes no value"},
        Refused{"content:\"a\"; rawbytes:1;", "rawbytes: it takes no value"},
        Refused{"content:\"a\"; http_uri; http_header;", "in another buffer already"},
        Refused{"content:\"a\"; http_uri:1;", "http_uri: it takes no value"},
        Refused{"content:\"abc\"; depth:2;", "depth: 2 is smaller than the content's 3 bytes"},
        Refused{"content:\"abc\"; within:2;", "within: 2 is smaller"},
        Refused{"content:\"abc\"; offset:1; within:9;", "not two of these"},
        Refused{"content:\"abc\"; distance:1; depth:9;", "not two of these"},
        Refused{"content:\"abc\"; startswith; offset:1;", "not two of these"},
        Refused{"content:\"abc\"; offset:1; startswith;", "startswith: it excludes"},
        Refused{"content:\"abc\"; offset:1; offset:2;", "has one already"},
        Refused{"content:\"abc\"; offset:-1;", "'-1' is no number from 0"},
        Refused{"content:\"abc\"; offset:n;", "'n' is no number from 0 to 1048576, nor a variable"},
        Refused{"content:\"abc\"; fast_pattern:1,3;", "within the content's 3 bytes"},
        Refused{"content:\"abc\"; fast_pattern:1,-1;", "within the content's 3 bytes"},
        Refused{"content:\"abc\"; fast_pattern; content:\"d\"; fast_pattern;", "the rule has two"},
        Refused{"content:\"Abc\"; http_host;", "it could never match"},
        Refused{"pcre:\"/a(/\";", "does not compile: missing closing parenthesis"},
        Refused{"pcre:\"/a/K\";", "'K' is no flag"}, Refused{"pcre:\"/a/UH\";", "two buffers"},
        Refused{"pcre:\"a\";", "is not /PATTERN/FLAGS"},
        Refused{"pcre:\"/(?P<flow_x>a)/\";", "captures into variables"},
        Refused{"pcre:\"/(*UTF)a/\";", "does not compile"},
        Refused{"byte_test:1,=,1;", "is not BYTES,COMPARISON,VALUE,OFFSET"},
        Refused{"byte_test:9,=,1,0;", "more than the 8"}, Refused{"byte_test:1,~,1,0;", "'~' is no comparison"},
        Refused{"byte_test:1,=,1,-1;", "needs `relative`"}, Refused{"byte_test:1,=,1,0,dce;", "DCE/RPC"},
        Refused{"byte_test:1,=,1,0,quick;", "'quick' is none of its words"},
        Refused{"byte_jump:4;", "is not BYTES,OFFSET"}, Refused{"byte_extract:4,0;", "is not BYTES,OFFSET,NAME"},
        Refused{"byte_extract:4,0,7up;", "is no name for a variable"},
        Refused{"byte_extract:4,0,n,align 3;", "align takes 2 or 4"},
        Refused{"byte_math:bytes 1, offset 0, oper +, rvalue 1;", "it needs bytes, offset"},
        Refused{"byte_math:bytes 1, offset 0, oper %, rvalue 1, result r;", "'%' is no operator"},
        Refused{"byte_math:bytes 1, offset 0, oper /, rvalue 0, result r;", "divides by 0"},
        Refused{"isdataat:a;", "'a' is no number"}, Refused{"isdataat:1,rel;", "'rel' is none of its words"},
        Refused{"base64_data;", "no base64_decode is before it"}, Refused{"bsize:3;", "no sticky buffer is before it"},
        Refused{"urilen:1,2,3;", "is not NUMBER"}, Refused{"urilen:7<>8;", "no number between its ends"},
        Refused{"dsize:x;", "'x' is no number up to 65535"}, Refused{"dsize:70000;", "no number up to 65535"},
        Refused{"ttl:>255;", "leaves no number"}, Refused{"dsize:1; dsize:2;", "dsize: it is there twice"},
        Refused{"flags:X;", "none of its bits"}, Refused{"flags:+!S;", "has two of + * !"},
        Refused{"flags:+;", "names no bit"}, Refused{"fragbits:S;", "none of its bits"},
        Refused{"ipopts:lsrre;", "'lsrre' is none of"}, Refused{"flow:to_server,to_client;", "contradicts or repeats"},
        Refused{"flow:inbound;", "'inbound' is no word"}, Refused{"flowbits:setx,a;", "'setx' is none of"},
        Refused{"flowbits:set,a|b;", "| is for isset"}, Refused{"flowbits:isset,a|b&c;", "mixes | and &"},
        Refused{"flowbits:isset;", "is not OPERATION,NAME"}, Refused{"flowbits:isset,a,g;", "is not OPERATION,NAME"},
        Refused{"flowbits:set,;", "no name of a flowbit"},
        Refused{"stream_size:server,1;", "is not SIDE,COMPARISON,BYTES"},
        Refused{"threshold:track by_src, count 1, seconds 1;", "needs a type"},
        Refused{"threshold:type limit, track by_src, count 1;", "needs track, count and seconds"},
        Refused{"threshold:type limit, track by_src, count 0, seconds 1;", "count: '0' is no number from 1"},
        Refused{"detection_filter:track by_x, count 1, seconds 1;", "'track by_x' is not understood"},
        Refused{"threshold:type limit,track by_src,count 1,seconds 1; detection_filter:track by_src,count 1,seconds 1;",
                "not both"},
        Refused{"msg:\"a\" content:\"b\";", "a ';' is missing"},
        Refused{"classtype:a content:\"b\";", "a ';' is missing"},
        Refused{"metadata:a content:\"b\";", "a ';' is missing"},
        Refused{"reference:url,a content:\"b\";", "a ';' is missing"},
        Refused{"msg:abc;", "is no text in double quotes"}, Refused{"priority:0;", "'0' is no number from 1 to 255"},
        Refused{"rev:x;", "rev: 'x' is no number"}, Refused{"reference:cve;", "is not SYSTEM,ID"},
        Refused{"target:me;", "neither src_ip nor dest_ip"}, Refused{"content:\"a", "'content' does not end"},
        Refused{";", "an option without a name"}));

}  // namespace
}  // namespace sluice::match
