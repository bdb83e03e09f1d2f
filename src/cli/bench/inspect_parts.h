// What sluice bench inspect makes of the rounds in which it has measured the parts of a chain.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/inspect_chain.h"
#include "cli/bench/rig.h"
#include "cli/bench/spread.h"

namespace sluice::cli::bench {

// Of a part of a chain, in rounds.
struct Part {
  ChainCase one;
  std::vector<double> mpps;
  std::vector<Outcome> outcomes;
  std::vector<engine::Figure> figures;  // of the stages, of all rounds together
  unsigned lanes = 1;
  // That of the median rate, and the slowest batch of all.
  Outcome median() const;
  double figure(std::string_view name) const;
};

// Adds what has been counted from `before` to `after`, of the same function; what is there now stays as it is.
void add_figures(const std::vector<engine::Figure>& before, std::vector<engine::Figure> after,
                 std::vector<engine::Figure>& sum);

// What the rules made of the frames; empty: nothing was inspected.
std::string candidates_text(const Part& part, const std::string& device);

// In full mode; null: it was not measured.
const Part* find(const std::vector<Part>& parts, bool acl, bool inspect, bool fused);

// By how much the rate is lower with acl, in %, round by round; none: there is no part without it.
std::optional<Spread> acl_cost(const std::vector<Part>& parts);

}  // namespace sluice::cli::bench
