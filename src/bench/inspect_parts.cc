#include "bench/inspect_parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bench/rounds.h"

namespace sluice::cli::bench {
namespace {

constexpr double least_on_device = 0.99;  // of the frames of measured rounds

struct Share {
  std::uint64_t some = 0, all = 0;
  double of_all() const { return static_cast<double>(some) / static_cast<double>(std::max<std::uint64_t>(1, all)); }
};

Share handed_to_device(const Part& part) {
  Share share;
  for (const Outcome& round : part.outcomes) {
    share.some += round.gpu_frames;
    share.all += round.gpu_frames + round.cpu_frames;
  }
  return share;
}

}  // namespace

Outcome Part::median() const {
  Outcome outcome = middle_of(outcomes);
  for (const Outcome& round : outcomes) {
    outcome.device_max_us = std::max(outcome.device_max_us, round.device_max_us);
    outcome.max_us = std::max(outcome.max_us, round.max_us);
  }
  return outcome;
}

double Part::figure(std::string_view name) const {
  const auto found = std::ranges::find(figures, name, &engine::Metric::name);
  return found == figures.end() ? 0 : static_cast<double>(found->value);
}

void add_figures(const std::vector<engine::Metric>& before, std::vector<engine::Metric> after,
                 std::vector<engine::Metric>& sum) {
  for (std::size_t f = 0; f < after.size(); ++f) {
    if (!after[f].counts) continue;
    after[f].value -= before[f].value;
    if (f < sum.size()) after[f].value += sum[f].value;
  }
  sum = std::move(after);
}

std::string prefilter_matches_text(const Part& part, const std::string& device) {
  const double frames = part.figure("inspect_frames");
  if (frames == 0) return {};
  const std::string of_keys = device == "cpu" ? ""
                                              : fmt::format("; {:.3f} % of frames over eight keys",
                                                            100 * part.figure("inspect_many_keys") / frames);
  return fmt::format("{:.4f} prefilter matches a frame{}", part.figure("inspect_prefilter_matches") / frames, of_keys);
}

std::string late_text(const Part& part) {
  std::uint64_t late = 0, stalled = 0, not_let_in = 0, frames = 0;
  for (const Outcome& round : part.outcomes) {
    late += round.deadline_misses;
    stalled += round.misses_stalled;
    not_let_in += round.not_let_in();
    frames += round.frames;
  }
  return fmt::format("of all rounds {} frames late ({} of them explained) and {} not let in, {} transmitted", late,
                     stalled, not_let_in, frames);
}

std::string device_text(const Part& part, const std::string& device) {
  if (device == "cpu" || part.one.mode != engine::Mode::full) return {};
  const Share handed = handed_to_device(part);
  const double frames = part.figure("inspect_frames");
  return fmt::format("{} handed {:.2f} % of frames{}", device, 100 * handed.of_all(),
                     frames == 0 ? ""
                                 : fmt::format("; searched by it {:.2f} % of those inspected",
                                               100 * part.figure("inspect_by_device") / frames));
}

Expected<void> searched_by_device(const std::vector<engine::Metric>& figures, double wanted) {
  Part all;
  all.figures = figures;
  const double frames = all.figure("inspect_frames"), searched = all.figure("inspect_by_device");
  if (searched > 0 && searched >= wanted) return {};
  return make_error(
      fmt::format("inspect: of {:.0f} frames the GPU has searched {:.0f} by the rules that judge them, and the cores "
                  "have searched the others: this is no result of the GPU",
                  frames, searched));
}

Expected<void> on_its_device(const Part& part, const std::string& device) {
  if (device == "cpu" || part.one.mode != engine::Mode::full) return {};
  const Share handed = handed_to_device(part);
  if (handed.all == 0 || handed.of_all() < least_on_device) {
    return make_error(fmt::format("{} {}: of {} frames {} were handed to {}: this is no result of it", part.one.name(),
                                  part.one.traffic(), handed.all, handed.some, device));
  }
  if (!part.one.inspect) return {};
  const auto searched = searched_by_device(part.figures, least_on_device * part.figure("inspect_frames"));
  if (searched) return {};
  return make_error(part.one.name() + " " + part.one.traffic() + ": " + searched.error().message);
}

std::string AttackRate::str() const {
  return fmt::format(
      "{:.3f} Mpps offered; {:.1f} % of the {:.3f} carried of text; half of {:.3f} (the slowest lane times lanes; the "
      "least of text and the attack)",
      offered() / 1e6, 100 * of_text(), text / 1e6, slowest / 1e6);
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
