#include <gtest/gtest.h>
#include <x86intrin.h>

#include "match/confirm/base64.h"
#include "match/confirm/payload_trial_test.h"

namespace sluice::match {
namespace {

using namespace std::string_literals;

class PayloadMatcherTest : public testing::TestWithParam<Case> {};

TEST_P(PayloadMatcherTest, HoldsOrNot) {
  expect_verdict(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Contents, PayloadMatcherTest,
    testing::Values(
        Case{"content:\"abc\";", "xxabcxx", true}, Case{"content:\"abc\";", "xxABCxx", false},
        Case{"content:\"abc\"; nocase;", "xxAbCxx", true}, Case{"content:!\"abc\";", "xxabcxx", false},
        Case{"content:!\"abc\";", "xxabxx", true}, Case{"content:\"abc\"; offset:3;", "abcabc", true},
        Case{"content:\"abc\"; offset:4;", "abcabc", false}, Case{"content:\"abc\"; depth:3;", "abcx", true},
        Case{"content:\"abc\"; depth:3;", "xabc", false}, Case{"content:\"abc\"; offset:1; depth:4;", "xxabc", true},
        Case{"content:\"abc\"; offset:1; depth:4;", "xxxabc", false},
        Case{"content:\"abc\"; startswith;", "abcx", true}, Case{"content:\"abc\"; startswith;", "xabc", false},
        Case{"content:\"abc\"; endswith;", "abcxabc", true}, Case{"content:\"abc\"; endswith;", "abcx", false},
        Case{"content:\"ab\"; content:\"cd\"; distance:0;", "cdabcd", true},
        Case{"content:\"ab\"; content:\"cd\"; distance:0;", "cdab", false},
        Case{"content:\"ab\"; content:\"cd\"; distance:1;", "abcd", false},
        Case{"content:\"ab\"; content:\"cd\"; distance:1; within:3;", "ab..cd", true},
        Case{"content:\"ab\"; content:\"cd\"; distance:1; within:3;", "ab...cd", false},
        Case{"content:\"ab\"; content:\"cd\"; within:2;", "ab.abcd", true},  // of the second ab
        Case{"content:\"ab\"; content:\"cd\"; distance:-4; within:4;", "cdab", true},
        Case{"content:\"ab\"; content:!\"cd\"; within:2;", "abcd", false},
        Case{"content:\"ab\"; content:!\"cd\"; within:2;", "ab.cd", true},
        Case{"content:\"a\"; content:\"b\"; distance:0; content:\"c\"; within:1;", "abxbxabc", true},
        Case{"content:\"ab\"; content:\"ab\";", "ab", true},  // not relative: the same one will do
        Case{"content:\"|00 01|x\";", "\0\1x"s, true},
        // As Telnet sends them: two bytes of a command, and a byte of 255 as two.
        Case{"content:\"a|ff f1|b\"; rawbytes;", "xa\xff\xf1"s + "b", true},
        Case{"content:\"a|ff f1|b\"; rawbytes;", "xab", false},
        Case{"content:\"ab\"; rawbytes;", "a\xff\xf1"s + "b", false}, Case{"content:!\"ab\"; rawbytes;", "xab", false},
        Case{"content:\"ab\"; rawbytes; offset:1; content:\"c\"; rawbytes; within:1;", "xabc", true},
        Case{"content:\"ab\"; rawbytes; offset:1; content:\"c\"; rawbytes; within:1;", "abc", false}));

INSTANTIATE_TEST_SUITE_P(
    Others, PayloadMatcherTest,
    testing::Values(Case{"pcre:\"/a[0-9]+b/\";", "xa123b", true}, Case{"pcre:\"/a[0-9]+b/\";", "xab", false},
                    Case{"pcre:\"/AB/i\";", "ab", true}, Case{"pcre:!\"/ab/\";", "ab", false},
                    Case{"content:\"ab\"; pcre:\"/^cd/R\";", "abcd", true},
                    Case{"content:\"ab\"; pcre:\"/^cd/R\";", "ab.cd", false},
                    Case{"pcre:\"/a./\"; content:\"z\"; within:1;", "axayz", true},
                    Case{"byte_test:2,>,258,0;", "\1\3"s, true}, Case{"byte_test:2,>,258,0;", "\1\2"s, false},
                    Case{"byte_test:2,=,258,0,little;", "\2\1"s, true},
                    Case{"byte_test:4,=,0x1A,0,string,hex;", "001a", true}, Case{"byte_test:1,&,0x80,0;", "\x81", true},
                    Case{"byte_test:1,!&,0x80,0;", "\x81", false}, Case{"byte_test:2,>,0,0;", "\1"s, false},
                    Case{"content:\"a\"; byte_test:1,=,5,0,relative;", "xa\5"s, true},
                    Case{"byte_jump:1,0; content:\"ab\"; within:2;", "\3...ab"s, true},
                    Case{"byte_jump:1,0; content:\"ab\"; within:2;", "\2...ab"s, false},
                    Case{"byte_jump:1,0; content:\"ab\"; within:2;", "\x7f...ab"s, false},
                    Case{"byte_jump:1,0,multiplier 2,post_offset -1; content:\"ab\"; within:2;", "\2...ab"s, true},
                    Case{"byte_extract:1,0,n; content:\"ab\"; offset:n;", "\3..ab"s, true},
                    Case{"byte_extract:1,0,n; content:\"ab\"; offset:n;", "\4..ab"s, false},
                    Case{"content:\"ab\"; isdataat:2,relative;", "ab..", true},
                    Case{"content:\"ab\"; isdataat:3,relative;", "ab..", false},
                    Case{"content:\"ab\"; isdataat:!3,relative;", "ab..", true}, Case{"isdataat:3;", "abcd", true},
                    Case{"isdataat:4;", "abcd", false},
                    Case{"content:\"b64:\"; base64_decode:relative; base64_data; content:\"hello\";",
                         "b64:aGVsbG8=", true},
                    Case{"base64_decode:bytes 4; base64_data; content:\"hello\";", "aGVsbG8=", false}));

// 7fff... from the payload. Of a place Suricata takes 32 bits, which are -1; as a length it is beyond the buffer. With
// the undefined-behaviour sanitizer an unchecked sum is an error.
INSTANTIATE_TEST_SUITE_P(
    NumbersOfTheAttacker, PayloadMatcherTest,
    testing::Values(
        Case{"byte_extract:8,0,n; content:\"ab\"; distance:n;", "\x7f\xff\xff\xff\xff\xff\xff\xff..ab"s, true},
        Case{"byte_extract:8,0,n; content:!\"zz\"; distance:n;", "\x7f\xff\xff\xff\xff\xff\xff\xff..ab"s, true},
        Case{"byte_extract:8,0,n; content:\"ab\"; offset:2; depth:n;", "\x7f\xff\xff\xff\xff\xff\xff\xff..ab"s, false},
        Case{"byte_extract:8,0,n; byte_test:1,>,7,n,relative;", "\x7f\xff\xff\xff\xff\xff\xff\xff..ab"s, true},
        Case{"byte_extract:8,0,n; isdataat:n,relative;", "\x7f\xff\xff\xff\xff\xff\xff\xff..ab"s, false},
        // Negative digits are a place beyond the buffer, as to Suricata 7.0.10.
        Case{"byte_extract:2,0,n,string,dec; isdataat:n;", "-5;abcdef"s, false},
        Case{"byte_extract:2,0,n,string,dec; isdataat:!n;", "-5;abcdef"s, true},
        Case{"byte_extract:2,0,n,string,dec; isdataat:!n,relative;", "-5;abcdef"s, true},
        Case{"byte_extract:2,0,n,string,dec; content:\"a\"; offset:n;", "-5;abcdef"s, false},
        Case{"byte_extract:2,0,n,string,dec; content:\"a\"; depth:n;", "-5;abcdef"s, true},
        Case{"byte_extract:2,0,n,string,dec; content:\"a\"; distance:0; within:n;", "-5;abcdef"s, true},
        Case{"byte_extract:2,0,n,string,dec; content:\"d\"; distance:n;", "-5;abcdef"s, true},
        Case{"byte_extract:2,0,n,string,dec; content:!\"a\"; distance:n;", "-5;abcdef"s, false},
        // Places are reckoned in 32 bits, and a `within` that ends before the buffer has no end.
        Case{"byte_extract:8,0,n; content:\"ab\"; offset:n; depth:4;", "\0\0\0\1\0\0\0\x9.ab"s, true},
        Case{"content:\"ab\"; content:\"c\"; distance:-100; within:3;", "c..ab"s, true},
        Case{"content:\"ab\"; content:!\"c\"; distance:-100; within:3;", "...ab..c"s, false},
        Case{"content:\"ab\"; content:\"c\"; distance:-5; within:3;", "..ab..c"s, false},
        // The bitmask is for what comes out.
        Case{"byte_math:bytes 1,offset 0,oper +,rvalue 1,result n,bitmask 0xf0; byte_test:1,=,n,1;", "\x2f\3"s, true},
        Case{"byte_math:bytes 1,offset 0,oper *,rvalue 16,result n,bitmask 0xf0; byte_test:1,=,n,1;", "\x22\2"s, true},
        Case{"byte_jump:8,0,multiplier 4; content:\"ab\"; distance:0;", "\x40\0\0\0\0\0\0\0..ab"s, true},
        Case{"byte_extract:8,0,n; content:\"ab\"; distance:n;", "\0\0\0\0\0\0\0\1..ab"s, true}));

// As Suricata 7.0.10 says of each: its beginning is as far back as a jump leads, its end as far on; of digits a number
// is as long as there are some, and one that is too large is none.
INSTANTIATE_TEST_SUITE_P(
    EdgesOfNumbers, PayloadMatcherTest,
    testing::Values(
        Case{"content:\"|02|TAIL\"; byte_jump:0,0,relative,post_offset -100; content:\"HEAD\"; distance:0; within:4;",
             "HEAD..\2TAIL"s, true},
        Case{"byte_jump:1,0,from_beginning,post_offset -200; content:\"HEAD\"; distance:0; within:4;", "HEAD"s, true},
        Case{"byte_jump:1,0,from_end,post_offset -300; content:\"HEAD\"; distance:0; within:4;", "HEAD abc"s, true},
        Case{"content:\"MUL\"; byte_jump:1,0,relative,multiplier 2,post_offset -250; content:\"HEAD\"; distance:0; "
             "within:4;",
             "HEADMUL\2"s, true},
        Case{"content:\"NEG\"; byte_jump:3,0,relative,string,dec; content:\"HEAD\"; distance:0; within:4;",
             "HEADNEG-99"s, true},
        Case{"content:\"HEAD\"; byte_jump:1,-10,relative;", "HEAD abc"s, false},
        Case{"content:\"LEN\"; byte_jump:1,0,relative,string,dec; isdataat:!1,relative;", "LEN2ab"s, true},
        Case{"content:\"LEN\"; byte_jump:1,0,relative,string,dec,post_offset 1;", "LEN2ab"s, false},
        Case{"content:\"N4\"; byte_jump:8,0,relative; isdataat:!3,relative;", "N4\xff\xff\xff\xff\xff\xff\xff\xfe"s,
             true},
        Case{"content:\"JMP\"; byte_jump:4,0,relative,string,dec; content:\"Z\"; distance:0; within:1;", "JMP2abZ",
             true},
        Case{"content:\"JMP\"; byte_jump:0,0,relative; isdataat:!1,relative;", "JMP", true},
        Case{"content:\"J0\"; byte_jump:0,0,relative,string,dec; content:\"Q\"; distance:0; within:1;", "J03 abQ",
             true},
        Case{"content:\"JMP\"; byte_extract:4,0,m,relative,string,dec; content:\"Z\"; distance:0; within:1;", "JMP22Zx",
             true},
        Case{"content:\"JMP\"; byte_extract:4,0,m,relative,string,dec; content:\"Z\"; distance:0; within:1;",
             "JMP2abcZ", false},
        Case{"content:\"JMP\"; byte_math:bytes 4,offset 0,oper +,rvalue 1,result r,relative,string dec; content:\"Z\"; "
             "distance:0; within:1;",
             "JMP22Zx", true}));

INSTANTIATE_TEST_SUITE_P(
    NumbersOfNoSize, PayloadMatcherTest,
    testing::Values(
        Case{"content:\"len=\"; byte_test:0,>,100,0,relative,string,dec;", "len=167936", true},
        Case{"content:\"len=\"; byte_test:0,>,100,0,relative,string,dec;", "len=99 100", false},
        Case{"content:\"len=\"; byte_test:0,=,255,0,relative,string,hex;", "len=ff zz", true},
        Case{"content:\"len=\"; byte_test:0,>,5,0,relative,string,dec;", "len= 12", true},
        Case{"content:\"len=\"; byte_test:0,=,0,0,relative,string,dec;", "len=", false},
        Case{"content:\"len=\"; byte_test:0,=,0,0,relative,string,dec;", "len=x", false},
        Case{"content:\"len=\"; byte_test:0,>,5,0,relative,string,dec;", "len=99999999999999999999999", false},
        Case{"content:\"len=\"; byte_test:23,>,5,0,relative,string,dec;", "len=99999999999999999999999", false},
        Case{"content:\"len=\"; byte_extract:0,0,n,relative,string,dec; byte_test:1,=,n,0,relative;", "len=7\x07",
             true},
        Case{"content:\"len=\"; byte_test:0,=,0,0,relative;", "len=x", true},
        Case{"content:\"len=\"; byte_test:0,=,0,0,relative;", "len=", false}, Case{"byte_test:0,=,0,1;", "x", true},
        Case{"byte_test:0,=,0,2;", "x", false}));

TEST(PayloadMatcher, ABufferThatIsNotThereMatchesNothing) {
  EXPECT_EQ(verdict("content:!\"abc\"; http_uri;", "x"), PayloadVerdict::no);
}

TEST(PayloadMatcher, GivesUpWhatWouldTakeTooLong) {
  std::string options = "content:\"a\";";
  for (int i = 0; i < 8; ++i) options += " content:\"a\"; within:1400;";
  EXPECT_EQ(verdict(options + " content:\"b\"; within:1;", std::string(1400, 'a')), PayloadVerdict::given_up);
}

// More backtracking than the limit allows, without and with a `!` before it, and another check that fails anyhow.
TEST(PayloadMatcher, GivesUpARegularExpressionThatEndsInAnError) {
  const std::string dear = "xx" + std::string(200, 'a');
  EXPECT_EQ(verdict("pcre:\"/xx(a+)+(a+)+[bc]/\";", dear), PayloadVerdict::given_up);
  EXPECT_EQ(verdict("pcre:!\"/xx(a+)+(a+)+[bc]/\";", dear), PayloadVerdict::given_up);
  EXPECT_EQ(verdict("pcre:!\"/xx(a+)+(a+)+[bc]/\"; content:\"b\";", dear), PayloadVerdict::given_up);
  EXPECT_EQ(verdict("content:\"b\"; pcre:!\"/xx(a+)+(a+)+[bc]/\";", dear), PayloadVerdict::no);
  EXPECT_EQ(verdict("pcre:!\"/xx(a+)+(a+)+[bc]/\";", "xx"), PayloadVerdict::yes);
}

// With O, ten times as much; without any limit the last ones would take 100 ms each.
TEST(PayloadMatcher, GivesUpWithALargerLimitAsWell) {
  const std::string plain = "pcre:\"/xx(a+)+[bc]/\";", larger = "pcre:\"/xx(a+)+[bc]/O\";";
  const struct {
    std::size_t size;
    PayloadVerdict plain, larger;
  } cases[] = {{8, PayloadVerdict::no, PayloadVerdict::no},
               {13, PayloadVerdict::given_up, PayloadVerdict::no},
               {20, PayloadVerdict::given_up, PayloadVerdict::given_up}};
  for (const auto& one : cases) {
    const std::string dear = "xx" + std::string(one.size, 'a');
    EXPECT_EQ(verdict(plain, dear), one.plain) << one.size;
    EXPECT_EQ(verdict(larger, dear), one.larger) << one.size;
  }
  const std::string dear = "xx" + std::string(1400, 'a');
  EXPECT_EQ(verdict("pcre:\"/xx(a+)+(a+)+[bc]/O\";", dear), PayloadVerdict::given_up);
  EXPECT_EQ(verdict("pcre:!\"/xx(a+)+(a+)+[bc]/O\";", dear), PayloadVerdict::given_up);
}

// Each takes milliseconds without a deadline. A pause of this thread is measured as well, so the shortest counts.
TEST(PayloadMatcher, GivesUpAtTheDeadline) {
  std::string many = "content:\"a\";";
  for (int i = 0; i < 8; ++i) many += " content:\"a\"; within:1400;";
  const std::string none = " content:\"b\"; within:1;";
  const std::string options[] = {
      many + none, "content:\"a\"; content:\"" + std::string(200, 'a') + "b\"; nocase;" + none,
      "content:!\"" + std::string(200, 'a') + "b\"; nocase;", "content:\"a\"; pcre:\"/^a[^z]*b/R\";"};
  const std::string payload(400'000, 'a');
  Buffers buffers;
  buffers.set(Buffer::payload, payload);
  PayloadMatcher::Scratch scratch;
  for (const std::string& one : options) {
    const auto rule = read_rule("alert tcp any any -> any any (msg:\"t\"; " + one + " sid:1;)");
    ASSERT_TRUE(rule) << rule.error().message;
    const auto matcher = PayloadMatcher::make(*rule);
    ASSERT_TRUE(matcher);
    std::uint64_t whole = PayloadMatcher::unlimited, cut = PayloadMatcher::unlimited;
    for (int round = 0; round < 5; ++round) {
      const std::uint64_t began = __rdtsc();
      matcher->matches(buffers, scratch);
      whole = std::min<std::uint64_t>(whole, __rdtsc() - began);
    }
    for (int round = 0; round < 20; ++round) {
      const std::uint64_t began = __rdtsc();
      EXPECT_EQ(matcher->matches(buffers, scratch, began + whole / 50), PayloadVerdict::given_up) << one;
      cut = std::min<std::uint64_t>(cut, __rdtsc() - began);
    }
    EXPECT_LT(cut, whole / 4) << one << ": " << whole;
  }
}

std::string decoded(std::string_view coded) {
  std::string out = "what was before";
  base64_decode(coded, out);
  return out;
}

TEST(Base64, DecodesUpToWhatIsNone) {
  EXPECT_EQ(decoded("aGVs\r\nbG8=zzzz"), "hello");
  EXPECT_EQ(decoded("aGVsbG8hIQ"), "hello!!");
  EXPECT_EQ(decoded("#"), "");
}

TEST(Base64, HasCapacityForWhatItDecodes) {
  for (std::size_t size = 0; size < 100; ++size)
    EXPECT_LE(decoded(std::string(size, 'A')).size(), base64_capacity(size));
}

}  // namespace
}  // namespace sluice::match
