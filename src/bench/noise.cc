#include "bench/noise.h"

#include <rte_cycles.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "engine/placement.h"

namespace sluice::cli::bench {
namespace {

// The eighth figure of /proc/stat's first line; 0 where there is none.
double stolen_ms() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double ticks = 0;
  stat >> cpu;
  for (int i = 0; i < 8; ++i) {
    stat >> ticks;
  }
  return stat ? ticks * 1000 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

std::uint64_t preemptions_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace

Noise measure_noise(unsigned cores, double seconds) {
  std::vector<int> chosen = allowed_cores();
  chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(cores, chosen.size())));
  const double ticks_per_us = static_cast<double>(rte_get_tsc_hz()) / 1e6;
  const auto length = static_cast<std::uint64_t>(seconds * 1e6 * ticks_per_us);
  std::vector<Noise> of(chosen.size());
  std::vector<std::thread> threads;
  const double stolen_before = stolen_ms();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    threads.emplace_back([&, i] {
      engine::pin_this_thread(chosen[i], "sluice-noise");
      const std::uint64_t preempted = preemptions_of_this_thread();
      std::uint64_t last = rte_rdtsc();
      double stall_us = 0;
      for (const std::uint64_t end = last + length; last < end;) {
        const std::uint64_t now = rte_rdtsc();
        const double gap_us = static_cast<double>(now - last) / ticks_per_us;
        of[i].worst_us = std::max(of[i].worst_us, gap_us);
        of[i].over_100_us += gap_us > 100;
        stall_us += gap_us > 10 ? gap_us : 0;
        last = now;
      }
      of[i].stall_share = stall_us / (seconds * 1e6);
      of[i].preemptions = preemptions_of_this_thread() - preempted;
    });
  }
  Noise all;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    all.worst_us = std::max(all.worst_us, of[i].worst_us);
    all.over_100_us += of[i].over_100_us;
    all.stall_share += of[i].stall_share / static_cast<double>(threads.size());
    all.preemptions += of[i].preemptions;
  }
  all.stolen_ms = stolen_ms() - stolen_before;
  return all;
}

}  // namespace sluice::cli::bench
