// sluice bench media: RTP of many streams through the chain srtp, bridge in the engine, at a deadline, beside the
// link's ceiling; on a GPU and on the cores.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

#include "bench/admitted.h"
#include "bench/bench.h"
#include "bench/goals.h"
#include "bench/hold_text.h"
#include "bench/media_bed.h"
#include "bench/media_overload.h"
#include "bench/media_report.h"
#include "bench/memory_use.h"

namespace sluice::cli::bench {
namespace {

constexpr double goal_mixed = 85;  // % of what one size reaches

const HeldCase cases[] = {{"1370", 5, 400, 4, 5, {0.73, 0.33}, 0.90},
                          {"1370", 1, 100, 3, 5, {0.71, 0.33}, 0.75},
                          {"rtp", 5, 400, 4, 5, {0.73, 0.33}, 0},
                          {"rtp", 1, 100, 3, 5, {0.71, 0.33}, 0}};

// The share of the ceiling that was held; 0: none, or there is no ceiling.
Expected<double> hold(const BenchOptions& options, MediaBed& bed, const MediaReporter& reporter, Goals& goals) {
  bed.rig.engine.mode = engine::Mode::full;
  auto rig = Rig::make(bed.rig);
  if (!rig) return tl::unexpected(rig.error());
  const double gbytes = options.at * reporter.ceiling * frame_share(bed.streams, reporter.one.mix);
  const auto admitted = options.at > 0 && reporter.ceiling > 0 ? hold_at(**rig, gbytes, options.seconds, options.hold)
                                                               : find_admitted(**rig, options.seconds, options.hold);
  if (!admitted) return tl::unexpected(admitted.error());
  if (auto finished = bed.finish(**rig); !finished) return tl::unexpected(finished.error());
  const double goal = bed.device == "cpu" ? 0 : reporter.one.goal;
  reporter.say("saturated", admitted->saturated);
  const Outcome& held = admitted->held;
  if (held.seconds > 0) reporter.say(fmt::format("held {:.0f} s", held.seconds), held, goal);
  if (!admitted->windows.empty()) std::printf("  %s\n", hold_text(admitted->windows).c_str());
  const double share = held.seconds > 0 ? reporter.share(held) : 0;
  if (goal == 0) return share;
  goals.at_least(reporter.label("held"), held.seconds, options.hold, "s");
  goals.at_least(reporter.label("of the ceiling"), 100 * share, 100 * goal, "%");
  goals.at_most(reporter.label("late"), static_cast<double>(held.deadline_misses), 0, "frames");
  goals.at_most(reporter.label("not let in"), static_cast<double>(held.not_let_in()), 0, "frames");
  return share;
}

Expected<double> run_case(const BenchOptions& options, const HeldCase& one, const std::string& device, double ceiling,
                          Goals& goals) {
  constexpr double without_a_gpu = 10;  // GB/s, for the sizes of queues
  const auto bed = MediaBed::make(options, one, device, ceiling > 0 ? ceiling : without_a_gpu);
  std::printf(
      "\nmedia, %s, %s, %u streams, %s, deadline %.1f ms\n  %u batches of %u frames for each of %u lanes, capacity "
      "for %u frames in each receive queue\n",
      device.c_str(), one.mix.c_str(), bed->streams.streams, options.suite.c_str(), one.deadline_ms,
      bed->rig.engine.batches, bed->rig.engine.batch, bed->rig.lanes, bed->rig.ring);
  if (auto right = bed->verify(); !right) return make_error("NOT VERIFIED: " + right.error().message);
  const MediaReporter reporter{options, one, *bed, ceiling};
  for (const auto& [mode, name] :
       {std::pair{engine::Mode::collector_only, "collector-only"}, std::pair{engine::Mode::zero_load, "zero-load"}}) {
    const auto outcome = bed->measure(mode, options.seconds);
    if (!outcome) return tl::unexpected(outcome.error());
    reporter.say(name, *outcome);
  }
  if (device != "cpu" || options.device == "cpu") {
    return options.overload > 0 ? overload(options, one, *bed, reporter, goals) : hold(options, *bed, reporter, goals);
  }
  // Beside a GPU: what the cores can do, for comparison.
  const auto outcome = bed->measure(engine::Mode::full, options.seconds);
  if (!outcome) return tl::unexpected(outcome.error());
  reporter.say("saturated", *outcome);
  return 0;
}

// How long the streams of the configuration take to be there, and their memory.
Expected<void> report_setup(const BenchOptions& options) {
  RtpStreams streams;
  streams.streams = options.rtp_streams;
  streams.suite = srtp::suite_named(options.suite).value();
  streams.both = options.direction == "both";
  const auto resident = [] {
    const Resident all = resident_by_mapping();
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& one) { return sum + one.second; });
  };
  function::Srtp element(srtp_options(streams));
  const std::uint64_t before = resident();
  const auto begin = std::chrono::steady_clock::now();
  if (auto ok = element.prepare({.lanes = 1}); !ok) return ok;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  const std::uint64_t after = resident();
  const double count = streams.keys();
  std::printf("setting up %.0f 5-tuples: %.0f a second on one core, %.0f bytes each, keys included\n", count,
              count / spent.count(), static_cast<double>(after - std::min(before, after)) / count);
  return {};
}

