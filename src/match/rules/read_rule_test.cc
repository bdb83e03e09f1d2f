// A rule's text to its fields, and a rule's text to why it does not load: tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/rules/rule_set.h"

namespace sluice::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_options(const std::string& options) {
  return "alert tcp any any -> any any (" + options + " sid:1;)";
}

Rule read(const std::string& text) {
  auto rule = read_rule(text);
  EXPECT_TRUE(rule) << text << ": " << (rule ? "" : rule.error().message);
  return rule ? *rule : Rule{};
}

Rule options(const std::string& text) {
  return read(with_options(text));
}

template <typename T>
T check(const Rule& rule, std::size_t index = 0) {
  EXPECT_LT(index, rule.checks.size());
  const T* const found = index < rule.checks.size() ? std::get_if<T>(&rule.checks[index]) : nullptr;
  EXPECT_NE(found, nullptr);
  return found != nullptr ? *found : T{};
}

TEST(ReadRule, TakesTheHeaderApart) {
  const Rule rule = read(
      "drop http [10.0.0.0/8, !10.1.0.0/16] 1024: <> 2001:db8::/32 [80,443,!8080] "
      "(msg:\"a \\\"b\\\"\\; c\\\\\"; gid:3; sid:12; rev:4; classtype:attempted-recon; reference:cve,2001-1; "
      "reference:url,a.org/x\\;y; metadata:k v, k2 v2; noalert;)");
  EXPECT_EQ(rule.action, Action::drop);
  EXPECT_EQ(rule.protocol, Protocol::http);
  EXPECT_TRUE(rule.both_ways);
  ASSERT_EQ(rule.source.addresses.ranges().size(), 2U);
  EXPECT_EQ(rule.source.addresses.ranges()[0].last.str(), "10.0.255.255");
  EXPECT_EQ(rule.source.addresses.ranges()[1].first.str(), "10.2.0.0");
  EXPECT_THAT(rule.source.ports.ranges(), ElementsAre(PortRange{1024, 65535}));
  EXPECT_EQ(rule.destination.addresses.ranges()[0].last.str(), "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_THAT(rule.destination.ports.ranges(), ElementsAre(PortRange{80, 80}, PortRange{443, 443}));
  EXPECT_EQ(rule.msg, "a \"b\"; c\\");
  EXPECT_EQ(rule.gid, 3U);
  EXPECT_EQ(rule.sid, 12U);
  EXPECT_EQ(rule.rev, 4U);
  EXPECT_EQ(rule.priority, 2);
  ASSERT_EQ(rule.references.size(), 2U);
  EXPECT_EQ(rule.references[1].id, "a.org/x;y");
  EXPECT_THAT(rule.metadata, ElementsAre("k v", "k2 v2"));
  EXPECT_TRUE(rule.noalert);
}

TEST(ReadRule, PriorityOfARuleGoesBeforeThatOfItsClass) {
  EXPECT_EQ(options("priority:7; classtype:attempted-admin;").priority, 7);
  EXPECT_EQ(options("classtype:attempted-admin; priority:7;").priority, 7);
  EXPECT_EQ(options("classtype:nobody-knows-it;").priority, 3);
}

struct ActionOrProtocol {
  const char* action;
  const char* protocol;
  Action read_action;
  Protocol read_protocol;
};

TEST(ReadRule, KnowsActionsAndProtocols) {
  for (const auto& [action, protocol, read_action, read_protocol] : {
           ActionOrProtocol{"alert", "tcp-pkt", Action::alert, Protocol::tcp_pkt},
           ActionOrProtocol{"pass", "tcp-stream", Action::pass, Protocol::tcp_stream},
           ActionOrProtocol{"reject", "http", Action::reject, Protocol::http},
           ActionOrProtocol{"drop", "IP", Action::drop, Protocol::ip},
           ActionOrProtocol{"alert", "icmp", Action::alert, Protocol::icmp},
           ActionOrProtocol{"alert", "http1", Action::alert, Protocol::http},
       }) {
    const Rule rule = read(std::string(action) + " " + protocol + " any any -> any any (sid:1;)");
    EXPECT_EQ(rule.action, read_action) << action;
    EXPECT_EQ(rule.protocol, read_protocol) << protocol;
  }
  EXPECT_STREQ(name_of(Protocol::tcp_pkt), "tcp-pkt");
  EXPECT_STREQ(name_of(Action::reject), "reject");
}

struct Bytes {
  const char* content;
  std::string bytes;
};

TEST(ReadRule, DecodesContents) {
  using namespace std::string_literals;
  for (const auto& [content, bytes] : {
           Bytes{R"("abc")", "abc"},
           Bytes{R"("a|20 4A4b|c")", "a JKc"},
           Bytes{R"("|00|")", "\0"s},
           Bytes{R"("a\;b\"c\\d\:e")", "a;b\"c\\d:e"},
           Bytes{"\"\xe9\xff\"", "\xe9\xff"},
           Bytes{R"("|7C|")", "|"},
       }) {
    EXPECT_EQ(check<Content>(options("content:"s + content + ";")).bytes, bytes) << content;
  }
}

