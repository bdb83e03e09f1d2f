// One rule's text to a Rule. What rule_set.h is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "match/rules/classification.h"
#include "match/rules/rule.h"
#include "match/rules/variables.h"

namespace sluice::match {

// As Refusal of rule_set.h.
struct Misread {
  std::string message;
  std::string reason;
};

template <typename T>
using Reading = tl::expected<T, Misread>;

struct Identity {
  std::uint32_t gid = 1;
  std::uint32_t sid = 0;  // 0: not known
};

// `identity` is set as far as it can be read, whether the rule is refused or not.
Reading<Rule> parse_rule(std::string_view text, const Variables& variables, const Classification& classification,
                         Identity& identity);

}  // namespace sluice::match
