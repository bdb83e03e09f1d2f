#include "cli/calibrate/replayed_gateway.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "cli/calibrate/own_traffic.h"
#include "cli/calibrate/timed_pipeline.h"
#include "control/pipeline_maker.h"
#include "engine/bound.h"
#include "port/virtual_device.h"

namespace sluice::cli {
namespace {

using std::chrono::nanoseconds;

constexpr unsigned spare_frames = 1024;      // in bursts, for each lane
constexpr std::uint64_t most_dropped = 100;  // one in so many frames of an element's own traffic
constexpr double carried_share = 0.99;       // of what was offered: the rest may be on its way when the time is over

unsigned lanes_of(const engine::Options& options) {
  unsigned lanes = 0;
  for (const port::PortOptions& port : options.ports) lanes += port.lane_count();
  return lanes;
}

// As the configuration has them: [srtp.rtsp] refuses ports that are without a twin, as replays are.
engine::PortTable with_twins(const engine::PortTable& ports, const control::Config& config) {
  std::vector<engine::PortInfo> all;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    all.push_back(ports[port]);
    all.back().has_twin = !config.engine.ports[port].twin.empty();
  }
  return engine::PortTable(std::move(all));
}

// What admission promises of this cycle on a GPU: the deadline that is its own bound. A sleep is a part of both, and
// grows with the deadline.
nanoseconds promised_bound(engine::Options options) {
  options.deadline = std::chrono::hours(1);
  const auto timing = engine::plan_timing(options, true);
  if (!timing) return options.deadline;  // the engine says why
  const nanoseconds awake = timing->bound - timing->sleep;
  nanoseconds deadline = awake;
  for (nanoseconds before(0); timing->sleep.count() != 0 && before != deadline;) {
    before = deadline;
    deadline = awake + engine::longest_lane_sleep(before);
  }
  return deadline;
}

class ReplayedGateway : public Bench {
 public:
  ReplayedGateway(std::unique_ptr<engine::Engine> engine, std::unique_ptr<TimedPipeline> timed,
                  const ReplayedOptions& options, const engine::Options& configured, unsigned packet,
                  std::shared_ptr<nanoseconds> longest_round)
      : engine_(std::move(engine)),
        configured_(configured),
        timed_(std::move(timed)),
        options_(options),
        packet_(timed_->traffic() != nullptr ? timed_->traffic()->mean_packet() : packet),
        longest_round_(std::move(longest_round)) {
    for (const port::PortOptions& port : engine_->options().ports) queues_ += port.queues;
    std::map<int, unsigned> of_core;
    for (const engine::EngineStats::Lane& lane : engine_->stats().lanes) {
      lanes_together_ = std::max(lanes_together_, ++of_core[lane.core]);
    }
  }
  ~ReplayedGateway() override { engine_->stop(); }

  using Bench::measure;
  Expected<engine::ProfileCell> measure(std::uint64_t rate, std::chrono::duration<double> length) override {
    set_rate(rate);
    if (!engine_->running()) engine_->start();
    sleep(options_.warm_up);
    const engine::EngineStats before = engine_->stats();
    const TimedPipeline::Batches batches_before = timed_->batches();
    const auto begin = std::chrono::steady_clock::now();
    sleep(length.count() > 0 ? length.count() : options_.seconds);
    const engine::EngineStats after = engine_->stats();
    const engine::HistogramSnapshot times = options_.on_gpu ? after.device_time.since(before.device_time)
                                                            : timed_->batches().times.since(batches_before.times);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (after.total.frames_rescued != 0 || (options_.on_gpu && !after.gpu_up)) {
      return make_error("the GPU failed while it was measured");
    }
    if (auto good = check_traffic(before, after); !good) return tl::unexpected(good.error());
    engine::ProfileCell cell = cell_of(before, after, times, rate, spent.count());
    const TimedPipeline::Batches batches = timed_->batches();
    cell.batch_bytes = batches.bytes.since(batches_before.bytes).percentile(0.5);
    const nanoseconds burst = time(batches.rounds.since(batches_before.rounds).percentile(0.999));
    // With what a driver does for each further lane.
    if (burst.count() != 0) cell.round = burst * lanes_together_ + engine::receive_time * (lanes_together_ - 1);
    cell.forwarding =
        time(batches.forwardings.since(batches_before.forwardings).percentile(0.999)) * lanes_forwarded_together();
    *longest_round_ = std::max(*longest_round_, cell.round);
    cell.schedulable = cell.schedulable && (options_.on_gpu ? forwards_in_time(cell) : keeps_the_bound(cell));
    return cell;
  }

 private:
  static void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

  nanoseconds time(std::uint64_t ticks) const {
    return nanoseconds(std::llround(static_cast<double>(ticks) / engine_->tsc_per_ns()));
  }
  unsigned lanes_forwarded_together() const {
    const auto threads = static_cast<unsigned>(engine_->options().forwarder_cores.size());
    return threads == 0 ? lanes_together_ : (lanes_of(engine_->options()) + threads - 1) / threads;
  }
  // The profile's bound on a core has the longest of these batches in it, and the sleep that the configuration's own
  // ports need.
  bool keeps_the_bound(const engine::ProfileCell& cell) const {
    engine::Options options = configured_;
    options.inline_batch = cell.p999;
    return engine::plan_timing(options, false).has_value();
  }
  bool forwards_in_time(const engine::ProfileCell& cell) const {
    const engine::Options& options = engine_->options();
    return engine::forwards_in_time(cell.forwarding, options.cycle, !options.forwarder_cores.empty());
  }

