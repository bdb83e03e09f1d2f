// Batches of RTP on the GPU by themselves, as in the paper's sections 2.3, 8.1 and 8.5: a round gives each CUDA stream
// its packets at once and waits until the last one is done. Throughput is of frames, latency of the round.
#include <rte_cycles.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "bench/figures.h"
#include "bench/gpu_only.h"
#include "bench/progress.h"
#include "bench/srtp_bed.h"
#include "device/frame_copy.h"
#include "device/memory.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t most_packets = 1U << 17;
constexpr std::uint32_t most_in_parts = 8192;  // of a batch whose parts are timed
constexpr unsigned most_streams = 32;
constexpr std::uint32_t rtp_streams = 1000;
constexpr unsigned warm_rounds = 3;
constexpr const char* suite_name = "AES_CM_128_HMAC_SHA1_80";
constexpr std::uint32_t paper_sizes[] = {1370, 994, 618, 242};  // of frames: 7, 5, 3 and 1 MPEG packets

struct Round {
  double gbits = 0;  // of frames, a second
  double p50_us = 0, max_us = 0;
};

// One size of packets, verified.
class Batches {
 public:
  static Expected<Batches> make(const BenchOptions& options, std::uint32_t size) {
    Batches made;
    if (auto ok = keep(SrtpBed::make(options, most_streams, most_packets), made.bed_); !ok) {
      return tl::unexpected(ok.error());
    }
    const auto suites = srtp_suites();
    const auto suite = std::find_if(suites.begin(), suites.end(),
                                    [](const SrtpSuite& s) { return std::string_view(s.name) == suite_name; });
    auto packets = SrtpPackets::make(*made.bed_.gpu, made.bed_.memory.get(), most_packets, std::to_string(size), *suite,
                                     rtp_streams);
    if (!packets) {
      return tl::unexpected(packets.error());
    }
    made.packets_ = std::make_unique<SrtpPackets>(std::move(*packets));
    made.size_ = size;
    auto cpu = crypto::Cpu::make();
    if (!cpu) {
      return tl::unexpected(cpu.error());
    }
    made.cpu_.emplace(std::move(*cpu));
    for (auto& [path, most, crypto] : made.ways_) {
      auto way = crypto::GpuCrypto::create(*made.bed_.gpu, made.packets_->keys(),
                                           {.max_packets = most, .max_packet_bytes = size, .path = path});
      if (!way) {
        return tl::unexpected(way.error());
      }
      crypto = std::move(*way);
    }
    made.packets_->seal_next();
    if (auto ok = made.verify(true); !ok) {
      return tl::unexpected(ok.error());
    }
    return made;
  }

  std::uint32_t size() const { return size_; }

  // Each of `streams` CUDA streams seals `count` packets in a round.
  Expected<Round> rounds(unsigned streams, std::uint32_t count, double seconds) {
    return timed(std::uint64_t{streams} * count, seconds, [&]() -> Expected<void> {
      for (unsigned s = 0; s < streams; ++s) {
        if (auto ok = usual().run(packets_->batch(s * count, count), bed_.gpu->stream(s)); !ok) {
          return ok;
        }
        if (auto ok = bed_.gpu->stream(s).mark(); !ok) {
          return ok;
        }
      }
      for (unsigned s = 0; s < streams; ++s) {
        if (auto ok = wait_for(*bed_.gpu, bed_.gpu->stream(s)); !ok) {
          return ok;
        }
      }
      return {};
    });
  }

