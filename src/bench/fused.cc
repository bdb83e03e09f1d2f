// sluice bench fused: classification, routing and inspection of a batch by a kernel each and by one kernel for all
// (function/fused/), on the same batches in pinned host memory; and what it saves to leave denied frames unread.
#include <rte_cycles.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/fused_bed.h"
#include "bench/goals.h"
#include "bench/gpu_only.h"
#include "bench/match_verify.h"
#include "bench/rig.h"
#include "bench/spread.h"
#include "engine/histogram.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned rounds = 3;

struct FusedCase {
  std::string mix;
  FusedParts parts;
  unsigned denied;        // percent
  double goal_share = 0;  // of the ceiling; 0: none
  double goal_mpps = 0;
  double goal_saved = 0;  // percent of the time of a batch alone

  std::string label() const {
    const char* const names[] = {"route", "route + inspect", "acl + route", "acl + route + inspect"};
    return fmt::format("{} {}{}", names[2 * parts.acl + parts.inspect], mix,
                       denied != 0 ? fmt::format(" with {} % denied", denied) : "");
  }
  unsigned kernels() const { return 1U + parts.acl + parts.inspect; }
};

// One way to run a case: the median of the rounds.
struct Way {
  Outcome full;  // all streams busy
  Spread mpps;
  double alone_us = 0;  // one batch at a time: the median batch of the median round
};

Expected<void> wait(device::Gpu& gpu, device::GpuStream& stream) {
  while (stream.pending_marks() > 0) {
    if (stream.poll() == device::MarkState::failed) {
      return make_error("the GPU failed: " + gpu.why());
    }
  }
  return {};
}

