// The trait of an element with a list of rules of which each has counted the frames that it decided.
//
// Thread-safety: any thread, while lanes run and a reload is at work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct CountedRule {
  std::string action;  // "deny"
  std::string match;   // "destination_port=22 protocol=tcp"; empty: of what no rule matches
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
    std::uint64_t count = 0;         // how many there are
    CountedRule unmatched;           // the default
  };
  // The first `limit` rules in force.
  virtual Listing list(std::uint32_t limit) const = 0;
};

}  // namespace sluice::engine
