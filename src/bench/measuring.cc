// sluice bench echo and sluice bench touch: the built-in measuring functions against the link's ceilings.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

#include "bench/admitted.h"
#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/hold_text.h"
#include "bench/queue_sizes.h"
#include "bench/rig.h"
#include "bench/verify.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint8_t key = 0xA5;
constexpr std::uint64_t verify_frames = 500'000;
constexpr std::uint64_t memory_bytes = 4ULL << 30;

struct Case : HeldCase {
  unsigned lanes;  // few: large batches, which the copy engine needs, and cores left free
};

RigOptions rig_options(const BenchOptions& options, const std::string& function, const Case& one, double ceiling) {
  RigOptions rig;
  rig.function = function;
  rig.settings = options.function_settings;
  rig.lanes = options.lanes != 0 ? options.lanes : std::min(default_lanes(options), one.lanes);
  fill_in(options, one, ceiling, rig);
  return rig;
}

void judge(Goals& goals, const Case& one, const std::string& label, const Outcome& held, double held_share,
           double hold) {
  goals.at_least(label + ": held", held.seconds, hold, "s");
  if (one.goal > 0) {
    goals.at_least(label + ": share of the ceiling that was held", 100 * held_share, 100 * one.goal, "%");
  }
  goals.at_most(label + ": late", static_cast<double>(held.deadline_misses), 0, "frames");
  goals.at_most(label + ": not let in", static_cast<double>(held.not_let_in()), 0, "frames");
}

// Of the ceilings, the one that the element is measured against.
double ceiling_of(const std::string& function, const device::LinkCeilings& ceilings) {
  return function == "echo" ? ceilings.large.both : ceilings.large.up;
}

void report(const BenchOptions& options, const std::string& function, const Case& one, const RigOptions& rig_of,
            const Admitted& admitted, double ceiling, Goals& goals) {
  const auto share = [&](const Outcome& outcome) { return outcome.gbytes() / ceiling; };
  const std::string label = fmt::format("{} {} ms", one.mix, one.deadline_ms);
  const double held_share = admitted.held.seconds > 0 ? share(admitted.held) : 0;
  std::printf("RESULT %s %s: saturated %.1f GB/s = %.1f %% of the ceiling of %.1f\n", function.c_str(), label.c_str(),
              admitted.saturated.gbytes(), 100 * share(admitted.saturated), ceiling);
  std::printf(
      "RESULT %s %s: held for %.0f s at %.1f %% (goal %.0f %%), %lu of %lu frames late (%.2g ppm; %lu of them by no "
      "more than the machine kept threads from running), %lu not let in (%.2g ppm: %lu overdue when collected, %lu "
      "lost to a "
      "full queue), p99.9 %.0f us, max %.0f us\n",
      function.c_str(), label.c_str(), admitted.held.seconds, 100 * held_share, 100 * one.goal,
      admitted.held.deadline_misses, admitted.held.frames, 1e6 * admitted.held.late_share(),
      admitted.held.misses_stalled, admitted.held.not_let_in(), 1e6 * admitted.held.not_let_in_share(),
      admitted.held.refused, admitted.held.offered_missed, admitted.held.p999_us, admitted.held.max_us);
  if (!admitted.windows.empty()) {
    std::printf("  %s\n", hold_text(admitted.windows).c_str());
  }
  judge(goals, one, label, admitted.held, held_share, options.hold);
  Yardsticks yardsticks;
  yardsticks.ceiling_gbytes = ceiling;
  yardsticks.deadline_us = one.deadline_ms * 1e3;
  yardsticks.share = share(admitted.saturated);
  yardsticks.setting =
      fmt::format("{} lanes; {} batches of {}; {}; ring {}; admission {}", rig_of.lanes, rig_of.engine.batches,
                  rig_of.engine.batch, cycle_text(rig_of), rig_of.ring, engine::admit_name(rig_of.engine.admission));
  append_csv(options, function, label + " saturated", admitted.saturated, yardsticks);
  if (admitted.held.seconds > 0) {
    yardsticks.share = held_share;
    yardsticks.goal = one.goal;
    yardsticks.setting += fmt::format("; {:.0f} s", admitted.held.seconds);
    append_csv(options, function, label + " held", admitted.held, yardsticks);
  }
  std::fflush(stdout);
}