TEST(ReadRule, PlacesContents) {
  const Rule rule = options(
      "content:\"abc\"; offset:4; depth:9; nocase; content:!\"de\"; distance:-2; within:5; "
      "content:\"f\"; startswith; content:\"g\"; within:3; endswith; fast_pattern;");
  const auto first = check<Content>(rule, 0);
  EXPECT_TRUE(first.nocase);
  EXPECT_FALSE(first.place.relative);
  EXPECT_TRUE(first.place.has_end);
  EXPECT_EQ(first.place.start.value, 4);
  EXPECT_EQ(first.place.length.value, 9);
  const auto second = check<Content>(rule, 1);
  EXPECT_TRUE(second.negated);
  EXPECT_TRUE(second.place.relative);
  EXPECT_EQ(second.place.start.value, -2);
  EXPECT_EQ(second.place.length.value, 5);
  const auto third = check<Content>(rule, 2);
  EXPECT_TRUE(third.place.has_end && !third.place.relative);
  EXPECT_EQ(third.place.length.value, 1);
  const auto fourth = check<Content>(rule, 3);
  EXPECT_TRUE(fourth.place.relative && fourth.place.at_end);
  EXPECT_EQ(fourth.fast_pattern, FastPattern::yes);
  const auto distance = check<Content>(options("content:\"a\"; distance:1;"));
  EXPECT_TRUE(distance.place.relative);
  EXPECT_FALSE(distance.place.has_end);
}

TEST(ReadRule, PartOfAContentAsFastPattern) {
  const auto content = check<Content>(options("content:\"abcdef\"; fast_pattern:1,3;"));
  EXPECT_EQ(content.fast_offset, 1);
  EXPECT_EQ(content.fast_length, 3);
  EXPECT_EQ(check<Content>(options("content:\"a\"; fast_pattern:only;")).fast_pattern, FastPattern::only);
}

// Snort's modifiers and Suricata's sticky buffers end in the same field.
TEST(ReadRule, FindsTheBufferOfEachCheck) {
  const Rule rule = options(
      "content:\"a\"; content:\"b\"; http_uri; uricontent:\"c\"; http.header; content:\"d\"; pcre:\"/e/\"; "
      "isdataat:3; file_data; content:\"f\"; content:\"g\"; http_cookie; pcre:\"/h/U\"; pkt_data; content:\"i\";");
  const std::vector<Buffer> contents{Buffer::payload,   Buffer::http_uri,    Buffer::http_uri, Buffer::http_header,
                                     Buffer::file_data, Buffer::http_cookie, Buffer::payload};
  std::vector<Buffer> found;
  for (const Check& one : rule.checks) {
    if (const auto* content = std::get_if<Content>(&one)) found.push_back(content->buffer);
  }
  EXPECT_EQ(found, contents);
  EXPECT_EQ(check<Pcre>(rule, 4).buffer, Buffer::http_header);
  EXPECT_EQ(check<IsDataAt>(rule, 5).buffer, Buffer::http_header);
  EXPECT_EQ(check<Pcre>(rule, 8).buffer, Buffer::http_uri);
}

struct Following {
  const char* options;  // the last check is asked for
  Buffer buffer;
};

TEST(ReadRule, ARelativeCheckIsInTheBufferOfTheOneBefore) {
  for (const auto& [text, buffer] : {
           Following{"content:\"a\"; http_uri; isdataat:9,relative;", Buffer::http_uri},
           Following{"content:\"a\"; http_uri; isdataat:9;", Buffer::payload},
           Following{"content:\"a\"; isdataat:9,relative;", Buffer::payload},
           Following{"pcre:\"/a/H\"; isdataat:9,relative;", Buffer::http_header},
           Following{"content:\"a\"; http_cookie; byte_test:1,=,1,0,relative; isdataat:1,relative;",
                     Buffer::http_cookie},
           Following{"content:\"a\"; http_cookie; byte_jump:1,0,relative; isdataat:1,relative;", Buffer::http_cookie},
           Following{"content:\"a\"; http_uri; file_data; isdataat:9,relative;", Buffer::file_data},
           Following{"content:\"a\"; http_uri; urilen:3; isdataat:!9,relative;", Buffer::http_uri},
           Following{"isdataat:9,relative;", Buffer::payload},
       }) {
    EXPECT_EQ(std::get<IsDataAt>(options(text).checks.back()).buffer, buffer) << text;
  }
  EXPECT_EQ(std::get<Base64Decode>(options("content:\"a\"; http_header; base64_decode;").checks.back()).buffer,
            Buffer::http_header);
  EXPECT_EQ(std::get<Pcre>(options("content:\"a\"; http_uri; pcre:\"/b/R\";").checks.back()).buffer, Buffer::payload);
}

