// sluice bench srtp: RTP packets sealed and opened on the GPU as they come over the link, both ways at once, beside
// intel-ipsec-mb on all cores with the same packets and keys.
#include <rte_cycles.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/machine.h"
#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/gpu_only.h"
#include "bench/progress.h"
#include "bench/rig.h"
#include "bench/rounds.h"
#include "bench/srtp_bed.h"
#include "bench/srtp_cpu.h"
#include "bench/srtp_libsrtp.h"
#include "bench/srtp_packets.h"
#include "crypto/gpu_crypto.h"
#include "engine/histogram.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t packets_in_all = 1U << 18;
constexpr unsigned default_batch = 8192, default_streams = 4;

// One case on its way: batches of its packets in turn, on all streams in turn, one under way on each.
class Drive {
 public:
  Drive(device::Gpu& gpu, crypto::GpuCrypto& crypto, SrtpPackets& packets, unsigned batch, bool alone)
      : gpu_(gpu),
        crypto_(crypto),
        packets_(packets),
        batch_(batch),
        begun_(alone ? 1 : gpu.stream_count()),
        hz_(rte_get_tsc_hz()) {}

  // All packets once. The streams are left full.
  Expected<void> pass() {
    for (std::uint32_t first = 0; first < packets_.count(); first += batch_) {
      const std::uint32_t count = std::min(batch_, packets_.count() - first);
      if (auto ok = next(first, count); !ok) {
        return ok;
      }
      outcome_.frames += count;
      outcome_.bytes += packets_.bytes(first, count);
    }
    return {};
  }

  Expected<void> drain() {
    for (unsigned s = 0; s < begun_.size(); ++s) {
      if (auto ok = ended(s); !ok) {
        return ok;
      }
    }
    return {};
  }

  Outcome outcome(double seconds) const {
    Outcome out = outcome_;
    out.seconds = seconds;
    engine::HistogramSnapshot nanoseconds;
    nanoseconds.add(latency_);
    out.p50_us = static_cast<double>(nanoseconds.percentile(0.5)) / 1e3;
    out.p99_us = static_cast<double>(nanoseconds.percentile(0.99)) / 1e3;
    out.max_us = static_cast<double>(nanoseconds.max()) / 1e3;
    return out;
  }

 private:
  Expected<void> next(std::uint32_t first, std::uint32_t count) {
    const auto s = static_cast<unsigned>(turn_++ % begun_.size());
    if (auto ok = ended(s); !ok) {
      return ok;
    }
    begun_[s] = rte_rdtsc();
    if (auto ok = crypto_.run(packets_.batch(first, count), gpu_.stream(s)); !ok) {
      return ok;
    }
    return gpu_.stream(s).mark();
  }

  Expected<void> ended(unsigned s) {
    if (begun_[s] == 0) {
      return {};
    }
    if (auto ok = wait_for(gpu_, gpu_.stream(s)); !ok) {
      return ok;
    }
    latency_.add((rte_rdtsc() - begun_[s]) * 1'000'000'000 / hz_, 1);
    begun_[s] = 0;
    return {};
  }

  device::Gpu& gpu_;
  crypto::GpuCrypto& crypto_;
  SrtpPackets& packets_;
  const std::uint32_t batch_;
  std::vector<std::uint64_t> begun_;  // by stream; 0: nothing is under way
  const std::uint64_t hz_;
  std::uint64_t turn_ = 0;
  engine::Histogram latency_;
  Outcome outcome_;
};

double seconds_since(std::uint64_t begin) {
  return static_cast<double>(rte_rdtsc() - begin) / static_cast<double>(rte_get_tsc_hz());
}

struct SrtpCase {
  const char* suite;
  std::uint32_t streams;
  std::string mix;
  crypto::GpuPath path;
  double goal;  // share of the both-ways ceiling, sealed; 0: none
};

struct Measured {
  Outcome sealed, opened, alone, cpu;
  Expected<Outcome> libsrtp = make_error("not measured");
};

class Measurement {
 public:
  Measurement(device::Gpu& gpu, crypto::GpuCrypto& crypto, SrtpPackets& packets, crypto::Cpu& cpu, unsigned batch)
      : gpu_(gpu), crypto_(crypto), packets_(packets), cpu_(cpu), batch_(batch) {}

  Expected<Measured> run(double seconds) {
    Measured out;
    if (auto ok = verify(); !ok) {
      return tl::unexpected(ok.error());
    }
    if (auto ok = keep(in_rounds(seconds, [&](double each) { return seal(each, false); }), out.sealed); !ok) {
      return tl::unexpected(ok.error());
    }
    if (auto ok = keep(seal(seconds / 4, true), out.alone); !ok) {
      return tl::unexpected(ok.error());
    }
    if (auto ok = keep(in_rounds(seconds, [&](double each) { return open(each); }), out.opened); !ok) {
      return tl::unexpected(ok.error());
    }
    const auto on_cores = [&](double each) { return seal_on_all_cores(packets_, each); };
    if (auto ok = keep(in_rounds(seconds, on_cores), out.cpu); !ok) {
      return tl::unexpected(ok.error());
    }
    return out;
  }

