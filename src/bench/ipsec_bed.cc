#include "bench/ipsec_bed.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "bench/progress.h"
#include "bench/queue_sizes.h"
#include "bench/rounds.h"

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;

constexpr double warm_up_seconds = 0.15;
constexpr std::uint32_t sealed_in_all = 1U << 15;  // many times what a cache holds
constexpr unsigned most_of_a_batch = 4096, spare_frames = 2048;
constexpr double most_by_cores = 0.01, most_dropped = 1e-4;

// As `bench media` at 5 ms.
HeldCase held_case(const std::string& mix) {
  return {mix, 5, 400, 4, 5, {0.73, 0.33}};
}

void sleep_for(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
}

}  // namespace

std::string traffic_text(const IpsecTraffic& traffic) {
  return fmt::format("{} {} {} SA{}", traffic.algorithm, traffic.mix, traffic.tunnels, traffic.tunnels == 1 ? "" : "s");
}

Expected<std::unique_ptr<IpsecBed>> IpsecBed::make(const BenchOptions& options, const RouterTable& table,
                                                   const IpsecTraffic& traffic, const std::string& device,
                                                   double ceiling, const RigChange& change) {
  auto tunnels = IpsecTunnels::make(traffic.algorithm, traffic.tunnels);
  if (!tunnels) return tl::unexpected(tunnels.error());
  RigOptions rig;
  rig.function = "route";
  rig.settings = table.settings_on_ports(1);
  rig.lanes = default_lanes(options);
  rig.mtu = 1600;
  fill_in(options, held_case(traffic.mix), ceiling, rig);
  // There is no rate, so nothing is late and nothing waits in a ring. A frame is in two passes, each with batches of
  // its own, and twice as long under way.
  if (options.deadline_ms <= 0) rig.engine.deadline *= 2;
  if (options.batch == 0) rig.engine.batch = std::min(rig.engine.batch, most_of_a_batch);
  rig.ring = 0;
  if (options.frames == 0) rig.frames = 2 * rig.engine.batches * rig.engine.batch + spare_frames;
  rig.engine.device = device;
  rig.engine.cpu_below = device == "auto" ? -1 : 0;
  rig.engine.admission = engine::Admit::all;
  const std::uint32_t in_all = std::max(sealed_in_all, 2 * traffic.tunnels);
  auto sealed = SealedPackets::make(*tunnels, rig.lanes, (in_all + rig.lanes - 1) / rig.lanes, traffic.mix);
  if (!sealed) return tl::unexpected(sealed.error());
  std::unique_ptr<IpsecBed> bed(new IpsecBed(std::move(*tunnels), std::move(*sealed)));
  IpsecBed& made = *bed;
  rig.elements = {{"ipsec", [&made](const engine::PortTable& ports) {
                     auto element = std::make_unique<function::Ipsec>(made.tunnels_.options(), ports);
                     made.element_ = element.get();
                     return element;
                   }}};
  const unsigned lanes = rig.lanes, frames = rig.frames;
  rig.in_front.emplace_back([&made, lanes, frames] {
    auto source = std::make_unique<IpsecSource>(made.tunnels_, &made.sealed_, lanes, frames);
    made.source_ = source.get();
    return source;
  });
  if (change) change(rig);
  auto running = Rig::make(rig);
  if (!running) return tl::unexpected(running.error());
  bed->options_ = std::move(rig);
  bed->running_ = std::move(*running);
  bed->source_->watch(bed->running_->replay());
  if (!made.tunnels_.is_mixed() && made.tunnels_.algorithm(0).protocol == ipsec::Protocol::ah) bed->outer_bytes_ = 14;
  return bed;
}

std::uint64_t IpsecBed::verified() const {
  return source_->checks().sealed + source_->checks().opened;
}

std::uint64_t IpsecBed::metric(std::string_view name) const {
  for (const engine::Metric& metric : element_->metrics()) {
    if (metric.name == name) return metric.value;
  }
  return 0;
}

double IpsecBed::mean_clear_length() const {
  double sum = 0;
  for (std::uint16_t lane = 0; lane < options_.lanes; ++lane) {
    for (unsigned i = 0; i < options_.frames; ++i)
      sum += static_cast<double>(running_->replay().pristine(lane, i).size());
  }
  return sum / options_.lanes / options_.frames;
}

