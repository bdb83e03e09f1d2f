// Regular expressions that are tried again because what follows them, relative to their end, did not hold.
#include <gtest/gtest.h>

#include "match/confirm/payload_trial_test.h"

namespace sluice::match {
namespace {

using namespace std::string_literals;

// `size` bytes of x, but for what is put where.
struct Put {
  std::size_t at;
  std::string bytes;
};
std::string filled(std::size_t size, std::initializer_list<Put> parts) {
  std::string payload(size, 'x');
  for (const Put& part : parts) payload.replace(part.at, part.bytes.size(), part.bytes);
  return payload;
}

// The checks of these community rules, whose pcre are `/^.{n}/R`: n bytes are skipped, and no more.
constexpr const char* sid_2101 =
    "content:\"|00|\"; depth:1; content:\"|FF|SMB%\"; within:5; distance:3; byte_test:1,!&,128,6,relative; "
    "pcre:\"/^.{27}/sR\"; content:\"|00 00 00 00|\"; within:4; distance:5;";
constexpr const char* sid_3026 =
    "content:\"|00|\"; depth:1; content:\"|FF|SMB|A0|\"; within:5; distance:3; byte_test:1,!&,128,6,relative; "
    "pcre:\"/^.{27}/R\"; content:\"|01 00|\"; within:2; distance:37; byte_jump:4,-7,little,relative,from_beginning; "
    "pcre:\"/^.{4}/R\"; content:!\"|00 00 00 00|\"; within:4; distance:12; byte_jump:4,12,relative,little; "
    "byte_test:4,>,32,-16,relative,little;";
constexpr const char* sid_3057 =
    "content:\"|00|\"; depth:1; content:\"|FF|SMB\"; within:4; distance:3; "
    "pcre:\"/^(\\x75|\\x2d|\\x2f|\\x73|\\xa2|\\x2e|\\x24|\\x74)/sR\"; byte_test:1,&,128,6,relative; "
    "content:\"|A0|\"; depth:1; offset:39; byte_jump:2,0,little,relative; content:\"|01 00|\"; within:2; distance:37; "
    "byte_jump:4,-7,little,relative,from_beginning; pcre:\"/^.{4}/R\"; content:!\"|00 00 00 00|\"; within:4; "
    "distance:16; byte_jump:4,16,relative,little; content:\"|00 00|\"; within:2; distance:-10;";
constexpr const char* sid_3135 =
    "content:\"|00|\"; depth:1; content:\"|FF|SMB2\"; within:5; distance:3; pcre:\"/^.{27}/R\"; "
    "content:\"|07 00|\"; within:2; distance:29;";

std::string smb_2101(std::size_t zeros) {
  return filled(80, {{0, "\0"s}, {4, "\xffSMB%"}, {zeros, "\0\0\0\0"s}});
}

// 100 is where the first jump leads, by the number in front of 01 00; 116 holds the number of the second.
std::string smb_3026(const std::string& number) {
  return filled(160, {{0, "\0"s}, {4, "\xffSMB\xa0"}, {68, "\x64\0\0\0"s}, {73, "\1\0"s}, {116, number}});
}

// As above, with the numbers of 3057. At 8 the first of the bytes that its first pcre wants, then another.
std::string smb_3057(std::size_t high_bit, const std::string& number) {
  return filled(160, {{0, "\0"s},
                      {4, "\xffSMBuu"},
                      {high_bit, "\x80"},
                      {39, "\xa0\0\0"s},
                      {74, "\x64\0\0\0"s},
                      {79, "\1\0"s},
                      {115, "\0\0xx\0"s},
                      {120, number}});
}

std::string smb_3135(std::size_t seven) {
  return filled(100, {{0, "\0"s}, {4, "\xffSMB2"}, {seven, "\7\0"s}});
}

class PcreTriedAgain : public testing::TestWithParam<Case> {};

TEST_P(PcreTriedAgain, HoldsOrNot) {
  expect_verdict(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    CommunityRules, PcreTriedAgain,
    testing::Values(Case{sid_2101, smb_2101(41), true}, Case{sid_2101, smb_2101(42), false},
                    Case{sid_2101, smb_2101(70), false}, Case{sid_3026, smb_3026("\4\0\0\0"s), true},
                    Case{sid_3026, smb_3026("\0\0\0\0\4\0\0\0"s), false},
                    Case{sid_3057, smb_3057(15, "\1\0\0\0"s), true}, Case{sid_3057, smb_3057(16, "\1\0\0\0"s), false},
                    Case{sid_3057, smb_3057(15, "\0\0\0\0\1\0\0\0"s), false}, Case{sid_3135, smb_3135(65), true},
                    Case{sid_3135, smb_3135(66), false}, Case{sid_3135, smb_3135(90), false}));

// Each is followed by an X that has to stand behind it.
Case before_x(const std::string& pcre, const std::string& payload, bool matches) {
  return {"pcre:\"" + pcre + "\"; content:\"X\"; within:1;", payload, matches};
}

INSTANTIATE_TEST_SUITE_P(WhatIsBefore, PcreTriedAgain,
                         testing::Values(before_x("/(?<=b)b/", "abbbX", true), before_x("/(?<=a)b/", "abbX", false),
                                         before_x("/(?<!b)b/", "bbX", false), before_x("/\\b[a-z]/", "aX", true),
                                         before_x("/\\b[a-z]/", "abX", false), before_x("/\\b[a-z]/", "ab cX", true),
                                         before_x("/\\B[a-z]/", "abcX", true), before_x("/\\B[a-z]/", "a bX", false)));

INSTANTIATE_TEST_SUITE_P(Anchors, PcreTriedAgain,
                         testing::Values(before_x("/^./", "aX", true), before_x("/^./", "abX", false),
                                         before_x("/\\A./", "abX", false), before_x("/^./m", "ab\ncX", true),
                                         before_x("/^./m", "ab\ncdX", false), before_x("/\\A./m", "a\nbX", false),
                                         before_x("/./A", "aX", true), before_x("/./A", "abX", false),
                                         before_x("/.*?b/s", "abbX", true),  // PCRE2 takes it for anchored, and may
                                         before_x("/^a|b/", "abbX", true), before_x("/^a|c/", "aaX", false)));

INSTANTIATE_TEST_SUITE_P(OfNoBytes, PcreTriedAgain,
                         testing::Values(before_x("/b*/", "aX", true), before_x("/b*/", "abbX", true),
                                         before_x("/b*/", "ab", false), before_x("/$/", "abX", false),
                                         before_x("/a\\Kb/", "ababX", true), before_x("/(?=a)/", "abaX", false),
                                         Case{"pcre:\"/$/\"; isdataat:!1,relative;", "", true}));

// The subject of /R begins where the previous match ends: what is before is not there for it. It is another one for
// each match of the check before it, but the same one for its own.
INSTANTIATE_TEST_SUITE_P(
    BehindAMatch, PcreTriedAgain,
    testing::Values(Case{"content:\"a\"; pcre:\"/^b/R\"; content:\"X\"; within:1;", "abX", true},
                    Case{"content:\"a\"; pcre:\"/^b/R\"; content:\"X\"; within:1;", "abbX", false},
                    Case{"content:\"a\"; pcre:\"/b/AR\"; content:\"X\"; within:1;", "abbX", false},
                    Case{"content:\"a\"; pcre:\"/^b/R\"; content:\"X\"; within:1;", "abbabX", true},
                    Case{"content:\"a\"; pcre:\"/b/R\"; content:\"X\"; within:1;", "abbX", true},
                    Case{"content:\"a\"; pcre:\"/(?<=a)b/R\";", "ab", false},
                    Case{"content:\"a\"; pcre:\"/(?<=b)b/R\"; content:\"X\"; within:1;", "abbbX", true},
                    Case{"content:\"a\"; pcre:\"/\\bb/R\";", "ab", true},
                    Case{"pcre:\"/a/\"; pcre:\"/^b/R\"; content:\"X\"; within:1;", "aababX", true},
                    Case{"pcre:\"/a/\"; pcre:\"/^b/R\"; content:\"X\"; within:1;", "abbX", false}));

INSTANTIATE_TEST_SUITE_P(Negated, PcreTriedAgain,
                         testing::Values(Case{"pcre:\"/a/\"; pcre:!\"/^b/R\";", "abac", true},
                                         Case{"pcre:\"/a/\"; pcre:!\"/^b/R\";", "abab", false},
                                         Case{"pcre:\"/^a/\"; pcre:!\"/^b/R\";", "abac", false},
                                         Case{"pcre:\"/(?<!a)a/\"; pcre:!\"/^a/R\";", "aac", false},
                                         Case{"content:\"a\"; pcre:!\"/b/R\";", "abac", true},
                                         Case{"content:\"a\"; pcre:!\"/(?<=a)b/R\";", "ab", true},
                                         Case{"content:\"a\"; pcre:!\"/b/R\"; content:\"c\"; within:1;", "abac", true},
                                         Case{"content:\"a\"; pcre:!\"/^c/R\"; content:\"c\"; distance:1; within:1;",
                                              "acbabc", true}));

}  // namespace
}  // namespace sluice::match
