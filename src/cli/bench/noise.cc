#include "cli/bench/noise.h"

#include <rte_cycles.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "engine/placement.h"

namespace sluice::cli::bench {

Noise measure_noise(unsigned cores, double seconds) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> chosen;
  for (int core = CPU_SETSIZE - 1; core >= 0 && chosen.size() < cores; --core) {
    if (CPU_ISSET(core, &set)) {
      chosen.push_back(core);
    }
  }
  const double ticks_per_us = static_cast<double>(rte_get_tsc_hz()) / 1e6;
  const auto length = static_cast<std::uint64_t>(seconds * 1e6 * ticks_per_us);
  std::vector<Noise> of(chosen.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    threads.emplace_back([&, i] {
      engine::pin_this_thread(chosen[i], "sluice-noise");
      std::uint64_t last = rte_rdtsc();
      for (const std::uint64_t end = last + length; last < end;) {
        const std::uint64_t now = rte_rdtsc();
        const double gap_us = static_cast<double>(now - last) / ticks_per_us;
        of[i].worst_us = std::max(of[i].worst_us, gap_us);
        of[i].over_100_us += gap_us > 100;
        last = now;
      }
    });
  }
  Noise all;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    all.worst_us = std::max(all.worst_us, of[i].worst_us);
    all.over_100_us += of[i].over_100_us;
  }
  return all;
}

}  // namespace sluice::cli::bench
