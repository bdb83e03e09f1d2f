#include "bench/changes_run.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "bench/progress.h"
#include "bench/saturated.h"

namespace sluice::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned tried = 2;                           // changes in front of the windows
constexpr double window_share = 1.0 / 3;                // of `seconds`
constexpr double room_for_a_change = 1.5, room = 0.05;  // times what it took, and seconds

class ChangesRun {
 public:
  explicit ChangesRun(const ChangesPlan& plan) : plan_(plan) {}

  Expected<ChangesFigures> run(const ChoiceChain& chain) {
    auto running = chain.run(plan_.device, {});
    if (!running) return tl::unexpected(running.error());
    running_ = running->get();
    Rig& rig = running_->rig();
    figures_.offered = plan_.offered;
    if (plan_.offered <= 0) {
      figures_.saturated = saturate(rig, plan_.seconds, plan_.settling_saturated);
      figures_.offered = plan_.load * static_cast<double>(figures_.saturated.frames) / figures_.saturated.seconds;
    }
    if (auto ok = rig.pause(); !ok) return tl::unexpected(ok.error());
    rig.set_rate(figures_.offered);
    rig.measure(plan_.settling, 0);
    if (auto ok = try_changes(); !ok) return tl::unexpected(ok.error());
    rig.measure(plan_.settling, 0);
    if (auto ok = measure_windows(); !ok) return tl::unexpected(ok.error());
    if (auto ok = rig.pause(); !ok) return tl::unexpected(ok.error());
    count(figures_.with);
    rig.engine().stop();
    const engine::EngineStats end = rig.engine().stats();
    figures_.unaccounted = end.imbalance() + static_cast<std::int64_t>(end.total.in_flight);
    if (figures_.change_ms.empty()) return make_error("no change was made in any window");
    return figures_;
  }

 private:
  // In ms.
  Expected<double> change() {
    const auto began = Clock::now();
    if (auto ok = running_->change(); !ok) return make_error("a change was refused: " + ok.error().message);
    return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  }

  Expected<void> try_changes() {
    const Progress progress("changing the gateway");
    double longest_ms = 0;
    for (unsigned i = 0; i < tried; ++i) {
      const auto ms = change();
      if (!ms) return tl::unexpected(ms.error());
      longest_ms = std::max(longest_ms, *ms);
    }
    figures_.window_seconds = window_for(1e-3 * longest_ms, plan_.seconds * window_share);
    return {};
  }

  Expected<void> change_until(const std::function<bool()>& stopped) {
    while (!stopped()) {
      const auto ms = change();
      if (!ms) return tl::unexpected(ms.error());
      figures_.change_ms.push_back(*ms);
      std::this_thread::sleep_for(plan_.rest);
    }
    return {};
  }

  Expected<void> measure_windows() {
    Rig& rig = running_->rig();
    dropped_ = rig.engine().stats().drops;
    for (unsigned round = 0; round < plan_.rounds; ++round) {
      rig.measure(plan_.settling, 0);
      count(figures_.with);
      figures_.without.windows.of.push_back(rig.measure(0, figures_.window_seconds));
      count(figures_.without);
      rig.measure(plan_.settling, 0);
      count(figures_.without);
      const auto changing =
          measure_beside(rig, 0, figures_.window_seconds,
                         [this](const std::function<bool()>& stopped) { return change_until(stopped); });
      if (!changing) return tl::unexpected(changing.error());
      figures_.with.windows.of.push_back(*changing);
      count(figures_.with);
    }
    return {};
  }

  // What was dropped since the last call.
  void count(ChangedWindows& kind) {
    std::vector<std::uint64_t> now = running_->rig().engine().stats().drops;
    kind.count(dropped_, now);
    dropped_ = std::move(now);
  }

  const ChangesPlan& plan_;
  ChangesFigures figures_;
  ChoiceRun* running_ = nullptr;
  std::vector<std::uint64_t> dropped_;  // by the last count()
};

}  // namespace

std::uint64_t ChangedWindows::dropped() const {
  return std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
}

std::string ChangedWindows::dropped_text() const {
  engine::EngineStats stats;
  stats.drops = drops;
  const std::string text = drops_text(stats);
  return text.empty() ? "none" : text;
}

void ChangedWindows::count(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& after) {
  drops.resize(after.size());
  for (std::size_t reason = 0; reason < after.size(); ++reason) {
    (reason == engine::overdue ? overdue : drops[reason]) += after[reason] - before[reason];
  }
}

double window_for(double change_seconds, double seconds) {
  return std::max(seconds, room_for_a_change * change_seconds + room);
}

Expected<ChangesFigures> measure_changes(const ChoiceChain& chain, const ChangesPlan& plan) {
  return ChangesRun(plan).run(chain);
}

void judge_changes(Goals& goals, const std::string& name, const ChangesFigures& figures) {
  for (const auto& [kind, windows] : {std::pair{"without", &figures.without}, {"with", &figures.with}}) {
    goals.at_most(name + ": dropped " + kind + " changes, but as overdue", static_cast<double>(windows->dropped()), 0,
                  "frames");
  }
  goals.at_most(name + ": unaccounted for", static_cast<double>(std::abs(figures.unaccounted)), 0, "frames");
  judge_windows(goals, name + ": ", "changes", {figures.without.windows}, figures.with.windows);
}

}  // namespace sluice::cli::bench
