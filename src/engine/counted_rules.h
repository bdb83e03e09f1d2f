// The trait of an element with a list of rules, each of which counts the frames that it decided.
//
// Thread-safety: any thread, also while lanes run and during a reload.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct CountedRule {
  std::string action;  // "deny"
  std::string match;   // "destination_port=22 protocol=tcp"; empty: the frames that no rule matches
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;  // of whole frames, without FCS
  std::string name = {}, comment = {};
};

class CountedRules {
 public:
  static constexpr std::string_view trait_name = "counted_rules";
  virtual ~CountedRules() = default;

  struct Listing {
    std::vector<CountedRule> rules;  // in match order, from the first
    std::uint64_t count = 0;         // of all rules
    CountedRule unmatched;           // the default, for frames that no rule matches
  };
  // The rules in force, at most the first `limit`.
  virtual Listing list(std::uint32_t limit) const = 0;
};

}  // namespace sluice::engine
