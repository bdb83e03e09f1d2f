// sluice bench changes: each chain is changed under high load, as an operator or a peer changes it. Windows without and
// with changes take turns, so that what changes do to frames shows beside what the machine does.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "bench/changes_run.h"
#include "bench/choice_beds.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/ipsec_bed.h"
#include "bench/router_rig.h"
#include "bench/spread.h"

namespace sluice::cli::bench {
namespace {

class ChangesBench {
 public:
  ChangesBench(const BenchOptions& options, Goals& goals) : options_(options), goals_(goals) {
    plan_.device = options.device;
    plan_.seconds = options.seconds;
    if (options.at > 0) plan_.load = options.at;
  }

  Expected<void> run(const ChoiceChain& chain) {
    std::printf("\nchanges, %s, %s: %s\n", chain.name.c_str(), chain.traffic.c_str(), chain.changes.c_str());
    const auto figures = measure_changes(chain, plan_);
    if (!figures) return tl::unexpected(figures.error());
    report(chain, *figures);
    judge_changes(goals_, chain.name, *figures);
    std::fflush(stdout);
    return {};
  }

 private:
  void report(const ChoiceChain& chain, const ChangesFigures& figures) const {
    const std::string saturated = chain.name + " saturated";
    std::printf("  %s\n", row(saturated, figures.saturated).c_str());
    append_csv(options_, "changes", saturated, figures.saturated, {.setting = chain.traffic});
    for (const auto& [kind, windows] : {std::pair{"without", &figures.without}, {"with", &figures.with}}) {
      say(chain, fmt::format("{} changes", kind), *windows);
    }
    std::vector<double> sorted = figures.change_ms;
    std::ranges::sort(sorted);
    const Spread took = spread_of(sorted);
    std::printf(
        "RESULT changes %s: %s: %zu in %zu windows of %.2f s, at %.2f Mpps, %.0f %% of %.2f saturated on %s; one took "
        "%.2f ms, worst %.2f\n",
        chain.name.c_str(), chain.changes.c_str(), sorted.size(), figures.with.windows.of.size(),
        figures.window_seconds, figures.offered / 1e6,
        100 * figures.offered / 1e6 / std::max(1e-9, figures.saturated.mpps()), figures.saturated.mpps(),
        options_.device.c_str(), took.median, took.high);
    append_csv(options_, "changes", chain.name + " a change", of_changes(figures, took), {.setting = chain.changes});
  }

  void say(const ChoiceChain& chain, const std::string& kind, const ChangedWindows& windows) const {
    const std::string label = chain.name + " " + kind;
    const std::string dropped =
        fmt::format("{} refused as overdue, dropped otherwise: {}", windows.overdue, windows.dropped_text());
    std::printf("RESULT changes %s: %s\n", label.c_str(), windows_text(windows.windows).c_str());
    std::printf("RESULT changes %s: with what lies between windows, %s\n", label.c_str(), dropped.c_str());
    const std::size_t middle = windows.windows.spread(&Outcome::p99_us).at;
    append_csv(options_, "changes", label, windows.windows.of[middle],
               {.share = plan_.load, .setting = chain.traffic + "; " + chain.changes + "; " + dropped});
  }

  // The columns are those of frames: here each is a change.
  static Outcome of_changes(const ChangesFigures& figures, const Spread& took) {
    Outcome row;
    row.frames = figures.change_ms.size();
    row.seconds = figures.window_seconds * static_cast<double>(figures.with.windows.of.size());
    row.p50_us = 1e3 * took.median;
    row.max_us = 1e3 * took.high;
    return row;
  }

  const BenchOptions& options_;
  Goals& goals_;
  ChangesPlan plan_;
};

}  // namespace

int bench_changes(const BenchOptions& options) {
  const auto fail = [](const std::string& message, int status) {
    std::fprintf(stderr, "bench changes: %s\n", message.c_str());
    return status;
  };
  if (ChoiceBeds::names(options.only).empty()) return fail("--only " + options.only + ": no such chain", 2);
  if (auto eal = start_bench_eal(std::max(router_memory, ipsec_memory_bytes(default_lanes(options)))); !eal) {
    return fail(eal.error().message, 1);
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  auto beds = ChoiceBeds::make(options, ceilings ? ceilings->large.both : 0);
  if (!beds) return fail(beds.error().message, 2);
  Goals goals("changes", options.goals);
  ChangesBench bench(options, goals);
  int status = 0;
  for (const ChoiceChain& chain : (*beds)->chains()) {
    if (auto ok = bench.run(chain); !ok) status = fail(chain.name + ": " + ok.error().message, 1);
  }
  return status | goals.status();
}

}  // namespace sluice::cli::bench
