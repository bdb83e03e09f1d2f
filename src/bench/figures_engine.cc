// The paper's sections 8.3 and 8.4 in the engine: streams of one size (its set A) and of seven (B), by pipelines, in
// the three modes; and the distribution of latency by cycle and speed.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bench/figures.h"
#include "bench/media_bed.h"

namespace sluice::cli::bench {
namespace {

constexpr double link_gbytes = 50;  // for the sizes of queues
constexpr QueueShares queues = {0.73, 0.33};
constexpr double percents[] = {0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};

std::string device_of(const BenchOptions& options) {
  return options.device == "auto" ? "cuda:0" : options.device;
}

// As the paper's: all pipelines at the same time points.
BenchOptions at_once(const BenchOptions& options) {
  BenchOptions with = options;
  with.stagger = "off";
  return with;
}

// Throughput by pipelines: a lane is a Collector and a Forwarder on one core.
Expected<void> figures_9_and_11(const BenchOptions& options) {
  struct Set {
    const char* name;
    HeldCase one;
  };
  const Set sets[] = {{"set A; cycle 200 us", {"1370", 5, 200, 4, 8, queues}},
                      {"set B; cycle 200 us", {"rtp", 5, 200, 4, 8, queues}},
                      {"set A; cycle 100 us", {"1370", 1, 100, 3, 5, {0.71, 0.33}}}};
  for (const Set& set : sets) {
    for (const unsigned lanes : {1U, 2U, 4U, 8U, default_lanes(options)}) {
      BenchOptions with = at_once(options);
      with.lanes = std::min(lanes, default_lanes(options));
      const auto bed = MediaBed::make(with, set.one, device_of(options), link_gbytes);
      if (auto ok = lanes == 1 ? bed->verify() : Expected<void>{}; !ok) return ok;
      for (const auto& [mode, name] :
           {std::pair{engine::Mode::collector_only, "collector-only"}, std::pair{engine::Mode::zero_load, "zero-load"},
            std::pair{engine::Mode::full, "full-load"}}) {
        const auto outcome = bed->measure(mode, options.seconds, 1);
        if (!outcome) return tl::unexpected(outcome.error());
        add_point(options, {"figures 9 and 11", fmt::format("{}; {}", set.name, name), "pipelines",
                            static_cast<double>(with.lanes), "Gbit/s", 8 * outcome->gbytes()});
      }
    }
  }
  return {};
}

// By cycle at one speed (figure 12), and by speed at one cycle (13): the same measurements. Every frame is let in, and
// the deadline is the bound.
Expected<void> figures_12_and_13(const BenchOptions& options) {
  double saturated = 0;
  for (const double cycle_us : {100.0, 200.0, 400.0, 800.0}) {
    constexpr unsigned overlap = 4;
    BenchOptions with = at_once(options);
    with.admission = "all";
    const auto bed =
        MediaBed::make(with, {"1370", (overlap + 2.2) * cycle_us / 1e3 + 0.1, cycle_us, overlap, 8, queues},
                       device_of(options), link_gbytes);
    bed->rig.engine.mode = engine::Mode::full;
    auto rig = Rig::make(bed->rig);
    if (!rig) return tl::unexpected(rig.error());
    const Outcome full = (*rig)->measure(0.3, options.seconds);
    saturated = saturated == 0 ? full.mpps() : saturated;
    for (const double share : {0.2, 0.5, 0.8}) {
      (*rig)->set_rate(saturated * 1e6 * share);
      (*rig)->measure(0.3, 0);
      const engine::HistogramSnapshot before = (*rig)->engine().stats().latency;
      const Outcome outcome = (*rig)->measure(0, options.seconds * 3);
      const engine::HistogramSnapshot latency = (*rig)->engine().stats().latency.since(before);
      const std::string series = fmt::format("cycle {:.0f} us; {:.0f} Gbit/s", cycle_us, 8 * outcome.gbytes());
      for (const double percent : percents) {
        add_point(options,
                  {"figures 12 and 13", series, "latency (us)",
                   static_cast<double>(latency.percentile(percent / 100)) / (*rig)->engine().tsc_per_ns() / 1e3,
                   "% of packets", percent});
      }
    }
    if (auto ok = bed->finish(**rig); !ok) return ok;
  }
  return {};
}

}  // namespace

Expected<void> engine_figures(const BenchOptions& options) {
  auto ok = figures_9_and_11(options);
  return ok ? figures_12_and_13(options) : ok;
}

}  // namespace sluice::cli::bench
