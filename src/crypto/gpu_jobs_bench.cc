// What the GPU alone reaches with ESP's algorithms, both ways over the link. The CPU opens what it seals, and compares,
// before a rate is given.
//
//     sluice_crypto_bench --benchmark_filter='esp/mixed/imix'
//
// Packets have one algorithm, or one of ten at random. Frames have one size, 64 to 1,518 bytes uniformly, or PIPSEA's
// IMIX. Warps take them in every grouping, and in an order that the GPU makes.
//
//   GB/s     of what crosses the link each way: from ESP's header to the tag
//   share    of what the copy engine reaches both ways at once, measured in this run
//   Gbit/s   of the frames in clear
//   busy     of the lanes' time in which the longest of their warp works (1: all are of one length)
//   suites   that a warp has to do one after the other (1: no divergence)
//   idle     of the lanes' time, as warps have measured it: what is not spent on packets, if a packet takes what it
//            does in a warp of its suite and length range alone. The order of `none` is the batch's, given as an order
//   reordered  packets that are not where they were (they never are)
//
// Four batches of 8,192 are under way, on a stream each. A packet can be opened once. So opening is timed pass by pass,
// from the begin of the first batch to the end of the last.
//
// What PIPSEA's groupings and an order made by the GPU do, one algorithm and mixed ones, in 90 s, as JSON for
// scripts/grouping-table:
//
//     sluice_crypto_bench --benchmark_filter='esp/(aes128_cbc_sha1|mixed)/(1408|uniform|imix)/[a-z_]*/auto/'
//       --benchmark_format=json > groupings.json
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "crypto/cpu.h"
#include "crypto/gpu_crypto.h"
#include "crypto/gpu_jobs_bench_packets.h"
#include "device/gpu.h"
#include "device/link_probe.h"
#include "device/warp_schedule.h"
#include "device/warp_times.h"

namespace sluice::crypto {
namespace {

constexpr std::uint32_t packets_in_all = 1U << 17;
constexpr unsigned streams = 4;

enum class Grouping { none, by_kind, by_length, by_both, sorted, by_gpu };
constexpr const char* grouping_names[] = {"none", "by_kind", "by_length", "by_both", "sorted", "by_gpu"};
constexpr const char* path_names[] = {"auto", "copy", "direct"};

struct Case {
  std::string suite, lengths;
  Grouping grouping = Grouping::none;
  bool opens = false;
  GpuPath path = GpuPath::automatic;
};

// A GPU with packets, made anew when the packets or the way change.
struct Rig {
  std::unique_ptr<device::Gpu> gpu;
  std::optional<EspPackets> packets;
  std::unique_ptr<GpuCrypto> crypto;
  Cpu cpu;

  static Expected<std::unique_ptr<Rig>> make(const Case& one) {
    auto cpu = Cpu::make();
    if (!cpu) return tl::unexpected(cpu.error());
    auto gpu = device::Gpu::open(0, streams);
    if (!gpu) return tl::unexpected(gpu.error());
    std::unique_ptr<Rig> rig(new Rig{std::move(*gpu), {}, {}, std::move(*cpu)});
    auto memory = rig->gpu->allocate_host(std::size_t{packets_in_all} * EspPackets::pitch);
    if (!memory) return tl::unexpected(memory.error());
    auto packets =
        EspPackets::make(*rig->gpu, static_cast<std::uint8_t*>(*memory), packets_in_all, one.suite, one.lengths);
    if (!packets) return tl::unexpected(packets.error());
    rig->packets.emplace(std::move(*packets));
    auto crypto = GpuCrypto::create(
        *rig->gpu, rig->packets->keys(),
        {.max_packets = EspPackets::batch_packets, .max_packet_bytes = EspPackets::pitch, .path = one.path});
    if (!crypto) return tl::unexpected(crypto.error());
    rig->crypto = std::move(*crypto);
    return rig;
  }

