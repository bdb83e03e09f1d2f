#include "bench/rig.h"

#include <gtest/gtest.h>

#include "base/machine.h"
#include "engine/lane.h"

namespace sluice::cli::bench {
namespace {

constexpr double ticks_per_us = 2;

// Counters that differ from each other, at some moment.
engine::EngineStats stats_at(std::uint64_t moment) {
  engine::EngineStats stats;
  stats.ports.resize(2);
  stats.ports[0].device.missed = 3 * moment;
  stats.ports[1].device.missed = 99 * moment;  // figures are those of the first port
  stats.drops.resize(packet::max_reasons);
  stats.drops[engine::measured_only] = 5 * moment;
  stats.drops[engine::overdue] = 7 * moment;
  stats.total.rx_bytes = 1000 * moment;
  stats.total.tx_frames = 11 * moment;
  stats.total.tx_bytes = 2000 * moment;
  stats.total.dropped = 13 * moment;
  stats.total.misses = 17 * moment;
  stats.total.misses_stalled = 19 * moment;
  stats.total.frames_gpu = 23 * moment;
  stats.total.frames_cpu = 29 * moment;
  stats.total.receive_stalls = 31 * moment;
  stats.total.sealed_full = 37 * moment;
  stats.total.collecting = 53 * moment;
  stats.total.forwarding = 59 * moment;
  stats.lanes.resize(2);
  stats.lanes[0].tx_frames = stats.lanes[1].dropped = moment;
  stats.lanes[0].dropped = moment;
  stats.lanes[1].tx_frames = 10 * moment;
  stats.lanes[1].punted = 5 * moment;
  stats.lanes[1].misses = moment;
  stats.overruns = 41 * moment;
  stats.late_cycles = 43 * moment;
  stats.slow_launches = 47 * moment;
  stats.launches = 61 * moment;
  stats.launching = 67 * moment;
  stats.total.batches_gpu = 71 * moment;
  stats.lanes_stalls = {2 * moment, 10 * moment, 4 * moment};
  stats.worker_stalls = {3 * moment, 20 * moment, 6 * moment};
  return stats;
}

TEST(Rig, AnOutcomeIsWhatWasCountedBetweenTwoMoments) {
  for (const engine::Mode mode : {engine::Mode::full, engine::Mode::collector_only}) {
    const bool collects = mode == engine::Mode::collector_only;
    SCOPED_TRACE(collects ? "collector-only" : "full");
    const Outcome o = outcome_between(stats_at(10), stats_at(30), 4, ticks_per_us, mode);
    EXPECT_EQ(o.seconds, 4);
    EXPECT_EQ(o.frames, collects ? 5U * 20 : 11U * 20) << "what is measured only is not sent";
    EXPECT_EQ(o.bytes, collects ? 1000U * 20 : 2000U * 20);
    EXPECT_EQ(o.dropped, collects ? (13U - 5) * 20 : 13U * 20);
    EXPECT_EQ(o.offered_missed, 3U * 20);
    EXPECT_EQ(o.refused, 7U * 20);
    EXPECT_EQ(o.not_let_in(), 10U * 20);
    EXPECT_EQ(o.deadline_misses, 17U * 20);
    EXPECT_EQ(o.misses_stalled, 19U * 20);
    EXPECT_EQ(o.own_misses(), 0U) << "no more are explained than there are";
    EXPECT_EQ(o.gpu_frames, 23U * 20);
    EXPECT_EQ(o.cpu_frames, 29U * 20);
    EXPECT_EQ(o.receive_stalls, 31U * 20);
    EXPECT_EQ(o.sealed_full, 37U * 20);
    EXPECT_EQ(o.collecting_us, 53 * 20 / ticks_per_us);
    EXPECT_EQ(o.forwarding_us, 59 * 20 / ticks_per_us);
    EXPECT_EQ(o.collecting_ns(), 1e3 * o.collecting_us / static_cast<double>(o.frames + o.dropped))
        << "of dropped ones, too";
    EXPECT_EQ(o.forwarding_ns(), 1e3 * o.forwarding_us / static_cast<double>(o.frames + o.dropped));
    EXPECT_EQ(o.slowest_lane, 2U * 20);
    EXPECT_EQ(o.fastest_lane, 16U * 20);
    EXPECT_EQ(o.lanes_late, 1U);
    EXPECT_EQ(o.overruns, 41U * 20);
    EXPECT_EQ(o.late_cycles, 43U * 20);
    EXPECT_EQ(o.slow_launches, 47U * 20);
    EXPECT_EQ(o.launches, 61U * 20);
    EXPECT_EQ(o.launching_us, 67 * 20 / ticks_per_us);
    EXPECT_EQ(o.gpu_batches, 71U * 20);
    EXPECT_EQ(o.scheduling_stalls, 5U * 20);
    EXPECT_EQ(o.stall_us, 30 * 20 / ticks_per_us);
    EXPECT_EQ(o.longest_stall_us, 6 * 30 / ticks_per_us) << "since the start, of both";
    EXPECT_FALSE(o.clean());
  }
}

TEST(Rig, SaysWhenBatchesGo) {
  BenchOptions options;
  options.cycle_us = 100;
  options.overlap = 3;
  RigOptions rig;
  rig.function = "route";
  apply(options, rig.engine);
  EXPECT_EQ(cycle_text(rig), "cycle 100 us; overlap 3");
  rig.elements.push_back({.name = "srtp", .make = {}});
  EXPECT_EQ(cycle_text(rig), "cycle 100 us; overlap 3; staggered") << "its batches are launched by themselves";
  rig.engine.device = "cpu";
  EXPECT_EQ(cycle_text(rig), "cycle 100 us; overlap 3");
  rig.engine.device = "auto";
  options.stagger = "off";
  apply(options, rig.engine);
  EXPECT_EQ(cycle_text(rig), "cycle 100 us; overlap 3");
  rig.elements.clear();
  options.stagger = "on";
  apply(options, rig.engine);
  rig.engine.forwarder_cores = {1, 2};
  EXPECT_EQ(cycle_text(rig), "cycle 100 us; overlap 3; staggered; 2 forwarders");
}

// Of this machine's cores, behind the first; none where there are too few, which check_options refuses.
TEST(Rig, ForwardersHaveCoresOfTheirOwn) {
  const std::vector<int> cores = allowed_cores();
  BenchOptions options;
  options.forwarders = 1;
  engine::Options engine;
  apply(options, engine);
  EXPECT_EQ(engine.forwarder_cores, cores.size() < 2 ? std::vector<int>{} : std::vector<int>{cores[1]});
  options.forwarders = static_cast<unsigned>(cores.size());
  engine::Options too_many;
  apply(options, too_many);
  EXPECT_EQ(too_many.forwarder_cores, std::vector<int>{});
}

TEST(Rig, LatencyIsThatOfTheFramesBetweenTwoMoments) {
  engine::Histogram latency, device;
  engine::EngineStats before = stats_at(1), after = stats_at(1);
  latency.add(60, 1000);
  device.add(40, 10);
  before.latency.add(latency);
  before.device_time.add(device);
  latency.add(20, 99);
  latency.add(50, 1);
  device.add(10, 3);
  after.latency.add(latency);
  after.device_time.add(device);
  const Outcome o = outcome_between(before, after, 1, ticks_per_us, engine::Mode::full);
  EXPECT_EQ(o.p50_us, 20 / ticks_per_us);
  EXPECT_EQ(o.p99_us, 20 / ticks_per_us);
  EXPECT_EQ(o.p999_us, 50 / ticks_per_us);
  EXPECT_EQ(o.device_p50_us, 10 / ticks_per_us);
  EXPECT_TRUE(o.clean());
}

}  // namespace
}  // namespace sluice::cli::bench