std::vector<HeldCase> chosen(const BenchOptions& options) {
  std::vector<HeldCase> wanted;
  for (const HeldCase& one : cases) {
    if ((options.mix.empty() || options.mix == one.mix) &&
        (options.deadline_ms <= 0 || options.deadline_ms == one.deadline_ms)) {
      wanted.push_back(one);
    }
  }
  if (!wanted.empty()) return wanted;
  // In the manner of the one whose deadline is the next below.
  HeldCase other = cases[options.deadline_ms > 0 && options.deadline_ms < cases[0].deadline_ms ? 1 : 0];
  other.goal = 0;
  if (!options.mix.empty()) other.mix = options.mix;
  if (options.deadline_ms > 0) {
    other.cycle_us *= std::min(1.0, options.deadline_ms / other.deadline_ms);
    other.deadline_ms = options.deadline_ms;
  }
  return {other};
}

}  // namespace

int bench_media(const BenchOptions& options) {
  const auto fail = [](const std::string& why, int status) {
    std::fprintf(stderr, "bench media: %s\n", why.c_str());
    return status;
  };
  if (!srtp::suite_named(options.suite)) {
    std::string names;
    for (const srtp::SuiteFacts& suite : srtp::suites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
    return fail("--suite " + options.suite + ": there are " + names, 2);
  }
  if (auto eal = start_bench_eal(media_memory_bytes); !eal) return fail(eal.error().message, 1);
  auto ceilings = print_ceilings(options, true);
  if (!ceilings) std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  if (auto setup = report_setup(options); !setup) return fail(setup.error().message, 1);
  std::vector<std::string> devices;
  if (ceilings && options.device != "cpu") devices.push_back(options.device == "auto" ? "cuda:0" : options.device);
  if (options.device == "auto" || options.device == "cpu") devices.emplace_back("cpu");
  Goals goals("media", options.goals);
  int status = 0;
  std::map<double, double> held_large;  // shares of the ceiling, by deadline
  for (const HeldCase& one : chosen(options)) {
    for (const std::string& device : devices) {
      const auto share = run_case(options, one, device, ceilings ? ceilings->large.both : 0, goals);
      if (!share) {
        status = fail(share.error().message, 1);
      } else if (options.overload > 0) {
        continue;  // nothing was held
      } else if (device != "cpu" && one.mix == "1370") {
        held_large[one.deadline_ms] = *share;
      } else if (device != "cpu" && held_large.contains(one.deadline_ms)) {
        goals.at_least(fmt::format("{} {} ms: {}, of what was held of 1370", device, one.deadline_ms, one.mix),
                       100 * *share / std::max(held_large[one.deadline_ms], 0.01), goal_mixed, "%");
      }
    }
  }
  return status | goals.status();
}

}  // namespace sluice::cli::bench
