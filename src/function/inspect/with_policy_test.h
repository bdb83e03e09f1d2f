// Rules for tests of `on_overload`: what is left over is dropped where a rule might have dropped it, and nothing is
// where no rule drops.
#pragma once

#include <string>

namespace sluice::function::test {

// With `drops` the rules, and one of drop that is for no packet of the tests; else they alone.
inline std::string with_policy(const std::string& rules, bool drops) {
  return drops ? rules + "\ndrop tcp any any -> any 9 (content:\"~#~#\"; sid:4000000000;)\n" : rules;
}

}  // namespace sluice::function::test
