#include "cli/bench/inspect_parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace sluice::cli::bench {

Outcome Part::median() const {
  Outcome outcome = outcomes[spread_of(mpps).at];
  for (const Outcome& round : outcomes) outcome.device_max_us = std::max(outcome.device_max_us, round.device_max_us);
  return outcome;
}

double Part::figure(std::string_view name) const {
  const auto found = std::ranges::find(figures, name, &engine::Figure::name);
  return found == figures.end() ? 0 : static_cast<double>(found->value);
}

void add_figures(const std::vector<engine::Figure>& before, std::vector<engine::Figure> after,
                 std::vector<engine::Figure>& sum) {
  for (std::size_t f = 0; f < after.size(); ++f) {
    if (!after[f].counts) continue;
    after[f].value -= before[f].value;
    if (f < sum.size()) after[f].value += sum[f].value;
  }
  sum = std::move(after);
}

std::string candidates_text(const Part& part, const std::string& device) {
  const double frames = part.figure("inspect_frames");
  if (frames == 0) return {};
  const std::string of_keys = device == "cpu" ? ""
                                              : fmt::format("; {:.3f} % of frames over eight keys",
                                                            100 * part.figure("inspect_many_keys") / frames);
  return fmt::format("{:.4f} candidates a frame{}", part.figure("inspect_candidates") / frames, of_keys);
}

const Part* find(const std::vector<Part>& parts, bool acl, bool inspect, bool fused) {
  const auto found = std::ranges::find_if(parts, [&](const Part& part) {
    return part.one.acl == acl && part.one.inspect == inspect && part.one.fused == fused &&
           part.one.mode == engine::Mode::full;
  });
  return found == parts.end() ? nullptr : &*found;
}

std::optional<Spread> acl_cost(const std::vector<Part>& parts) {
  const Part* const with = find(parts, true, true, true);
  const Part* const without = find(parts, false, true, true);
  if (with == nullptr || without == nullptr) return {};
  std::vector<double> costs;
  for (std::size_t r = 0; r < with->mpps.size(); ++r) costs.push_back(100 * (1 - with->mpps[r] / without->mpps[r]));
  return spread_of(costs);
}

}  // namespace sluice::cli::bench
