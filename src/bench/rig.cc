#include "bench/rig.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "base/machine.h"
#include "base/settings.h"
#include "bench/progress.h"
#include "port/eal.h"

namespace sluice::cli::bench {
namespace {
constexpr double window_seconds = 0.1;
constexpr double no_rate = 1e-3;  // frames a second of each lane: none in any time that counts

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

engine::Options with_chain(const RigOptions& options) {
  engine::Options engine = options.engine;
  engine.chain.clear();
  for (const RigElement& element : options.elements) {
    engine.chain.push_back(element.name);
  }
  engine.chain.push_back(options.function);
  return engine;
}
}  // namespace

Expected<std::unique_ptr<engine::Pipeline>> make_pipeline(const RigOptions& options, const engine::PortTable& ports) {
  const engine::ElementType* type = engine::find_element(options.function);
  if (type == nullptr) {
    return make_error("there is no function '" + options.function + "'");
  }
  Diagnostics diagnostics;
  auto settings = Settings::from_text(options.settings, options.function, diagnostics);
  if (!settings) {
    return tl::unexpected(settings.error());
  }
  auto last = type->make(*settings, ports);
  settings->finish();
  if (!diagnostics.ok()) {
    return make_error(diagnostics.lines.front());
  }
  if (!last) {
    return tl::unexpected(last.error());
  }
  std::vector<std::unique_ptr<engine::Element>> elements;
  for (const auto& make : options.in_front) {
    elements.push_back(make());
  }
  for (const RigElement& element : options.elements) {
    elements.push_back(element.make(ports));
  }
  elements.push_back(options.wrap ? options.wrap(std::move(*last)) : std::move(*last));
  return std::make_unique<engine::Pipeline>(std::move(elements), options.fused);
}

Expected<std::unique_ptr<Rig>> Rig::make(const RigOptions& options) {
  const Progress progress("setting up the gateway");
  engine::Options engine = with_chain(options);
  engine.memory.frames = options.frames;
  port::PortOptions port;
  port.name = "replay";
  port.device = fmt::format("replay,mix={},frames={},family={},refresh={},ring={},ordered={:d}", options.mix,
                            options.frames, options.family, options.refresh, options.ring, options.ordered);
  port.device += ",protocol=" + options.protocol;
  port.device += options.payload.empty() ? "" : ",payload=" + options.payload;
  if (!options.destinations.empty()) {
    port.device += ",destinations=" + options.destinations;
  }
  if (!options.flows.empty()) {
    port.device += ",flows=" + options.flows;
  }
  port.queues = options.lanes;
  port.mtu = options.mtu;
  engine.ports.assign(options.ports, port);
  for (unsigned p = 1; p < options.ports; ++p) {
    engine.ports[p].name += std::to_string(p + 1);
  }
  auto made =
      engine::Engine::create(engine, [&](const engine::PortTable& ports) { return make_pipeline(options, ports); });
  if (!made) {
    return tl::unexpected(made.error());
  }
  auto rig = std::make_unique<Rig>();
  rig->engine_ = std::move(*made);
  rig->lanes_ = options.lanes;
  return rig;
}

Outcome Rig::measure(double warm_up_seconds, double seconds) {
  const Progress progress("measuring", warm_up_seconds + seconds);
  if (!engine_->running()) {
    engine_->start();
  }
  sleep_seconds(warm_up_seconds);
  const engine::EngineStats before = engine_->stats();
  const auto begin = std::chrono::steady_clock::now();
  sleep_seconds(seconds);
  const engine::EngineStats after = engine_->stats();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return since(before, after, spent.count());
}

Hold Rig::hold(double seconds, bool while_clean) {
  return hold_in_windows_of(window_seconds, seconds, while_clean);
}

Hold Rig::hold_in_windows_of(double window, double seconds, bool while_clean) {
  const Progress progress("holding the rate", seconds);
  Hold hold;
  const engine::EngineStats first = engine_->stats();
  const auto begin = std::chrono::steady_clock::now();
  engine::EngineStats before = first;
  double before_seconds = 0;
  for (;;) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    sleep_seconds(std::clamp(seconds - spent.count(), 0.001, window));
    engine::EngineStats now = engine_->stats();
    const double until = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    hold.windows.push_back(since(before, now, until - before_seconds));
    if (until >= seconds || (while_clean && !hold.windows.back().clean())) {
      hold.whole = since(first, now, until);
      return hold;
    }
    before = std::move(now);
    before_seconds = until;
  }
}

