// What the tests of reading rules share: texts of rules, and tables of those that are refused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <variant>

#include "match/rules/rule_set.h"

namespace sluice::match {

inline std::string with_options(const std::string& options) {
  return "alert ip any any -> any any (" + options + " sid:1;)";
}

inline Rule read(const std::string& text) {
  auto rule = read_rule(text);
  EXPECT_TRUE(rule) << text << ": " << (rule ? "" : rule.error().message);
  return rule ? *rule : Rule{};
}

inline Rule options(const std::string& text) {
  return read(with_options(text));
}

template <typename T>
T check(const Rule& rule, std::size_t index = 0) {
  EXPECT_LT(index, rule.checks.size());
  const T* const found = index < rule.checks.size() ? std::get_if<T>(&rule.checks[index]) : nullptr;
  EXPECT_NE(found, nullptr);
  return found != nullptr ? *found : T{};
}

struct Refused {
  const char* options;
  const char* message;
};
inline void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.options;
}

}  // namespace sluice::match
