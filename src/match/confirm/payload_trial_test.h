// What the tests of payload checks share: a rule's options over a payload, and tables of those that hold or not.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "match/confirm/payload_matcher.h"
#include "match/rules/rule_set.h"

namespace sluice::match {

// `options` of a TCP rule, over a payload.
inline PayloadVerdict verdict(const std::string& options, const std::string& payload) {
  const auto rule = read_rule("alert tcp any any -> any any (msg:\"t\"; " + options + " sid:1;)");
  EXPECT_TRUE(rule) << (rule ? "" : rule.error().message);
  if (!rule) return PayloadVerdict::given_up;
  const auto matcher = PayloadMatcher::make(*rule);
  EXPECT_TRUE(matcher) << matcher.error().message;
  Buffers buffers;
  buffers.set(Buffer::payload, payload);
  PayloadMatcher::Scratch scratch;
  return matcher->matches(buffers, scratch);
}

struct Case {
  std::string options;
  std::string payload;
  bool matches;
};

inline void PrintTo(const Case& one, std::ostream* out) {
  *out << one.options << " on " << testing::PrintToString(one.payload);
}

inline void expect_verdict(const Case& one) {
  EXPECT_EQ(verdict(one.options, one.payload), one.matches ? PayloadVerdict::yes : PayloadVerdict::no);
}

}  // namespace sluice::match
