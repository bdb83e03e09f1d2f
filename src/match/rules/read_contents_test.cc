// Checks of buffers: contents, regular expressions, numbers, sizes.
#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

using testing::ElementsAre;

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

// A content stays in its buffer, and what follows is about it as before.
TEST(ReadRule, RawbytesChangesNothing) {
  const Rule rule = options(
      "content:\"a\"; rawbytes; nocase; offset:4; uricontent:\"b\"; rawbytes; "
      "content:\"c\"; rawbytes; distance:1; isdataat:3,rawbytes,relative;");
  ASSERT_EQ(rule.checks.size(), 4U);
  const auto first = check<Content>(rule, 0);
  EXPECT_EQ(first.buffer, Buffer::payload);
  EXPECT_EQ(first.bytes, "a");
  EXPECT_TRUE(first.nocase);
  EXPECT_EQ(first.place.start.value, 4);
  EXPECT_FALSE(first.negated);
  EXPECT_EQ(check<Content>(rule, 1).buffer, Buffer::http_uri);
  EXPECT_EQ(check<Content>(rule, 2).buffer, Buffer::payload);
  EXPECT_TRUE(check<Content>(rule, 2).place.relative);
  EXPECT_EQ(check<IsDataAt>(rule, 3).count.value, 3);
  EXPECT_TRUE(check<IsDataAt>(rule, 3).relative);
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
  EXPECT_TRUE(check<Pcre>(options("pcre:\"/a/O\";")).larger_limit);
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

TEST(ReadRule, ReadsBase64) {
  const Rule rule = options("base64_decode:bytes 16, offset 2, relative; base64_data; content:\"x\";");
  const auto decode = check<Base64Decode>(rule, 0);
  EXPECT_EQ(decode.bytes, 16U);
  EXPECT_EQ(decode.offset, 2U);
  EXPECT_TRUE(decode.relative);
  EXPECT_EQ(check<Content>(rule, 1).buffer, Buffer::base64_data);
}

}  // namespace
}  // namespace sluice::match