Expected<void> IpsecBed::verify(Direction direction, std::uint64_t frames) {
  IpsecCheck& checks = source_->checks();
  const std::atomic<std::uint64_t>& count = direction == Direction::out ? checks.sealed : checks.opened;
  if (auto ok = running_->pause(); !ok) return ok;
  source_->set(direction);
  source_->check(true);
  if (!running_->engine().running()) running_->engine().start();
  running_->set_rate(0);
  const std::uint64_t before = count;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (count < before + frames && Clock::now() < end) sleep_for(std::chrono::milliseconds(1));
  if (auto ok = running_->pause(); !ok) return ok;
  source_->check(false);
  source_->rest();
  if (const std::string wrong = checks.wrong(is_new_ && direction == Direction::out); !wrong.empty()) {
    return make_error("NOT VERIFIED: " + wrong);
  }
  is_new_ = false;
  if (count < before + frames) {
    return make_error(fmt::format("NOT VERIFIED: only {} frames left as they should ({})", count - before,
                                  drops_text(running_->engine().stats())));
  }
  return {};
}

Expected<IpsecFigure> IpsecBed::measure(Direction direction, double seconds, std::uint64_t to_verify) {
  if (auto ok = verify(direction, to_verify); !ok) return tl::unexpected(ok.error());
  running_->set_rate(0);
  std::vector<Outcome> outcomes;
  sleep_for(std::chrono::milliseconds(static_cast<int>(1e3 * warm_up_seconds)));
  source_->own_ns(1);
  const std::uint64_t kept_before = metric("ipsec_kept_from_device");
  std::uint64_t frames = 0;
  while (outcomes.size() < repetitions) {
    outcomes.push_back(running_->measure(0, seconds / repetitions));
    frames += outcomes.back().frames;
  }
  const auto kept = static_cast<double>(metric("ipsec_kept_from_device") - kept_before);
  IpsecFigure figure;
  figure.outcome = middle_of(outcomes);
  figure.source_ns = source_->own_ns(running_->engine().tsc_per_ns());
  if (frames == 0) return make_error("no frame came through");
  if (options_.engine.device != "cpu" && kept > most_by_cores * static_cast<double>(frames)) {
    return make_error(
        fmt::format("of {} frames cores have computed {:.0f} (ipsec_kept_from_device): this is no figure of "
                    "the GPU's",
                    frames, kept));
  }
  if (direction == Direction::in) {
    figure.moved_bytes = sealed_.mean_length() - outer_bytes_;
    figure.clear_bytes = sealed_.mean_clear_length();
  } else {
    const auto of = [&](std::uint64_t all) { return static_cast<double>(all) / static_cast<double>(frames); };
    std::uint64_t left = 0;
    for (const Outcome& one : outcomes) left += one.bytes;
    figure.moved_bytes = of(left) - outer_bytes_;
    figure.clear_bytes = mean_clear_length();
  }
  return figure;
}

Expected<Rig*> IpsecBed::begin(Direction direction, std::uint64_t frames) {
  if (auto ok = verify(direction, frames); !ok) return tl::unexpected(ok.error());
  return running_.get();
}

Expected<void> IpsecBed::finish() {
  if (auto ok = running_->pause(); !ok) return ok;
  if (auto ok = running_->finish(); !ok) return ok;
  const engine::EngineStats stats = running_->engine().stats();
  const std::uint64_t stopped = stats.drops[engine::stopped];
  if (static_cast<double>(stats.total.dropped - stopped) > most_dropped * static_cast<double>(stats.total.rx_frames)) {
    return make_error("packets that were right have been dropped: " + drops_text(stats));
  }
  std::uint64_t numbers = 0;
  for (const ipsec::SaStatus& sa : element_->databases().sas(2 * std::size_t{tunnels_.count()})) {
    if (sa.settings.direction == Direction::out) numbers += sa.counters.sequence;
  }
  const std::uint64_t sealed = metric("ipsec_sealed_packets");
  if (numbers < sealed || numbers > sealed + stats.total.dropped) {
    return make_error(fmt::format("{} sequence numbers were taken for {} packets that were sealed", numbers, sealed));
  }
  return {};
}

}  // namespace sluice::cli::bench