 private:
  // What the GPU seals the CPU opens, to the bytes that there were; what it has sealed again the GPU opens itself, and
  // what all cores have sealed, too.
  Expected<void> verify() {
    packets_.seal_next();
    if (auto ok = once(); !ok) {
      return ok;
    }
    if (auto ok = packets_.open_by_cpu(cpu_, true); !ok) {
      return ok;
    }
    if (auto ok = once(); !ok) {
      return ok;
    }
    if (auto ok = open_once(); !ok) {
      return ok;
    }
    if (auto ok = seal_once_on_all_cores(packets_); !ok) {
      return ok;
    }
    return open_once();
  }

  Expected<void> open_once() {
    packets_.open_next();
    auto ok = once();
    return ok ? packets_.all_clear() : ok;
  }

  Expected<void> once() {
    Drive drive(gpu_, crypto_, packets_, batch_, false);
    packets_.forget_verdicts();
    auto ok = drive.pass();
    ok = ok ? drive.drain() : ok;
    return ok ? packets_.all_done() : ok;
  }

  // Sealed again and again, also what is sealed already: a packet's cost is the same. At the end the CPU looks at each
  // tag.
  Expected<Outcome> seal(double seconds, bool alone) {
    packets_.seal_next();
    packets_.forget_verdicts();
    Drive drive(gpu_, crypto_, packets_, batch_, alone);
    const std::uint64_t begin = rte_rdtsc();
    Expected<void> ok;
    do {
      ok = drive.pass();
    } while (ok && seconds_since(begin) < seconds);
    ok = ok ? drive.drain() : ok;
    const double taken = seconds_since(begin);
    ok = ok ? packets_.all_done() : ok;
    ok = ok ? packets_.open_by_cpu(cpu_, false) : ok;
    if (!ok) {
      return tl::unexpected(ok.error());
    }
    return drive.outcome(taken);
  }

  // A packet can be opened once: all are opened and sealed by turns, and only opening is timed, to its end.
  Expected<Outcome> open(double seconds) {
    Drive drive(gpu_, crypto_, packets_, batch_, false);
    double taken = 0;
    while (taken < seconds / 2) {
      packets_.seal_next();
      if (auto ok = once(); !ok) {
        return tl::unexpected(ok.error());
      }
      packets_.open_next();
      packets_.forget_verdicts();
      const std::uint64_t begin = rte_rdtsc();
      auto ok = drive.pass();
      ok = ok ? drive.drain() : ok;
      taken += seconds_since(begin);
      ok = ok ? packets_.all_done() : ok;
      if (!ok) {
        return tl::unexpected(ok.error());
      }
    }
    return drive.outcome(taken);
  }

