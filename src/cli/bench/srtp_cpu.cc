#include "cli/bench/srtp_cpu.h"

#include <algorithm>
#include <vector>

#include "base/machine.h"
#include "cli/bench/every_core.h"
#include "crypto/cpu.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t burst = 128;

CoreShare seal_share(crypto::Cpu& cpu, SrtpPackets& packets, std::uint32_t first, std::uint32_t share,
                     const std::atomic<bool>& stop) {
  std::vector<crypto::Verdict> verdicts(burst);
  CoreShare done;
  while (!stop.load(std::memory_order_relaxed)) {
    for (std::uint32_t at = 0; at < share && !stop.load(std::memory_order_relaxed); at += burst) {
      const std::uint32_t now = std::min(burst, share - at);
      cpu.run(packets.keys(), packets.jobs().subspan(first + at, now), std::span(verdicts).first(now));
      done.frames += now;
      done.bytes += packets.bytes(first + at, now);
    }
  }
  return done;
}

}  // namespace

Expected<Outcome> seal_on_all_cores(SrtpPackets& packets, double seconds) {
  packets.seal_next();
  const std::size_t cores = allowed_cores().size();
  std::vector<crypto::Cpu> cpus;
  for (std::size_t c = 0; c < cores; ++c) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) {
      return tl::unexpected(cpu.error());
    }
    cpus.push_back(std::move(*cpu));
  }
  const auto share = static_cast<std::uint32_t>(packets.count() / cores);
  return on_every_core(seconds, [&](std::size_t core, const std::atomic<bool>& stop) {
    return seal_share(cpus[core], packets, static_cast<std::uint32_t>(core) * share, share, stop);
  });
}

}  // namespace sluice::cli::bench