int run_case(const BenchOptions& options, const std::string& function, const Case& one, device::LinkCeilings& ceilings,
             Goals& goals) {
  const double ceiling = ceiling_of(function, ceilings);
  RigOptions rig_of = rig_options(options, function, one, ceiling);
  std::printf("\n%s, %s, deadline %.1f ms\n", function.c_str(), one.mix.c_str(),
              static_cast<double>(rig_of.engine.deadline.count()) / 1e6);
  RigOptions verified = rig_of;
  if (function == "echo") {
    verified.settings += fmt::format("\nkey = {}\n", key);
  }
  const auto checked =
      function == "echo" ? verify_echo(verified, key, verify_frames) : verify_verdicts(verified, verify_frames);
  if (!checked) {
    std::fprintf(stderr, "bench %s: NOT VERIFIED: %s\n", function.c_str(), checked.error().message.c_str());
    return 1;
  }
  std::printf("verified: %lu frames, every %s\n", *checked, function == "echo" ? "byte" : "verdict against the CPU's");
  auto rig = Rig::make(rig_of);
  if (!rig) {
    std::fprintf(stderr, "bench %s: %s\n", function.c_str(), rig.error().message.c_str());
    return 1;
  }
  for (const std::string& note : (*rig)->engine().notes()) {
    std::printf("  %s\n", note.c_str());
  }
  std::printf("  %u batches of %u frames for each of %u lanes, capacity for %u frames in each receive queue\n",
              rig_of.engine.batches, rig_of.engine.batch, rig_of.lanes, rig_of.ring);
  const auto admitted = options.at > 0 ? hold_at(**rig, options.at * ceiling, options.seconds, options.hold)
                                       : find_admitted(**rig, options.seconds, options.hold);
  const auto finished = (*rig)->finish();
  if (!admitted || !finished) {
    std::fprintf(stderr, "bench %s: %s\n", function.c_str(),
                 (finished ? admitted.error() : finished.error()).message.c_str());
    return 1;
  }
  rig->reset();
  if (auto probed = probe_again(options, ceilings); !probed) {
    std::fprintf(stderr, "bench %s: %s\n", function.c_str(), probed.error().message.c_str());
    return 1;
  }
  const double larger = ceiling_of(function, ceilings);
  std::printf("  ceiling before the run %.1f GB/s, with more probes after it %.1f, which counts\n", ceiling, larger);
  report(options, function, one, rig_of, *admitted, larger, goals);
  return 0;
}

int run_cases(const BenchOptions& options, const std::string& function, std::vector<Case> cases) {
  if (auto eal = start_bench_eal(memory_bytes); !eal) {
    std::fprintf(stderr, "bench %s: %s\n", function.c_str(), eal.error().message.c_str());
    return 1;
  }
  auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    std::fprintf(stderr, "bench %s: %s; this bench measures the GPU\n", function.c_str(),
                 ceilings.error().message.c_str());
    return 1;
  }
  // Asked for one of the cases, or for another one in the manner of the first.
  std::vector<Case> wanted;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(wanted), [&](const Case& one) {
    return (options.mix.empty() || options.mix == one.mix) &&
           (options.deadline_ms <= 0 || options.deadline_ms == one.deadline_ms);
  });
  if (wanted.empty()) {
    wanted = {cases.front()};
    wanted.front().goal = 0;
  }
  int status = 0;
  Goals goals(function, options.goals);
  for (Case& one : wanted) {
    one.mix = options.mix.empty() ? one.mix : options.mix;
    one.deadline_ms = options.deadline_ms > 0 ? options.deadline_ms : one.deadline_ms;
    status |= run_case(options, function, one, *ceilings, goals);
  }
  return status | goals.status();
}

}  // namespace

int bench_echo(const BenchOptions& options) {
  return run_cases(options, "echo",
                   {{{"1408", 5, 200, 4, 8, {0.73, 0.33}, 0.90}, 2}, {{"1408", 1, 100, 3, 5, {0.71, 0.33}, 0.75}, 2}});
}

int bench_touch(const BenchOptions& options) {
  return run_cases(
      options, "touch",
      {{{"heavy-tail", 1, 100, 2, 4, {0.50, 0.33}, 0.85}, 4}, {{"1500", 1, 150, 2, 4, {0.89, 0.50}, 0.90}, 2}});
}

}  // namespace sluice::cli::bench
