#include "bench/srtp_cpu.h"

#include <algorithm>
#include <vector>

#include "base/machine.h"
#include "bench/every_core.h"
#include "crypto/cpu.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t burst = 128;

// The packets of one core, and what computes them there.
class Share {
 public:
  Share(crypto::Cpu& cpu, SrtpPackets& packets, std::size_t core, std::size_t cores)
      : cpu_(cpu),
        packets_(packets),
        first_(static_cast<std::uint32_t>(packets.count() * core / cores)),
        end_(static_cast<std::uint32_t>(packets.count() * (core + 1) / cores)) {}

  // All of them, or until it is to stop.
  template <typename Stops>
  void seal(const Stops& stops, CoreShare& done) {
    for (std::uint32_t at = first_; at < end_ && !stops(); at += burst) {
      const std::uint32_t now = std::min(burst, end_ - at);
      cpu_.run(packets_.keys(), packets_.jobs().subspan(at, now), std::span(verdicts_).first(now));
      done.frames += now;
      done.bytes += packets_.bytes(at, now);
    }
  }

 private:
  crypto::Cpu& cpu_;
  SrtpPackets& packets_;
  std::uint32_t first_, end_;
  std::vector<crypto::Verdict> verdicts_ = std::vector<crypto::Verdict>(burst);
};

Expected<Outcome> on_all_cores(SrtpPackets& packets, double seconds, bool once) {
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
  return on_every_core(seconds, [&](std::size_t core, const std::atomic<bool>& stop) {
    Share share(cpus[core], packets, core, cores);
    CoreShare done;
    if (once) {
      share.seal([] { return false; }, done);
      return done;
    }
    const auto stops = [&stop] { return stop.load(std::memory_order_relaxed); };
    while (!stops()) {
      share.seal(stops, done);
    }
    return done;
  });
}

}  // namespace

Expected<Outcome> seal_on_all_cores(SrtpPackets& packets, double seconds) {
  return on_all_cores(packets, seconds, false);
}

Expected<void> seal_once_on_all_cores(SrtpPackets& packets) {
  const auto done = on_all_cores(packets, 0, true);
  return done ? Expected<void>() : tl::unexpected(done.error());
}

}  // namespace sluice::cli::bench