  struct Parts {
    Round up, kernel, down, whole;
  };
  // A batch of one stream: its way up, its kernel in device memory, its way down, one after the other, and all as the
  // engine does it.
  Expected<Parts> parts(std::uint32_t count, double seconds) {
    const crypto::GpuBatch batch = packets_->batch(0, count);
    std::vector<std::uint64_t> frame(count);
    std::vector<std::uint16_t> length(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      frame[i] = batch.jobs[i].data;
      length[i] = static_cast<std::uint16_t>(batch.jobs[i].cipher_offset + batch.jobs[i].cipher_length + tag_bytes);
    }
    device::FrameRun run = {};
    if (device::find_runs(frame.data(), length.data(), count, &run, 1, UINT64_MAX) != 1) {
      return make_error("the packets are no run");
    }
    const std::size_t pitch = device::staging_pitch(length[0]);
    if (!staging_) {
      if (auto ok = keep(bed_.gpu->allocate_device(most_in_parts * pitch), staging_); !ok) {
        return tl::unexpected(ok.error());
      }
      auto jobs = bed_.gpu->allocate_host(most_in_parts * sizeof(crypto::Job));
      if (!jobs) {
        return tl::unexpected(jobs.error());
      }
      staged_jobs_ = static_cast<crypto::Job*>(*jobs);
    }
    auto* const staging = staging_.as<std::byte>();
    const device::StagedFrames staged = device::staged_frames(run, staging, pitch);
    std::copy(batch.jobs, batch.jobs + count, staged_jobs_);
    for (std::uint32_t i = 0; i < count; ++i) {
      staged_jobs_[i].data = staged.address + static_cast<std::uint64_t>(static_cast<std::int64_t>(i) * staged.step);
    }
    device::GpuStream& stream = bed_.gpu->stream(0);
    const auto alone = [&](auto&& enqueue) {
      return timed(count, seconds, [&]() -> Expected<void> {
        auto ok = enqueue();
        ok = ok ? stream.mark() : ok;
        return ok ? wait_for(*bed_.gpu, stream) : ok;
      });
    };
    Parts out;
    const crypto::GpuBatch in_device_memory{staged_jobs_, batch.verdicts, count};
    auto ok = keep(alone([&] { return device::copy_up(run, staging, pitch, stream.raw()); }), out.up);
    ok = ok ? keep(alone([&] { return direct().run(in_device_memory, stream); }), out.kernel) : ok;
    ok = ok ? keep(alone([&] { return device::copy_down(run, staging, pitch, stream.raw()); }), out.down) : ok;
    ok = ok ? keep(alone([&] { return copied().run(batch, stream); }), out.whole) : ok;
    if (!ok) {
      return tl::unexpected(ok.error());
    }
    return out;
  }

  // Every packet sealed once more, and opened by the CPU; `clear`: to the bytes that there were.
  Expected<void> verify(bool clear) {
    packets_->forget_verdicts();
    auto ok = usual().run(packets_->batch(0, most_packets), bed_.gpu->stream(0));
    ok = ok ? bed_.gpu->stream(0).mark() : ok;
    ok = ok ? wait_for(*bed_.gpu, bed_.gpu->stream(0)) : ok;
    ok = ok ? packets_->all_done() : ok;
    return ok ? packets_->open_by_cpu(*cpu_, clear) : ok;
  }

 private:
  static constexpr std::uint16_t tag_bytes = 10;

  template <typename Work>
  Expected<Round> timed(std::uint64_t packets, double seconds, Work&& work) {
    const double hz = static_cast<double>(rte_get_tsc_hz());
    std::vector<double> taken;
    std::uint64_t begin = rte_rdtsc();
    for (unsigned round = 0; round < warm_rounds || static_cast<double>(rte_rdtsc() - begin) < seconds * hz; ++round) {
      const std::uint64_t from = rte_rdtsc();
      if (auto ok = work(); !ok) {
        return tl::unexpected(ok.error());
      }
      if (round >= warm_rounds) {
        taken.push_back(static_cast<double>(rte_rdtsc() - from) / hz * 1e6);
      } else {
        begin = rte_rdtsc();
      }
    }
    if (taken.empty()) {
      return make_error("no round ended in time: raise --seconds");
    }
    std::sort(taken.begin(), taken.end());
    Round out;
    out.p50_us = taken[taken.size() / 2];
    out.max_us = taken.back();
    out.gbits = 8e-3 * static_cast<double>(packets * size_) / out.p50_us;
    return out;
  }

  SrtpBed bed_;
  std::unique_ptr<SrtpPackets> packets_;
  std::optional<crypto::Cpu> cpu_;
  struct Way {
    crypto::GpuPath path;
    std::uint32_t most;
    std::unique_ptr<crypto::GpuCrypto> crypto;
  };
  crypto::GpuCrypto& usual() { return *ways_[0].crypto; }
  crypto::GpuCrypto& direct() { return *ways_[1].crypto; }
  crypto::GpuCrypto& copied() { return *ways_[2].crypto; }

  std::array<Way, 3> ways_{Way{crypto::GpuPath::automatic, most_packets, nullptr},
                           Way{crypto::GpuPath::direct, most_in_parts, nullptr},
                           Way{crypto::GpuPath::copy, most_in_parts, nullptr}};
  std::uint32_t size_ = 0;
  device::DeviceMemory staging_;
  crypto::Job* staged_jobs_ = nullptr;
};

// Packets that come in `cycle_ms` at a rate of frames.
std::uint32_t in_a_cycle(double gbits, double cycle_ms, std::uint32_t size) {
  return static_cast<std::uint32_t>(gbits * 1e6 * cycle_ms / 8 / size);
}

struct Speed {
  double gbits;
  std::vector<double> cycles_ms;
};