TEST(ReadRule, EveryNameOfABufferIsAnOption) {
  for (const BufferName& name : buffer_names()) {
    const std::string text = std::string(name.name);
    const std::string before = name.buffer == Buffer::base64_data ? "base64_decode; " : "";
    const Rule rule = options(name.sticky ? before + text + "; content:\"abc\";" : "content:\"abc\"; " + text + ";");
    ASSERT_FALSE(rule.checks.empty()) << text;
    EXPECT_EQ(std::get<Content>(rule.checks.back()).buffer, name.buffer) << text;
    EXPECT_NE(find_buffer(name_of(name.buffer)), nullptr);
  }
}

TEST(ReadRule, ReadsPcre) {
  const auto pcre = check<Pcre>(options("pcre:!\"/a\\/b\\x3bc\\\"d/smiR\";"));
  EXPECT_EQ(pcre.pattern, "a\\/b\\x3bc\\\"d");
  EXPECT_TRUE(pcre.negated && pcre.relative);
  EXPECT_EQ(pcre.options, 0x8U | 0x20U | 0x400U);  // PCRE2_CASELESS | PCRE2_DOTALL | PCRE2_MULTILINE
  EXPECT_EQ(check<Pcre>(options("pcre:\"m?a/b?iH\";")).pattern, "a/b");
  EXPECT_EQ(check<Pcre>(options("pcre:/ab+/I;")).buffer, Buffer::http_raw_uri);
  EXPECT_TRUE(check<Pcre>(options("pcre:\"/a/O\";")).unlimited);
}

TEST(ReadRule, ReadsByteOptions) {
  const Rule rule = options(
      "byte_extract:2,-4,n,relative,little,multiplier 3,align 4; byte_test:4,!&,0x80,n,relative,string,hex,bitmask "
      "0xf0;"
      "byte_jump:4,12,relative,align,multiplier 2,from_beginning,post_offset -3; byte_jump:0,0,from_end,post_offset -2;"
      "byte_math:bytes 1, offset 2, oper <<, rvalue n, result m, relative, endian little, string dec;"
      "content:\"ab\"; offset:n; depth:m; isdataat:!m,relative;");
  const auto extract = check<ByteExtract>(rule, 0);
  EXPECT_EQ(extract.number.count.value, 2);
  EXPECT_EQ(extract.number.offset.value, -4);
  EXPECT_TRUE(extract.number.relative && extract.number.little_endian);
  EXPECT_EQ(extract.multiplier, 3U);
  EXPECT_EQ(extract.align, 4);
  EXPECT_EQ(extract.variable, 0);
  const auto test = check<ByteTest>(rule, 1);
  EXPECT_EQ(test.comparison, ByteTest::Comparison::bit_and);
  EXPECT_TRUE(test.negated);
  EXPECT_EQ(test.value.value, 0x80);
  EXPECT_EQ(test.number.offset.variable, 0);
  EXPECT_EQ(test.number.base, ByteNumber::Base::hex);
  EXPECT_EQ(test.number.bitmask, 0xf0U);
  const auto jump = check<ByteJump>(rule, 2);
  EXPECT_TRUE(jump.align);
  EXPECT_EQ(jump.multiplier, 2U);
  EXPECT_EQ(jump.from, ByteJump::From::beginning);
  EXPECT_EQ(jump.post_offset.value, -3);
  EXPECT_EQ(check<ByteJump>(rule, 3).from, ByteJump::From::end);
  const auto math = check<ByteMath>(rule, 4);
  EXPECT_EQ(math.operation, ByteMath::Operator::shift_left);
  EXPECT_EQ(math.right.variable, 0);
  EXPECT_EQ(math.variable, 1);
  EXPECT_TRUE(math.number.little_endian);
  EXPECT_EQ(math.number.base, ByteNumber::Base::dec);
  EXPECT_EQ(check<Content>(rule, 5).place.start.variable, 0);
  EXPECT_EQ(check<Content>(rule, 5).place.length.variable, 1);
  EXPECT_TRUE(check<IsDataAt>(rule, 6).negated);
  EXPECT_EQ(check<IsDataAt>(rule, 6).count.variable, 1);
  EXPECT_THAT(rule.variables, ElementsAre("n", "m"));
}

