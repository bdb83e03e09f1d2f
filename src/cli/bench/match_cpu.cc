#include "cli/bench/match_cpu.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/machine.h"

namespace sluice::cli::bench {

Outcome scan_on_all_cores(const match::CpuMatcher& matcher, const MatchFrames& frames, double seconds) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int> cores = allowed_cores();
  std::atomic<std::uint64_t> all_frames{0}, all_bytes{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (std::size_t c = 0; c < cores.size(); ++c) {
    threads.emplace_back([&, c] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[c], &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      match::CpuMatcher::Scratch scratch(matcher);
      const auto share = static_cast<std::uint32_t>(frames.count() / cores.size());
      const auto first = static_cast<std::uint32_t>(c) * share;
      std::array<std::uint32_t, match::max_hits> found;
      std::uint64_t count = 0, bytes = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        for (std::uint32_t i = first; i < first + share && !stop.load(std::memory_order_relaxed); ++i) {
          matcher.match(scratch, frames.payload(i), 0, found.data(), found.size());
          ++count;
          bytes += frames.frame(i).size();
        }
      }
      all_frames += count;
      all_bytes += bytes;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  Outcome out;
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.frames = all_frames;
  out.bytes = all_bytes;
  return out;
}

}  // namespace sluice::cli::bench