  device::Gpu& gpu_;
  crypto::GpuCrypto& crypto_;
  SrtpPackets& packets_;
  crypto::Cpu& cpu_;
  const unsigned batch_;
};

const char* name_of(crypto::GpuPath path) {
  return path == crypto::GpuPath::direct ? "direct" : path == crypto::GpuPath::copy ? "copy" : "auto";
}

void report(const BenchOptions& options, const SrtpCase& one, const Measured& all, double ceiling, unsigned batch,
            Goals& goals) {
  const std::string label = fmt::format("{} {} B {} streams {}", one.suite, one.mix, one.streams, name_of(one.path));
  const double sealed = all.sealed.gbytes() / ceiling, opened = all.opened.gbytes() / ceiling;
  std::printf(
      "RESULT srtp %s: sealed %.1f Mpps, %.2f GB/s each way = %.1f %% of the ceiling of %.1f; batches of %u: p50 %.0f "
      "p99 %.0f max %.0f us, one alone %.0f, %.0f, %.0f us; opened %.1f Mpps, %.2f GB/s = %.1f %%; intel-ipsec-mb on "
      "%zu cores seals %.1f Gbps, the GPU is %.1f times as fast\n",
      label.c_str(), all.sealed.mpps(), all.sealed.gbytes(), 100 * sealed, ceiling, batch, all.sealed.p50_us,
      all.sealed.p99_us, all.sealed.max_us, all.alone.p50_us, all.alone.p99_us, all.alone.max_us, all.opened.mpps(),
      all.opened.gbytes(), 100 * opened, allowed_cores().size(), 8 * all.cpu.gbytes(),
      all.sealed.gbytes() / all.cpu.gbytes());
  const std::string setting = fmt::format("batches of {}", batch);
  append_csv(options, "srtp", label + " sealed", all.sealed,
             {.share = sealed, .goal = one.goal, .ceiling_gbytes = ceiling, .setting = setting});
  append_csv(options, "srtp", label + " opened", all.opened,
             {.share = opened, .ceiling_gbytes = ceiling, .setting = setting});
  append_csv(options, "srtp", label + " one batch", all.alone, {.ceiling_gbytes = ceiling, .setting = setting});
  append_csv(options, "srtp", label + " intel-ipsec-mb", all.cpu, {.setting = "bursts of 128"});
  if (all.libsrtp) {
    std::printf("RESULT srtp %s: libsrtp on %zu cores protects %.1f Gbps, the GPU is %.1f times as fast\n",
                label.c_str(), allowed_cores().size(), 8 * all.libsrtp->gbytes(),
                all.sealed.gbytes() / all.libsrtp->gbytes());
    append_csv(options, "srtp", label + " libsrtp", *all.libsrtp,
               {.setting = "a process for each core and a session for each stream"});
  } else {
    std::printf("  libsrtp: %s\n", all.libsrtp.error().message.c_str());
  }
  if (one.goal > 0) {
    goals.at_least(label + " of the ceiling", 100 * sealed, 100 * one.goal, "%");
  }
}

Expected<void> run_case(const BenchOptions& options, SrtpBed& bed, crypto::Cpu& cpu, const SrtpCase& one,
                        double ceiling, Goals& goals) {
  const Progress progress(std::string("sealing and opening by ") + one.suite);
  const auto suites = srtp_suites();
  const auto suite = std::find_if(suites.begin(), suites.end(),
                                  [&](const SrtpSuite& s) { return std::string_view(s.name) == one.suite; });
  auto packets = SrtpPackets::make(*bed.gpu, bed.memory.get(), packets_in_all, one.mix, *suite, one.streams);
  if (!packets) {
    return tl::unexpected(packets.error());
  }
  const unsigned batch = options.batch != 0 ? options.batch : default_batch;
  auto crypto = crypto::GpuCrypto::create(
      *bed.gpu, packets->keys(), {.max_packets = batch, .max_packet_bytes = SrtpPackets::pitch, .path = one.path});
  if (!crypto) {
    return tl::unexpected(crypto.error());
  }
  auto measured = Measurement(*bed.gpu, **crypto, *packets, cpu, batch).run(options.seconds);
  if (!measured) {
    return tl::unexpected(measured.error());
  }
  measured->libsrtp = libsrtp_on_all_cores(*packets, *suite, one.streams, options.seconds);
  std::printf(
      "verified: the CPU opens what the GPU seals, and the GPU what it and all cores sealed, to the bytes there were, "
      "%u packets\n",
      packets->count());
  report(options, one, *measured, ceiling, batch, goals);
  return {};
}

std::vector<SrtpCase> cases_of(const BenchOptions& options) {
  using crypto::GpuPath;
  constexpr const char* usual = "AES_CM_128_HMAC_SHA1_80";
  if (!options.mix.empty()) {
    return {{usual, 1000, options.mix, GpuPath::automatic, 0},
            {usual, 1000, options.mix, GpuPath::copy, 0},
            {usual, 1000, options.mix, GpuPath::direct, 0}};
  }
  return {{usual, 1000, "1370", GpuPath::automatic, 0.90},
          {usual, 10'000, "1370", GpuPath::automatic, 0.90},
          {usual, 100'000, "1370", GpuPath::automatic, 0},
          {usual, 1000, "1370", GpuPath::direct, 0},
          {usual, 1000, "rtp", GpuPath::automatic, 0},
          {usual, 1000, "214", GpuPath::automatic, 0},
          {"AES_256_CM_HMAC_SHA1_80", 1000, "1370", GpuPath::automatic, 0},
          {"AEAD_AES_128_GCM", 1000, "1370", GpuPath::automatic, 0},
          {"AEAD_AES_256_GCM", 1000, "1370", GpuPath::automatic, 0}};
}

Expected<void> run_all(const BenchOptions& options, Goals& goals) {
  auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    return tl::unexpected(ceilings.error());
  }
  auto cpu = crypto::Cpu::make();
  if (!cpu) {
    return tl::unexpected(cpu.error());
  }
  for (const SrtpCase& one : cases_of(options)) {
    const unsigned streams = options.streams != 0 ? options.streams : default_streams;
    auto bed =
        SrtpBed::make(options, streams, packets_in_all);  // anew for each case: what it took from the GPU goes back
    if (!bed) {
      return tl::unexpected(bed.error());
    }
    if (auto ok = run_case(options, *bed, *cpu, one, ceilings->large.both, goals); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace

int bench_srtp(const BenchOptions& options) {
  return run_gpu_bench("srtp", SrtpBed::bytes(packets_in_all) + (std::size_t{512} << 20), options,
                       [&](Goals& goals) { return run_all(options, goals); });
}

}  // namespace sluice::cli::bench