// Batches one after the other, on all streams in turn, one under way on each, until the time is over; `alone`: on one.
Expected<Outcome> run(FusedBed& bed, FusedParts parts, bool fused, double seconds, bool alone) {
  const unsigned streams = alone ? 1 : bed.gpu().stream_count();
  std::vector<std::uint64_t> begun(streams);
  engine::Histogram latency;
  Outcome out;
  const std::uint64_t begin = rte_rdtsc(), hz = rte_get_tsc_hz();
  const auto length = static_cast<std::uint64_t>(seconds * static_cast<double>(hz));
  const auto finish = [&](unsigned s) -> Expected<void> {
    if (begun[s] == 0) {
      return {};
    }
    auto ok = wait(bed.gpu(), bed.gpu().stream(s));
    latency.add((rte_rdtsc() - begun[s]) * 1'000'000'000 / hz, 1);
    begun[s] = 0;
    return ok;
  };
  Expected<void> ok;
  for (unsigned turn = 0; ok && (rte_rdtsc() - begin < length || turn < streams); ++turn) {
    const unsigned s = turn % streams, b = turn % bed.batches();
    ok = finish(s);
    begun[s] = rte_rdtsc();
    ok = ok ? bed.launch(b, parts, fused, bed.gpu().stream(s)) : ok;
    ok = ok ? bed.gpu().stream(s).mark() : ok;
    const std::uint32_t first = b * bed.batch(), count = std::min(bed.batch(), bed.frames().count() - first);
    out.frames += count;
    out.bytes += bed.frames().bytes(first, count);
  }
  for (unsigned s = 0; ok && s < streams; ++s) {
    ok = finish(s);
  }
  if (!ok) {
    return tl::unexpected(ok.error());
  }
  out.seconds = static_cast<double>(rte_rdtsc() - begin) / static_cast<double>(hz);
  engine::HistogramSnapshot nanoseconds;
  nanoseconds.add(latency);
  out.p50_us = static_cast<double>(nanoseconds.percentile(0.5)) / 1e3;
  out.p99_us = static_cast<double>(nanoseconds.percentile(0.99)) / 1e3;
  out.max_us = static_cast<double>(nanoseconds.max()) / 1e3;
  return out;
}

// Both ways in turn, so that what the machine does meanwhile meets both. ways[0]: a kernel each; ways[1]: one.
Expected<std::vector<Way>> measure(const BenchOptions& options, FusedBed& bed, FusedParts parts) {
  std::vector<Outcome> full[2];
  std::vector<double> mpps[2], alone[2];
  for (unsigned round = 0; round < rounds; ++round) {
    for (const bool fused : {false, true}) {
      auto all = run(bed, parts, fused, options.seconds / rounds, false);
      auto one = all ? run(bed, parts, fused, options.seconds / rounds / 4, true) : all;
      if (!one) {
        return tl::unexpected(one.error());
      }
      full[fused].push_back(*all);
      mpps[fused].push_back(all->mpps());
      alone[fused].push_back(one->p50_us);
    }
  }
  std::vector<Way> ways(2);
  for (const bool fused : {false, true}) {
    ways[fused].mpps = spread_of(mpps[fused]);
    ways[fused].full = full[fused][ways[fused].mpps.at];
    ways[fused].alone_us = spread_of(alone[fused]).median;
  }
  return ways;
}

void report(const BenchOptions& options, const FusedCase& one, const FusedBed& bed, const Way& way, bool fused,
            double ceiling) {
  const std::string label = one.label() + (fused                ? " one kernel"
                                           : one.kernels() == 2 ? " two kernels"
                                                                : " three kernels");
  const double share = one.parts.inspect ? way.full.gbytes() / ceiling : 0;
  const double batch_us = way.full.seconds * 1e6 / (static_cast<double>(way.full.frames) / bed.batch());
  std::printf(
      "RESULT fused %-60s %7.1f Mpps (%.1f to %.1f), %.1f us a batch; p50 %.0f p99 %.0f max %.0f us, one alone "
      "%.1f us",
      label.c_str(), way.full.mpps(), way.mpps.low, way.mpps.high, batch_us, way.full.p50_us, way.full.p99_us,
      way.full.max_us, way.alone_us);
  if (share > 0) {
    std::printf("; %.2f GB/s of frames = %.1f %% of the ceiling of %.1f", way.full.gbytes(), 100 * share, ceiling);
  }
  std::printf("\n");
  append_csv(options, "fused", label, way.full,
             {.share = share,
              .goal = fused ? one.goal_share : 0,
              .ceiling_gbytes = one.parts.inspect ? ceiling : 0,
              .setting = fmt::format("{}; alone {:.1f} us", bed.about(), way.alone_us)});
}

Expected<std::vector<Way>> run_case(const BenchOptions& options, FusedBed& bed, const FusedCase& one,
                                    device::LinkCeilings& ceilings, Goals& goals) {
  auto ok = bed.load(one.mix);
  ok = ok ? bed.deny(one.denied) : ok;
  if (!ok) {
    return tl::unexpected(ok.error());
  }
  std::uint64_t keys = 0;
  for (const bool fused : {false, true}) {
    const auto verified = bed.verify(one.parts, fused);
    if (!verified) {
      return tl::unexpected(Error{one.label() + (fused ? ", one kernel: " : ": ") + verified.error().message});
    }
    keys = *verified;
  }
  std::printf("verified: %s: %u frames, %.1f %% denied, %lu keys; %.1f %% hold more than %u, and are searched whole\n",
              one.label().c_str(), bed.frames().count(), 100 * bed.denied_share(), keys,
              one.parts.inspect ? 100 * share_of_many(bed.frames()) : 0, match::max_hits);
  auto ways = measure(options, bed, one.parts);
  if (!ways) {
    return ways;
  }
  if (auto probed = probe_again(options, ceilings); !probed) {
    return tl::unexpected(probed.error());
  }
  const double ceiling = ceilings.large.up;
  for (const bool fused : {false, true}) {
    report(options, one, bed, (*ways)[fused], fused, ceiling);
  }
  const Way &each = (*ways)[0], &together = (*ways)[1];
  const double saved = 100 * (1 - together.alone_us / each.alone_us);
  std::printf("fused %s: one kernel takes %.1f %% less time for a batch alone, and carries %.1f %% more\n",
              one.label().c_str(), saved, 100 * (together.mpps.median / each.mpps.median - 1));
  if (one.goal_share > 0) {
    goals.at_least(one.label() + " of the ceiling", 100 * together.full.gbytes() / ceiling, 100 * one.goal_share, "%");
  }
  if (one.goal_mpps > 0) {
    goals.at_least(one.label(), together.full.mpps(), one.goal_mpps, "Mpps");
  }
  if (one.goal_saved > 0) {
    goals.at_least(one.label() + " time saved", saved, one.goal_saved, "%");
  }
  return ways;
}

std::vector<FusedCase> cases_of(const BenchOptions& options) {
  constexpr FusedParts all{true, true}, no_acl{false, true}, no_inspect{true, false};
  if (!options.mix.empty()) {
    return {{options.mix, all, 0}, {options.mix, all, 30}, {options.mix, no_acl, 0}, {options.mix, no_inspect, 0}};
  }
  return {{.mix = "heavy-tail", .parts = all, .denied = 0, .goal_share = 0.85, .goal_saved = 8},
          {.mix = "heavy-tail", .parts = all, .denied = 30},
          {.mix = "heavy-tail", .parts = no_acl, .denied = 0},
          {.mix = "1500", .parts = all, .denied = 0, .goal_share = 0.90},
          {.mix = "1500", .parts = all, .denied = 30},
          {.mix = "64", .parts = all, .denied = 0, .goal_mpps = 400},
          {.mix = "64", .parts = all, .denied = 30},
          {.mix = "64", .parts = no_inspect, .denied = 0, .goal_saved = 36},
          {.mix = "64", .parts = no_inspect, .denied = 30}};
}

Expected<void> run_all(const BenchOptions& options, Goals& goals) {
  auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    return tl::unexpected(ceilings.error());
  }
  auto bed = FusedBed::make(options);
  if (!bed) {
    return tl::unexpected(bed.error());
  }
  std::printf("%s\n", (*bed)->about().c_str());
  std::optional<double> with_acl;  // Mpps of the case before, with all parts and nothing denied
  for (const FusedCase& one : cases_of(options)) {
    const auto ways = run_case(options, **bed, one, *ceilings, goals);
    if (!ways) {
      return tl::unexpected(ways.error());
    }
    const double mpps = (*ways)[1].mpps.median;
    if (one.parts.acl && one.parts.inspect && one.denied == 0) {
      with_acl = mpps;
    }
    if (!one.parts.acl && with_acl) {
      goals.at_most("acl's cost in the fused kernel, " + one.mix, 100 * (1 - *with_acl / mpps), 5, "% of the rate");
    }
  }
  return {};
}

}  // namespace

int bench_fused(const BenchOptions& options) {
  return run_gpu_bench("fused", FusedBed::memory_needed(), options,
                       [&](Goals& goals) { return run_all(options, goals); });
}

}  // namespace sluice::cli::bench