Expected<void> table_1(const BenchOptions& options, Batches& batches) {
  for (const unsigned streams : {1U, 2U, 4U, 8U}) {
    for (const std::uint32_t count : {256U, 1024U, 2048U, 3072U, 4096U, 16384U}) {
      const auto round = batches.rounds(streams, count, options.seconds);
      if (!round) {
        return tl::unexpected(round.error());
      }
      const std::string series = fmt::format("{} streams", streams);
      add_point(options, {"table 1", series, "packets a stream", double(count), "Gbit/s", round->gbits});
      add_point(options, {"table 1", series, "packets a stream", double(count), "latency (us)", round->p50_us});
      add_point(options, {"table 1", series, "packets a stream", double(count), "longest (us)", round->max_us});
    }
  }
  return {};
}

Expected<void> figure_6(const BenchOptions& options, Batches& batches) {
  for (const std::uint32_t batch : {1U << 13, 1U << 14, 1U << 15, 1U << 16, 1U << 17}) {
    for (unsigned streams = 1; streams <= most_streams; streams *= 2) {
      const auto round = batches.rounds(streams, batch / streams, options.seconds);
      if (!round) {
        return tl::unexpected(round.error());
      }
      add_point(options, {"figure 6", fmt::format("{} B; batch {}", batches.size(), batch), "streams", double(streams),
                          "Gbit/s", round->gbits});
    }
  }
  return {};
}

// The paper's 10 Gbit/s, and what this machine carries.
Expected<void> figure_7(const BenchOptions& options, Batches& batches) {
  for (const Speed& speed : {Speed{10, {10, 15, 25, 35, 45}}, Speed{300, {0.2, 0.4, 0.8, 1.6}}}) {
    for (const double cycle : speed.cycles_ms) {
      const std::uint32_t packets = in_a_cycle(speed.gbits, cycle, batches.size());
      if (packets > most_packets) {
        std::printf("  figure 7: %u B, %.0f Gbit/s, %.1f ms: %u packets, more than the %u there are: left out\n",
                    batches.size(), speed.gbits, cycle, packets, most_packets);
        continue;
      }
      for (const unsigned streams : {1U, 2U, 4U, 6U, 8U, 10U}) {
        const auto round = batches.rounds(streams, packets / streams, options.seconds);
        if (!round) {
          return tl::unexpected(round.error());
        }
        add_point(options,
                  {"figure 7", fmt::format("{} B; {} Gbit/s; {} streams", batches.size(), speed.gbits, streams),
                   "batching time (ms)", cycle, "longest (ms)", round->max_us / 1e3});
      }
    }
  }
  return {};
}

// Of one of the ten pipelines that the paper has.
Expected<void> figures_14_and_15(const BenchOptions& options, Batches& batches) {
  constexpr double pipelines = 10;
  for (const Speed& speed : {Speed{2, {10, 15, 25}}, Speed{6, {10, 15, 25}}, Speed{10, {10, 15, 25}},
                             Speed{100, {0.4, 0.8, 1.6}}, Speed{200, {0.4, 0.8, 1.6}}, Speed{300, {0.4, 0.8, 1.6}}}) {
    for (const double cycle : speed.cycles_ms) {
      const auto parts = batches.parts(in_a_cycle(speed.gbits / pipelines, cycle, batches.size()), options.seconds);
      if (!parts) {
        return tl::unexpected(parts.error());
      }
      const std::string at = fmt::format("{} Gbit/s", speed.gbits);
      const auto add = [&](const char* figure, const char* part, const Round& round) {
        add_point(options, {figure, at + "; " + part, "cycle (ms)", cycle, "us", round.p50_us});
      };
      add("figure 14", "up", parts->up);
      add("figure 14", "kernel", parts->kernel);
      add("figure 14", "down", parts->down);
      add("figure 14", "whole", parts->whole);
      add("figure 15", "kernel", parts->kernel);
    }
  }
  return {};
}

}  // namespace

std::uint64_t batch_figures_bytes() {
  return SrtpBed::bytes(most_packets);
}

Expected<void> batch_figures(const BenchOptions& options) {
  for (const std::uint32_t size : paper_sizes) {
    const Progress progress(fmt::format("batches of {} B", size));
    auto batches = Batches::make(options, size);
    if (!batches) {
      return tl::unexpected(batches.error());
    }
    auto ok = size == paper_sizes[0] ? table_1(options, *batches) : Expected<void>{};
    ok = ok ? figure_6(options, *batches) : ok;
    ok = ok ? figure_7(options, *batches) : ok;
    ok = ok && size == paper_sizes[0] ? figures_14_and_15(options, *batches) : ok;
    ok = ok ? batches->verify(false) : ok;
    if (!ok) {
      return ok;
    }
    std::printf("verified: %u packets of %u B, opened by the CPU before and after\n", most_packets, size);
  }
  return {};
}

}  // namespace sluice::cli::bench
