#include <rte_malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/link_rows.h"
#include "bench/noise.h"
#include "bench/progress.h"
#include "bench/rig.h"
#include "device/gpu.h"
#include "device/link_jitter.h"
#include "device/name.h"

namespace sluice::cli::bench {
namespace {

constexpr std::size_t probe_bytes = 256 << 20;
constexpr double noise_seconds = 2;
constexpr unsigned probe_tries = 3;
constexpr unsigned jitter_streams = 8;

struct Freed {
  void operator()(void* memory) const { rte_free(memory); }
};

// The GPU, and the memory that frames lie in: its pages decide what the copy engine reaches. It is unpinned before it
// is freed.
struct Bed {
  std::unique_ptr<void, Freed> memory;
  std::unique_ptr<device::Gpu> gpu;

  static Expected<Bed> make(const BenchOptions& options, unsigned streams) {
    const int index = device::gpu_index(options.device).value_or(0);
    Bed bed;
    bed.memory.reset(rte_malloc("link-probe", probe_bytes, 4096));
    auto gpu = device::Gpu::open(index, streams);
    if (!gpu) {
      return tl::unexpected(gpu.error());
    }
    bed.gpu = std::move(*gpu);
    if (bed.memory != nullptr) {
      if (auto pinned = bed.gpu->register_host(bed.memory.get(), probe_bytes); !pinned) {
        return tl::unexpected(pinned.error());
      }
    }
    return bed;
  }
};

// How steady the link is at loads that benches hold, with nothing of the engine in the way.
Expected<void> print_jitter(const BenchOptions& options, const device::LinkCeilings& ceilings) {
  const Progress progress("measuring how steady the link is", 3 * options.seconds);
  auto bed = Bed::make(options, jitter_streams);
  if (!bed) {
    return tl::unexpected(bed.error());
  }
  if (bed->memory == nullptr) {
    return make_error("no memory for the link's jitter");
  }
  using Way = device::LinkJitterOptions;
  const std::pair<Way::Way, double> ways[] = {{Way::both_ways, 0.75 * ceilings.large.both},
                                              {Way::up, 0.85 * ceilings.large.up},
                                              {Way::reads, 0.85 * ceilings.large.up}};
  for (const auto& [way, gbytes] : ways) {
    const device::LinkJitterOptions one{way, gbytes, options.seconds, bed->memory.get(), probe_bytes};
    const auto jitter = device::measure_jitter(*bed->gpu, one);
    if (!jitter) {
      return tl::unexpected(jitter.error());
    }
    std::printf("%s\n", device::jitter_text(one, *jitter).c_str());
    std::fflush(stdout);
  }
  return {};
}

// Other guests share the host's memory: the best of `tries` more short ones counts.
void probe_more(Bed& bed, const device::LinkProbeOptions& options, unsigned tries, device::LinkCeilings& best) {
  device::LinkProbeOptions quick = options;
  quick.quick = true;
  for (unsigned i = 0; i < tries; ++i) {
    if (const auto next = device::probe_link(*bed.gpu, quick)) {
      best.large.up = std::max(best.large.up, next->large.up);
      best.large.down = std::max(best.large.down, next->large.down);
      best.large.both = std::max(best.large.both, next->large.both);
    }
  }
}

device::LinkProbeOptions probe_options(const Bed& bed, bool quick) {
  device::LinkProbeOptions probe;
  probe.quick = quick;
  probe.memory = bed.memory.get();
  probe.bytes = probe_bytes;
  return probe;
}

}  // namespace

Expected<void> probe_again(const BenchOptions& options, device::LinkCeilings& best) {
  const Progress progress("measuring the link again");
  auto bed = Bed::make(options, 1);
  if (!bed) {
    return tl::unexpected(bed.error());
  }
  probe_more(*bed, probe_options(*bed, true), probe_tries, best);
  return {};
}

Expected<device::LinkCeilings> print_ceilings(const BenchOptions& options, bool quick) {
  const Progress progress("measuring this machine's ceilings");
  const unsigned cores = default_lanes(options);
  const Noise noise = measure_noise(cores, noise_seconds);
  std::printf(
      "noise: %u cores that only read the clock for %.0f s were kept from it for %.0f us at worst, %lu times over 100 "
      "us, %.3f %% of the time over 10 us; %lu preemptions by this kernel, %.0f ms stolen by the hypervisor\n",
      cores, noise_seconds, noise.worst_us, noise.over_100_us, 100 * noise.stall_share, noise.preemptions,
      noise.stolen_ms);
  auto bed = Bed::make(options, 1);
  if (!bed) {
    return tl::unexpected(bed.error());
  }
  const device::LinkProbeOptions probe = probe_options(*bed, quick);
  auto ceilings = device::probe_link(*bed->gpu, probe);
  if (ceilings) {
    probe_more(*bed, probe, probe_tries - 1, *ceilings);
    std::printf("%s\n", device::link_table(bed->gpu->info(), *ceilings).c_str());
    std::fflush(stdout);
  }
  return ceilings;
}

int bench_link(const BenchOptions& options) {
  if (auto eal = start_bench_eal(1ULL << 30); !eal) {
    std::fprintf(stderr, "bench link: %s\n", eal.error().message.c_str());
    return 1;
  }
  const auto ceilings = print_ceilings(options, false);
  if (!ceilings) {
    std::fprintf(stderr, "bench link: %s\n", ceilings.error().message.c_str());
    return 1;
  }
  if (auto steady = print_jitter(options, *ceilings); !steady) {
    std::fprintf(stderr, "bench link: %s\n", steady.error().message.c_str());
    return 1;
  }
  for (const auto& [label, outcome] : link_rows(*ceilings)) {
    append_csv(options, "link", label, outcome, {});
  }
  return 0;
}

}  // namespace sluice::cli::bench
