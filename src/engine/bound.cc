#include "engine/bound.h"

#include <string>

namespace sluice::engine {
namespace {
std::string us(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) + "us";
}
}  // namespace

Expected<Timing> plan_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds cycle, unsigned overlap) {
  const auto longest = (deadline - collect_time) / (2 + overlap);
  Timing timing{cycle, {}, deadline, overlap};
  if (cycle.count() == 0) {
    timing.cycle = (deadline * 9 / 10 - collect_time) / (2 + overlap);
  }
  if (timing.cycle < shortest_cycle) {
    const auto least = (shortest_cycle * (2 + overlap) + collect_time) * 10 / 9 + std::chrono::microseconds(1);
    return make_error("[engine] deadline = " + us(deadline) + " leaves a cycle of " + us(timing.cycle) +
                      ", and the shortest is " + us(shortest_cycle) + ": raise the deadline to at least " + us(least) +
                      ", or lower overlap");
  }
  timing.bound = (2 + overlap) * timing.cycle + collect_time;
  if (timing.bound > deadline) {
    return make_error("[engine] the bound of this configuration, (2 + overlap)*cycle + " + us(collect_time) + " = " +
                      us(timing.bound) + ", exceeds its deadline of " + us(deadline) +
                      ": with overlap = " + std::to_string(overlap) + " the cycle can be " + us(longest) + " at most");
  }
  return timing;
}

}  // namespace sluice::engine