  void set_rate(std::uint64_t rate) {
    const double frames = static_cast<double>(rate) / 8 / packet_ / queues_;
    for (std::size_t i = 0; i < engine_->options().ports.size(); ++i) engine_->port(i).replay()->set_rate(frames);
  }

  // A frame that the element drops has cost the device nothing.
  Expected<void> check_traffic(const engine::EngineStats& before, const engine::EngineStats& after) const {
    const std::uint64_t frames = after.total.rx_frames - before.total.rx_frames;
    const engine::Traffic* const traffic = timed_->traffic();
    for (packet::Reason reason = 0; traffic != nullptr && reason < after.drops.size(); ++reason) {
      const std::uint64_t dropped = after.drops[reason] - before.drops[reason];
      if (packet::reason_name(reason).starts_with(traffic->reasons()) && dropped > frames / most_dropped) {
        return make_error(fmt::format("{} of {} frames were dropped as {}, so there was nothing to measure: {}",
                                      dropped, frames, packet::reason_name(reason), packet::reason_text(reason)));
      }
    }
    return {};
  }

  engine::ProfileCell cell_of(const engine::EngineStats& before, const engine::EngineStats& after,
                              const engine::HistogramSnapshot& times, std::uint64_t rate, double seconds) const {
    const auto frames = [](const engine::EngineStats& stats) {
      return stats.total.frames_gpu + stats.total.frames_cpu;
    };
    const auto lost = [](const engine::EngineStats& stats) {
      std::uint64_t sum = stats.drops[engine::overdue];
      for (const engine::EngineStats::Port& port : stats.ports) sum += port.device.missed;
      return sum;
    };
    const auto late = [](const engine::EngineStats& stats) { return stats.total.misses - stats.total.misses_stalled; };
    const double bits = static_cast<double>(frames(after) - frames(before)) * packet_ * 8;
    engine::ProfileCell cell;
    cell.carried = static_cast<std::uint64_t>(bits / seconds);
    cell.batches = times.total();
    cell.p50 = time(times.percentile(0.5));
    cell.p99 = time(times.percentile(0.99));
    cell.p999 = time(times.percentile(0.999));
    cell.longest = time(times.max());
    cell.overruns = after.overruns - before.overruns;
    cell.lost = lost(after) - lost(before);
    cell.late = late(after) - late(before);
    cell.schedulable = rate != 0 && cell.batches != 0 && cell.overruns == 0 && cell.lost == 0 && cell.late == 0 &&
                       static_cast<double>(cell.carried) >= carried_share * static_cast<double>(rate);
    return cell;
  }

  std::unique_ptr<engine::Engine> engine_;
  const engine::Options& configured_;
  const std::unique_ptr<TimedPipeline> timed_;  // its elements are the engine's
  ReplayedOptions options_;
  double packet_;  // bytes, on average
  std::shared_ptr<nanoseconds> longest_round_;
  unsigned queues_ = 0;
  unsigned lanes_together_ = 1;  // at most, on a thread
};

}  // namespace

std::string replay_device(const port::PortOptions& port, unsigned packet, unsigned frames) {
  std::string device = fmt::format("replay,mix={},frames={}", packet, frames);
  if (port::device_name(port.device) == "replay") {
    for (const char* key : {"family", "seed", "destinations", "protocol", "payload"}) {
      const std::string value = port::device_argument(port.device, key);
      if (!value.empty()) device += fmt::format(",{}={}", key, value);
    }
  }
  return device;
}

engine::Options bench_options(const control::Config& config, const ReplayedOptions& bench, nanoseconds cycle,
                              unsigned streams, unsigned packet) {
  engine::Options options = config.engine;
  options.admission = engine::Admit::all;
  options.compute_cores.clear();  // what is admitted does not count on them
  options.mode = engine::Mode::full;
  if (bench.on_gpu) {
    options.cpu_below = 0;
    options.cycle = cycle;
    options.streams = streams;
    if (bench.collect.count() != 0) options.collect = bench.collect;
  } else {
    options.device = "cpu";
  }
  for (port::PortOptions& port : options.ports) {
    const unsigned lanes = (port.lane_count() + port.queues - 1) / port.queues;
    port.device = replay_device(port, packet, lanes * (options.batches * options.batch + spare_frames));
    port.twin.clear();
  }
  if (bench.on_gpu) options.deadline = promised_bound(options);
  return options;
}

BenchOpener replayed_gateways(control::Config& config, const ReplayedOptions& bench) {
  const auto longest_round = std::make_shared<nanoseconds>(0);
  return [&config, bench, longest_round](nanoseconds cycle, unsigned streams,
                                         unsigned packet) -> Expected<std::unique_ptr<Bench>> {
    ReplayedOptions now = bench;
    if (longest_round->count() != 0) now.collect = engine::collect_time_of(*longest_round);
    const engine::Options options = bench_options(config, now, cycle, streams, packet);
    auto traffic = own_traffic(config, packet, lanes_of(options));
    if (!traffic) return tl::unexpected(traffic.error());
    std::unique_ptr<TimedPipeline> timed;
    const engine::PipelineMaker make =
        [&](const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Pipeline>> {
      auto pipeline = control::make_pipeline(config, with_twins(ports, config));
      if (!pipeline) return tl::unexpected(pipeline.error());
      timed = std::make_unique<TimedPipeline>(std::move(*pipeline), std::move(*traffic));
      return timed->take();
    };
    auto engine = engine::Engine::create(options, make, bench.open_gpu);
    if (!engine) return tl::unexpected(engine.error());
    return std::make_unique<ReplayedGateway>(std::move(*engine), std::move(timed), bench, config.engine, packet,
                                             longest_round);
  };
}

}  // namespace sluice::cli
