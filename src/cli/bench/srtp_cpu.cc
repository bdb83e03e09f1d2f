#include "cli/bench/srtp_cpu.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "crypto/cpu.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t burst = 128;

struct Sum {
  std::atomic<std::uint64_t> packets{0}, bytes{0};
};

void seal_share(crypto::Cpu& cpu, SrtpPackets& packets, std::uint32_t first, std::uint32_t share,
                const std::atomic<bool>& stop, Sum& sum) {
  std::vector<crypto::Verdict> verdicts(burst);
  std::uint64_t count = 0, bytes = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    for (std::uint32_t at = 0; at < share && !stop.load(std::memory_order_relaxed); at += burst) {
      const std::uint32_t now = std::min(burst, share - at);
      cpu.run(packets.keys(), packets.jobs().subspan(first + at, now), std::span(verdicts).first(now));
      count += now;
      bytes += packets.bytes(first + at, now);
    }
  }
  sum.packets += count;
  sum.bytes += bytes;
}

}  // namespace

Expected<Outcome> seal_on_all_cores(SrtpPackets& packets, double seconds) {
  using Clock = std::chrono::steady_clock;
  packets.seal_next();
  const std::vector<int> cores = allowed_cores();
  std::vector<crypto::Cpu> cpus;
  for (std::size_t c = 0; c < cores.size(); ++c) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) {
      return tl::unexpected(cpu.error());
    }
    cpus.push_back(std::move(*cpu));
  }
  Sum sum;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto share = static_cast<std::uint32_t>(packets.count() / cores.size());
  const auto begin = Clock::now();
  for (std::size_t c = 0; c < cores.size(); ++c) {
    threads.emplace_back([&, c] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[c], &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      seal_share(cpus[c], packets, static_cast<std::uint32_t>(c) * share, share, stop, sum);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  Outcome out;
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.frames = sum.packets;
  out.bytes = sum.bytes;
  return out;
}

}  // namespace sluice::cli::bench