TEST(ReadRule, ANameMadeTwiceIsTheLastOneBeforeItsUse) {
  const Rule rule =
      options("byte_extract:1,0,n; content:\"a\"; offset:n; byte_extract:1,1,n; content:\"b\"; offset:n;");
  EXPECT_EQ(check<Content>(rule, 1).place.start.variable, 0);
  EXPECT_EQ(check<Content>(rule, 3).place.start.variable, 1);
}

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

struct Size {
  const char* options;
  Buffer buffer;
  std::uint32_t first;
  std::uint32_t last;
};

TEST(ReadRule, ReadsSizesOfBuffers) {
  for (const auto& [text, buffer, first, last] : {
           Size{"urilen:5;", Buffer::http_uri, 5, 5},
           Size{"urilen:5<>9,raw;", Buffer::http_raw_uri, 6, 8},
           Size{"urilen:<5,norm;", Buffer::http_uri, 0, 4},
           Size{"http.method; bsize:3;", Buffer::http_method, 3, 3},
       }) {
    const auto size = check<BufferSize>(options(text));
    EXPECT_EQ(size.buffer, buffer) << text;
    EXPECT_EQ(size.first, first) << text;
    EXPECT_EQ(size.last, last) << text;
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

TEST(ReadRule, ReadsBase64) {
  const Rule rule = options("base64_decode:bytes 16, offset 2, relative; base64_data; content:\"x\";");
  const auto decode = check<Base64Decode>(rule, 0);
  EXPECT_EQ(decode.bytes, 16U);
  EXPECT_EQ(decode.offset, 2U);
  EXPECT_TRUE(decode.relative);
  EXPECT_EQ(check<Content>(rule, 1).buffer, Buffer::base64_data);
}

struct Refused {
  const char* options;
  const char* message;
};
void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.options;
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
        Refused{"http_uri;", "http_uri: no content is before it"},
        Refused{"content:\"a\"; nocase:1;", "nocase: it takes no value"},
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
        Refused{"msg:abc;", "is no text in double quotes"}, Refused{"priority:0;", "'0' is no number from 1 to 255"},
        Refused{"rev:x;", "rev: 'x' is no number"}, Refused{"reference:cve;", "is not SYSTEM,ID"},
        Refused{"target:me;", "neither src_ip nor dest_ip"}, Refused{"content:\"a", "'content' does not end"},
        Refused{";", "an option without a name"}));

class RefusedHeader : public testing::TestWithParam<Refused> {};

TEST_P(RefusedHeader, SaysWhat) {
  const auto rule = read_rule(GetParam().options);
  ASSERT_FALSE(rule) << GetParam().options;
  EXPECT_THAT(rule.error().message, HasSubstr(GetParam().message)) << GetParam().options;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedHeader,
    testing::Values(Refused{"alert tcp any any -> any any", "no options in parentheses"},
                    Refused{"alert tcp any any -> any any (sid:1;", "does not end with a closing parenthesis"},
                    Refused{"alert tcp any any -> any (sid:1;)", "its header is not ACTION"},
                    Refused{"alert tcp any any -> any any more (sid:1;)", "its header is not ACTION"},
                    Refused{"log tcp any any -> any any (sid:1;)", "action: 'log' is none of"},
                    Refused{"alert xyz any any -> any any (sid:1;)", "protocol: 'xyz' is not recognised"},
                    Refused{"drop tls any any -> any 443 (content:\"a\"; sid:1;)", "protocol: 'tls' is not recognised"},
                    Refused{"alert tcp any any <- any any (sid:1;)", "direction: '<-' is neither"},
                    Refused{"alert tcp $NONE any -> any any (sid:1;)",
                            "source address: the variable 'NONE' is not set"},
                    Refused{"alert tcp any any -> any 65536 (sid:1;)", "destination port: '65536' is no port"},
                    Refused{"alert tcp any 9:8 -> any any (sid:1;)", "ends before it begins"},
                    Refused{"alert tcp !any any -> any any (sid:1;)", "leaves nothing"},
                    Refused{"alert icmp any 80 -> any any (sid:1;)", "ICMP has none"},
                    Refused{"alert tcp any any -> any any (msg:\"a\";)", "it has no sid"},
                    Refused{"alert tcp any any -> any any (sid:0;)", "sid: '0' is no number from 1"},
                    Refused{"alert tcp any any -> any any (sid:1)", "sid' does not end with a semicolon"}));

TEST(ReadRule, TheSameMistakeWithOtherValuesHasTheSameReason) {
  std::string one;
  std::string other;
  EXPECT_FALSE(read_rule(with_options("content:\"abc\"; depth:2;"), {}, &one));
  EXPECT_FALSE(read_rule(with_options("content:\"abcdefghijk\"; depth:10;"), {}, &other));
  EXPECT_EQ(one, other);
  EXPECT_FALSE(one.empty());
}

}  // namespace
}  // namespace sluice::match