  // Every packet once, or `passes` times; to the end of the last.
  Expected<double> run(EspPackets::Order order, unsigned passes = 1) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t turn = 0; turn < passes * packets->batches(); ++turn) {
      device::GpuStream& stream = gpu->stream(turn % streams);
      if (auto ok = wait(stream); !ok) return tl::unexpected(ok.error());
      if (auto ok = crypto->run(packets->batch(turn % packets->batches(), order), stream); !ok)
        return tl::unexpected(ok.error());
      if (auto ok = stream.mark(); !ok) return tl::unexpected(ok.error());
    }
    for (unsigned s = 0; s < streams; ++s) {
      if (auto ok = wait(gpu->stream(s)); !ok) return tl::unexpected(ok.error());
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  Expected<void> wait(device::GpuStream& stream) const {
    while (stream.pending_marks() > 0) {
      if (stream.poll() == device::MarkState::failed) return make_error("GPU lost: " + gpu->why());
    }
    return {};
  }

  Expected<double> once(bool opens, EspPackets::Order order) {
    packets->set(opens);
    packets->forget_verdicts();
    auto seconds = run(order);
    if (!seconds) return seconds;
    if (auto ok = packets->all_done(); !ok) return tl::unexpected(ok.error());
    return seconds;
  }
  // What the GPU seals the CPU opens, and what it seals again the GPU opens, to the bytes there were.
  Expected<void> verify(EspPackets::Order order) {
    packets->refill();
    if (auto sealed = once(false, order); !sealed) return tl::unexpected(sealed.error());
    if (auto ok = packets->open_by_cpu(cpu); !ok) return ok;
    for (const bool opens : {false, true}) {
      if (auto done = once(opens, order); !done) return tl::unexpected(done.error());
    }
    return packets->all_clear();
  }
};

Expected<double> both_ways_ceiling() {
  static const Expected<double> ceiling = []() -> Expected<double> {
    auto gpu = device::Gpu::open(0, 1);
    if (!gpu) return tl::unexpected(gpu.error());
    auto link = device::probe_link(**gpu, {.quick = true});
    if (!link) return tl::unexpected(link.error());
    return link->large.both;
  }();
  return ceiling;
}

// Sorted by what has been measured: two passes by the default slope come first.
Expected<EspPackets::Order> put_in_order(Rig& rig, Grouping grouping, device::WarpTimes& times) {
  using Order = EspPackets::Order;
  if (grouping == Grouping::none) return Order::none;
  if (grouping == Grouping::by_gpu) return Order::by_gpu;
  const auto warps = static_cast<device::WarpGrouping>(grouping);
  rig.packets->group(warps, times);
  if (warps != device::WarpGrouping::sorted) return Order::of_groups;
  for (int pass = 0; pass < 2; ++pass) {
    if (auto sealed = rig.once(false, Order::of_groups); !sealed) return tl::unexpected(sealed.error());
    rig.packets->learn(times);
  }
  rig.packets->group(warps, times);
  return Order::of_groups;
}

constexpr unsigned ranges = 6;
constexpr std::uint32_t range_bytes = 256;

// Of lanes' time, by one pass more, after one that has learned.
Expected<double> idle_share(Rig& rig, Grouping grouping, bool opens) {
  using Order = EspPackets::Order;
  device::WarpTimes alone(std::size(esp_suites), ranges, range_bytes);
  const auto pass = [&](Order order) -> Expected<void> {
    if (opens) {
      if (auto sealed = rig.once(false, order); !sealed) return tl::unexpected(sealed.error());
    }
    auto done = rig.once(opens, order);
    return done ? Expected<void>() : tl::unexpected(done.error());
  };
  rig.packets->group(device::WarpGrouping::sorted, alone);
  if (auto ok = pass(Order::of_groups); !ok) return tl::unexpected(ok.error());
  rig.packets->learn(alone);
  const Order order = grouping == Grouping::by_gpu ? Order::by_gpu : Order::of_groups;
  if (order == Order::of_groups) rig.packets->group(static_cast<device::WarpGrouping>(grouping), alone);
  if (auto ok = pass(order); !ok) return tl::unexpected(ok.error());
  const double useful = rig.packets->useful_clocks(alone, ranges, range_bytes);
  return std::max(0.0, 1 - useful / rig.packets->lane_clocks(order));
}

Expected<void> measure(benchmark::State& state, const Case& one) {
  static std::unique_ptr<Rig> rig;
  static std::string made;
  const std::string key = one.suite + "/" + one.lengths + "/" + path_names[static_cast<int>(one.path)];
  const auto ceiling = both_ways_ceiling();
  if (!ceiling) return tl::unexpected(ceiling.error());
  if (made != key) {
    rig.reset();
    made.clear();
    auto fresh = Rig::make(one);
    if (!fresh) return tl::unexpected(fresh.error());
    rig = std::move(*fresh);
    made = key;
  }
  device::WarpTimes times(std::size(esp_suites), ranges, range_bytes);
  const auto order = put_in_order(*rig, one.grouping, times);
  if (!order) return tl::unexpected(order.error());
  // Both directions at once.
  static std::string verified;
  const std::string to_verify = key + "/" + grouping_names[static_cast<int>(one.grouping)];
  if (verified != to_verify) {
    if (auto ok = rig->verify(*order); !ok) return ok;
    verified = to_verify;
  }
  constexpr unsigned passes = 4;
  double seconds = 0, rounds = 0;
  for (auto _ : state) {
    if (one.opens) {
      if (auto sealed = rig->once(false, *order); !sealed) return tl::unexpected(sealed.error());
      rig->packets->set(true);
    } else {
      rig->packets->set(false);
    }
    rig->packets->forget_verdicts();
    const auto taken = rig->run(*order, one.opens ? 1 : passes);
    if (!taken) return tl::unexpected(taken.error());
    if (auto ok = rig->packets->all_done(); !ok) return ok;
    state.SetIterationTime(*taken);
    seconds += *taken;
    rounds += one.opens ? 1 : passes;
  }
  const double bytes = rounds * static_cast<double>(rig->packets->sealed_bytes());
  const EspPackets::Warps warps = rig->packets->warps(*order);
  const std::uint32_t reordered = rig->packets->reordered();
  state.counters["GB/s"] = bytes / seconds / 1e9;
  state.counters["share"] = bytes / seconds / 1e9 / *ceiling;
  state.counters["Mpps"] = rounds * packets_in_all / seconds / 1e6;
  state.counters["Gbit/s"] = rounds * static_cast<double>(rig->packets->frame_bytes()) * 8 / seconds / 1e9;
  if (one.grouping != Grouping::by_gpu) {
    state.counters["busy"] = warps.busy;
    state.counters["suites"] = warps.suites;
  }
  state.counters["reordered"] = reordered;
  if (one.path != GpuPath::automatic) return {};
  const auto idle = idle_share(*rig, one.grouping, one.opens);
  if (!idle) return tl::unexpected(idle.error());
  state.counters["idle"] = *idle;
  return {};
}

void add(const Case& one) {
  const std::string name = "esp/" + one.suite + "/" + one.lengths + "/" +
                           grouping_names[static_cast<int>(one.grouping)] + "/" +
                           path_names[static_cast<int>(one.path)] + (one.opens ? "/open" : "/seal");
  benchmark::RegisterBenchmark(name.c_str(),
                               [one](benchmark::State& state) {
                                 if (const auto ok = measure(state, one); !ok)
                                   state.SkipWithError(ok.error().message.c_str());
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.2);
}

const bool registered = [] {
  constexpr const char* sizes[] = {"64", "128", "256", "512", "1024", "1280", "1408", "1518"};
  constexpr Grouping all[] = {Grouping::none,    Grouping::by_kind, Grouping::by_length,
                              Grouping::by_both, Grouping::sorted,  Grouping::by_gpu};
  for (const EspSuite& suite : esp_suites) {
    for (const char* const size : sizes) {
      for (const bool opens : {false, true}) add({suite.name, size, Grouping::none, opens});
    }
  }
  for (const char* const suite : {"aes128_cbc_sha1", "mixed"}) {
    for (const char* const lengths : {"64", "512", "1408", "uniform", "imix"}) {
      for (const Grouping grouping : all) {
        const bool is_fixed = *lengths < 'a' && lengths != std::string("1408");
        if (suite != std::string("mixed") && (grouping == Grouping::none || is_fixed)) continue;
        for (const bool opens : {false, true}) add({suite, lengths, grouping, opens});
      }
    }
    for (const char* const lengths : {"uniform", "imix"}) {
      for (const GpuPath path : {GpuPath::automatic, GpuPath::copy, GpuPath::direct}) {
        const bool is_there = suite == std::string("mixed") && path == GpuPath::automatic;
        for (const bool opens : {false, true}) {
          if (!is_there) add({suite, lengths, Grouping::none, opens, path});
          if (path != GpuPath::automatic) add({suite, lengths, Grouping::sorted, opens, path});
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace sluice::crypto