Outcome Rig::since(const engine::EngineStats& before, const engine::EngineStats& after, double seconds) const {
  return outcome_between(before, after, seconds, engine_->tsc_per_ns() * 1000, engine_->options().mode);
}

Outcome outcome_between(const engine::EngineStats& before, const engine::EngineStats& after, double seconds,
                        double ticks_per_us, engine::Mode mode) {
  const auto us = [ticks_per_us](std::uint64_t ticks) { return static_cast<double>(ticks) / ticks_per_us; };
  Outcome outcome;
  outcome.seconds = seconds;
  outcome.dropped = after.total.dropped - before.total.dropped;
  if (mode == engine::Mode::collector_only) {
    outcome.frames = after.drops[engine::measured_only] - before.drops[engine::measured_only];
    outcome.bytes = after.total.rx_bytes - before.total.rx_bytes;
    outcome.dropped -= outcome.frames;
  } else {
    outcome.frames = after.total.tx_frames - before.total.tx_frames;
    outcome.bytes = after.total.tx_bytes - before.total.tx_bytes;
  }
  outcome.offered_missed = after.ports[0].device.missed - before.ports[0].device.missed;
  outcome.refused = after.drops[engine::overdue] - before.drops[engine::overdue];
  outcome.deadline_misses = after.total.misses - before.total.misses;
  outcome.misses_stalled = after.total.misses_stalled - before.total.misses_stalled;
  outcome.scheduling_stalls =
      after.lanes_stalls.times + after.worker_stalls.times - before.lanes_stalls.times - before.worker_stalls.times;
  outcome.longest_stall_us = us(std::max(after.lanes_stalls.longest, after.worker_stalls.longest));
  outcome.stall_us =
      us(after.lanes_stalls.ticks + after.worker_stalls.ticks - before.lanes_stalls.ticks - before.worker_stalls.ticks);
  outcome.slow_launches = after.slow_launches - before.slow_launches;
  outcome.launches = after.launches - before.launches;
  outcome.gpu_batches = after.total.batches_gpu - before.total.batches_gpu;
  outcome.launching_us = us(after.launching - before.launching);
  outcome.gpu_frames = after.total.frames_gpu - before.total.frames_gpu;
  outcome.cpu_frames = after.total.frames_cpu - before.total.frames_cpu;
  outcome.overruns = after.overruns - before.overruns;
  outcome.late_cycles = after.late_cycles - before.late_cycles;
  outcome.receive_stalls = after.total.receive_stalls - before.total.receive_stalls;
  outcome.collecting_us = us(after.total.collecting - before.total.collecting);
  outcome.forwarding_us = us(after.total.forwarding - before.total.forwarding);
  for (std::size_t l = 0; l < after.lanes.size(); ++l) {
    const auto handled = [l](const engine::EngineStats& stats) {
      return stats.lanes[l].tx_frames + stats.lanes[l].dropped + stats.lanes[l].punted;
    };
    const std::uint64_t frames = handled(after) - handled(before);
    outcome.slowest_lane = l == 0 ? frames : std::min(outcome.slowest_lane, frames);
    outcome.fastest_lane = std::max(outcome.fastest_lane, frames);
    outcome.lanes_late += after.lanes[l].misses != before.lanes[l].misses;
  }
  outcome.sealed_full = after.total.sealed_full - before.total.sealed_full;
  const engine::HistogramSnapshot latency = after.latency.since(before.latency);
  outcome.p50_us = us(latency.percentile(0.5));
  outcome.p99_us = us(latency.percentile(0.99));
  outcome.p999_us = us(latency.percentile(0.999));
  outcome.max_us = us(latency.max());
  const engine::HistogramSnapshot device = after.device_time.since(before.device_time);
  outcome.device_p50_us = us(device.percentile(0.5));
  outcome.device_max_us = us(device.max());
  return outcome;
}

unsigned Rig::cores() const {
  std::set<int> cores;
  for (const engine::EngineStats::Lane& lane : engine_->stats().lanes) {
    cores.insert(lane.core);
  }
  // Of a GPU, the worker's core is the gateway's too.
  return static_cast<unsigned>(cores.size()) + (engine_->gpu() != nullptr ? 1 : 0);
}

Expected<void> Rig::pause() {
  if (!engine_->running()) return {};
  set_rate(no_rate * lanes_);
  for (int tries = 0; tries < 10'000; ++tries) {
    sleep_seconds(1e-3);
    // A frame that was received before the rate changed is not counted yet.
    if (tries >= 20 && engine_->stats().total.in_flight == 0) return {};
  }
  return make_error("frames are under way that do not leave");
}

