// What sluice bench inspect makes of the rounds in which it has measured the parts of a chain.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/inspect_chain.h"
#include "bench/rig.h"
#include "bench/spread.h"

namespace sluice::cli::bench {

// Of a part of a chain, in rounds.
struct Part {
  ChainCase one;
  std::vector<double> mpps;
  std::vector<Outcome> outcomes;
  std::vector<engine::Metric> figures;  // of the elements, of all rounds together
  unsigned lanes = 1;
  std::vector<Outcome> windows;  // of the last round, where it was measured in some
  // That of the median rate, with the slowest batch and the slowest frame of all of them.
  Outcome median() const;
  double figure(std::string_view name) const;
};

// Adds what has been counted from `before` to `after`, of the same function; what is there now stays as it is.
void add_figures(const std::vector<engine::Metric>& before, std::vector<engine::Metric> after,
                 std::vector<engine::Metric>& sum);

// What the rules made of the frames; empty: nothing was inspected.
std::string prefilter_matches_text(const Part& part, const std::string& device);

// Late frames, and those that were not let in, of all rounds together.
std::string late_text(const Part& part);

// Of a GPU: which share of the frames it was handed, and of those inspected which it has searched by the rules that
// judged them. Empty of the CPU, and in zero-load mode.
std::string device_text(const Part& part, const std::string& device);
// An Error where more than one frame in a hundred of a GPU's part was the cores': their rate would bear its name.
Expected<void> on_its_device(const Part& part, const std::string& device);
// By the figures of a chain that inspects: an Error where a GPU has searched fewer than so many frames by the rules
// that judged them. Cores search before the first time point, and all the time while it searches by others.
Expected<void> searched_by_device(const std::vector<engine::Metric>& figures, double wanted);

// What an attack comes at, in frames a second.
struct AttackRate {
  double text = 0;     // carried of text
  double slowest = 0;  // of the slowest lane times lanes, the least of text and the attack with either policy
  double offered() const { return slowest / 2; }
  double of_text() const { return text > 0 ? offered() / text : 0; }
  std::string str() const;
};

// In full mode; null: it was not measured.
const Part* find(const std::vector<Part>& parts, bool acl, bool inspect, bool fused);

// By how much the rate is lower with acl, in %, round by round; none: there is no part without it.
std::optional<Spread> acl_cost(const std::vector<Part>& parts);

}  // namespace sluice::cli::bench
