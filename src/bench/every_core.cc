#include "bench/every_core.h"

#include <pthread.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/machine.h"

namespace sluice::cli::bench {

Outcome on_every_core(double seconds,
                      const std::function<CoreShare(std::size_t core, const std::atomic<bool>& stop)>& work) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int> cores = allowed_cores();
  std::atomic<std::uint64_t> frames{0}, bytes{0};
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t c = 0; c < cores.size(); ++c) {
    threads.emplace_back([&, c] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<unsigned>(cores[c]), &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      ++ready;
      while (ready < cores.size()) {
        std::this_thread::yield();
      }
      const CoreShare share = work(c, stop);
      frames += share.frames;
      bytes += share.bytes;
    });
  }
  while (ready < cores.size()) {
    std::this_thread::yield();
  }
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  Outcome out;
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.frames = frames;
  out.bytes = bytes;
  return out;
}

}  // namespace sluice::cli::bench