Expected<void> Rig::finish() {
  engine_->stop();
  const engine::EngineStats stats = engine_->stats();
  if (stats.imbalance() != 0 || stats.total.in_flight != 0) {
    return make_error("the counters do not add up: " + std::to_string(stats.imbalance()) +
                      " frames are unaccounted for");
  }
  if (stats.total.frames_rescued != 0) {
    return make_error("the GPU failed, and the CPU computed " + std::to_string(stats.total.frames_rescued) +
                      " of its frames: these figures are of neither");
  }
  return {};
}

std::string drops_text(const engine::EngineStats& stats) {
  std::string text;
  for (std::size_t reason = 0; reason < stats.drops.size(); ++reason) {
    if (stats.drops[reason] != 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", stats.drops[reason],
                          packet::reason_name(static_cast<packet::Reason>(reason)));
    }
  }
  return text;
}

std::string cycle_text(const RigOptions& rig) {
  const engine::Options options = with_chain(rig);
  return fmt::format(
      "cycle {:.0f} us; overlap {}{}{}", static_cast<double>(options.cycle.count()) / 1e3, options.overlap,
      options.device != "cpu" && engine::staggers(options) ? "; staggered" : "",
      options.forwarder_cores.empty() ? "" : fmt::format("; {} forwarders", options.forwarder_cores.size()));
}

unsigned default_lanes(const BenchOptions& options) {
  if (options.lanes != 0) {
    return options.lanes;
  }
  const auto cores = static_cast<unsigned>(allowed_cores().size());
  return std::clamp(cores - std::min(cores, options.forwarders), 3U, 66U) - 2;
}

void apply(const BenchOptions& from, engine::Options& to) {
  to.device = from.device;
  if (from.deadline_ms > 0) {
    to.deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(from.deadline_ms * 1e6));
  }
  if (from.cycle_us > 0) {
    to.cycle = std::chrono::nanoseconds(static_cast<std::int64_t>(from.cycle_us * 1e3));
  }
  to.overlap = from.overlap != 0 ? from.overlap : to.overlap;
  to.stagger = from.stagger == "auto" ? to.stagger : from.stagger == "on" ? engine::Stagger::on : engine::Stagger::off;
  // Behind the first, which devices interrupt.
  const std::vector<int> cores = allowed_cores();
  if (from.forwarders != 0 && from.forwarders < cores.size()) {
    to.forwarder_cores.assign(cores.begin() + 1, cores.begin() + 1 + from.forwarders);
  }
  to.batch = from.batch != 0 ? from.batch : to.batch;
  to.batches = from.batches != 0 ? from.batches : to.batches;
  to.scheduling = from.realtime ? engine::Scheduling::realtime : to.scheduling;
  for (const auto admission : {engine::Admit::in_time, engine::Admit::all}) {
    to.admission = from.admission == engine::admit_name(admission) ? admission : to.admission;
  }
  to.streams = from.streams != 0 ? from.streams : to.streams;
}

Expected<void> start_bench_eal(std::uint64_t bytes) {
  port::MemoryOptions memory;
  memory.size = bytes;
  auto eal = port::start_eal(memory, {});
  if (!eal) {
    return tl::unexpected(eal.error());
  }
  std::printf("memory: %s\n", eal->text.c_str());
  return {};
}

std::string row(const std::string& label, const Outcome& o) {
  return fmt::format(
      "{:<22} {:8.2f} Mpps {:7.2f} GB/s | p50 {:7.1f} p99 {:7.1f} p99.9 {:7.1f} max {:8.1f} us | late {} (stalled {}, "
      "{} "
      "times, longest ever {:.0f} us) lost {} refused {} | "
      "device p50 "
      "{:.0f} max {:.0f} us, overruns {}, late cycles {}, slow launches {}, receive stalls {}, full {}, on GPU {:.0f} "
      "%",
      label, o.mpps(), o.gbytes(), o.p50_us, o.p99_us, o.p999_us, o.max_us, o.deadline_misses, o.misses_stalled,
      o.scheduling_stalls, o.longest_stall_us, o.offered_missed, o.refused, o.device_p50_us, o.device_max_us,
      o.overruns, o.late_cycles, o.slow_launches, o.receive_stalls, o.sealed_full,
      100.0 * static_cast<double>(o.gpu_frames) /
          static_cast<double>(std::max<std::uint64_t>(1, o.gpu_frames + o.cpu_frames)));
}

}  // namespace sluice::cli::bench
