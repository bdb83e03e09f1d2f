#include "bench/churn_windows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>
#include <utility>

namespace sluice::cli::bench {
namespace {

constexpr double allowed_times = 1.25;
constexpr double chance = 2.33;  // standard deviations

using Figure = double (*)(const Outcome&);

std::vector<double> values(const std::vector<Windows>& windows, Figure figure) {
  std::vector<double> all;
  for (const Windows& kind : windows) {
    std::transform(kind.of.begin(), kind.of.end(), std::back_inserter(all), figure);
  }
  return all;
}

std::string text(const Spread& spread) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", spread.median, spread.low, spread.high);
}

}  // namespace

Spread Windows::spread(double Outcome::*figure) const {
  std::vector<double> values;
  for (const Outcome& one : of) {
    values.push_back(one.*figure);
  }
  return spread_of(values);
}

std::uint64_t Windows::sum(std::uint64_t Outcome::*figure) const {
  std::uint64_t all = 0;
  for (const Outcome& one : of) {
    all += one.*figure;
  }
  return all;
}

std::uint64_t Windows::own_misses() const {
  std::uint64_t all = 0;
  for (const Outcome& one : of) {
    all += one.own_misses();
  }
  return all;
}

Expected<Outcome> measure_beside(Load& load, double settle_seconds, double seconds,
                                 const std::function<Expected<void>(const std::function<bool()>& stopped)>& work) {
  std::atomic<bool> stop{false};
  Expected<void> done;
  std::thread control([&] { done = work([&] { return stop.load(); }); });
  const Outcome outcome = load.measure(settle_seconds, seconds);
  stop.store(true);
  control.join();
  return done ? Expected<Outcome>(outcome) : tl::unexpected(done.error());
}

std::string windows_text(const Windows& windows) {
  const auto spread = [&](double Outcome::*figure) { return text(windows.spread(figure)); };
  const std::uint64_t on_gpu = windows.sum(&Outcome::gpu_frames);
  const std::uint64_t computed = on_gpu + windows.sum(&Outcome::cpu_frames);
  return fmt::format(
      "p50 {}, p99 {}, p99.9 {}, worst {} us; of {} frames {} lost, {} refused as overdue, {} late, {} of them of "
      "their "
      "own making, {:.1f} % on the GPU; device worst {} us; {} late time points, {} overruns, {} slow launches, {} "
      "receive stalls, {} full; threads stalled {} times, {} us",
      spread(&Outcome::p50_us), spread(&Outcome::p99_us), spread(&Outcome::p999_us), spread(&Outcome::max_us),
      windows.sum(&Outcome::frames), windows.sum(&Outcome::offered_missed), windows.sum(&Outcome::refused),
      windows.sum(&Outcome::deadline_misses), windows.own_misses(),
      100 * static_cast<double>(on_gpu) / static_cast<double>(std::max<std::uint64_t>(1, computed)),
      spread(&Outcome::device_max_us), windows.sum(&Outcome::late_cycles), windows.sum(&Outcome::overruns),
      windows.sum(&Outcome::slow_launches), windows.sum(&Outcome::receive_stalls), windows.sum(&Outcome::sealed_full),
      windows.sum(&Outcome::scheduling_stalls), spread(&Outcome::stall_us));
}

void judge_windows(Goals& goals, const std::string& place, const std::string& what, const std::vector<Windows>& without,
                   const Windows& with) {
  const Figure p99 = [](const Outcome& one) { return one.p99_us; };
  goals.at_most(place + "p99 with " + what + ", median of the windows (a quarter over that without is allowed)",
                spread_of(values({with}, p99)).median, allowed_times * spread_of(values(without, p99)).median, "us");
  const std::pair<const char*, Figure> figures[] = {
      {"frames lost", [](const Outcome& one) { return static_cast<double>(one.offered_missed); }},
      {"frames refused as overdue", [](const Outcome& one) { return static_cast<double>(one.refused); }},
      {"frames late by more than threads were kept from running",
       [](const Outcome& one) { return static_cast<double>(one.own_misses()); }},
      {"late time points", [](const Outcome& one) { return static_cast<double>(one.late_cycles); }},
      {"overruns", [](const Outcome& one) { return static_cast<double>(one.overruns); }}};
  for (const auto& [name, figure] : figures) {
    goals.at_most(place + name + ", windows with " + what + " ranked over the others",
                  rank_excess(values({with}, figure), values(without, figure)), chance, "standard deviations");
  }
}

}  // namespace sluice::cli::bench
