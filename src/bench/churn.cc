// sluice bench churn: route updates applied to a running router. Windows without and with updates take turns at one and
// the same load, so that what the updates do to latency shows beside what the machine does.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "bench/bench.h"
#include "bench/checked.h"
#include "bench/churn_windows.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/memory_use.h"
#include "bench/router_rig.h"
#include "bench/updates.h"
#include "bench/verify_table.h"
#include "function/route/route.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned rounds = 21;
constexpr double window_share = 1.0 / 3;  // of --seconds
constexpr double settle_seconds = 0.1;
constexpr double usual_load = 0.5;  // of the saturated rate
constexpr std::size_t made_updates = 100'000;
constexpr double made_per_second = 5'000;
constexpr std::uint64_t verified_frames = 200'000;

// Without updates; with a thread that wakes as often as theirs; with updates.
using Kinds = std::array<Windows, 3>;

// With a thread that wakes as often as the one that applies updates, and does nothing.
Expected<Outcome> measure_with_waking(Rig& rig, double seconds) {
  return measure_beside(rig, settle_seconds, seconds, [](const std::function<bool()>& stopped) -> Expected<void> {
    while (!stopped()) std::this_thread::sleep_for(Updater::nap);
    return {};
  });
}

Expected<Outcome> measure_with_updates(Rig& rig, Updater& updater, double seconds) {
  return measure_beside(rig, settle_seconds, seconds,
                        [&](const std::function<bool()>& stopped) { return updater.run(stopped); });
}

Expected<void> measure_windows(Rig& rig, Updater& updater, double seconds, Kinds& windows) {
  for (unsigned round = 0; round < rounds; ++round) {
    windows[0].of.push_back(rig.measure(settle_seconds, seconds));
    const auto waking = measure_with_waking(rig, seconds);
    const auto updating = waking ? measure_with_updates(rig, updater, seconds) : waking;
    if (!updating) {
      return tl::unexpected(updating.error());
    }
    windows[1].of.push_back(*waking);
    windows[2].of.push_back(*updating);
  }
  return {};
}

// How many verdicts of the device are those of the CPU.
Expected<std::uint64_t> verify_verdicts_now(Rig& rig, Checked& checked) {
  const std::uint64_t before = checked.checked.load();
  const auto seen = [&] { return checked.checked.load() - before; };
  checked.check(true);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (seen() < verified_frames && std::chrono::steady_clock::now() < end) {
    rig.measure(0.02, 0);
  }
  checked.check(false);
  if (checked.wrong.load() != 0 || seen() < verified_frames) {
    return make_error(fmt::format("NOT VERIFIED: {} batches of {} frames have other verdicts than the CPU's",
                                  checked.wrong.load(), seen()));
  }
  return seen();
}

// The table is quiet: what the device answers now is what the CPU answers, and that is what a table built from scratch
// answers.
Expected<void> verify(Rig& rig, Checked& checked, const RouterTable& table, const Updater& updater) {
  rig.measure(0.5, 0);  // every change has reached the device
  auto& router = static_cast<function::Router&>(checked.inner());
  const auto compared = verify_table(router, table, updater.state());
  if (!compared) {
    return make_error("NOT VERIFIED: " + compared.error().message);
  }
  std::uint64_t verdicts[2] = {};
  for (const int family : {6, 4}) {
    if (auto chosen = rig.replay().set_family(family); !chosen) {
      return chosen;
    }
    rig.measure(0.1, 0);  // no frame of the other family is under way
    const auto seen = verify_verdicts_now(rig, checked);
    if (!seen) {
      return tl::unexpected(seen.error());
    }
    verdicts[family == 6 ? 1 : 0] = *seen;
  }
  std::printf(
      "verified: %lu addresses at the edges of %zu changed prefixes and of others against a table built from scratch; "
      "%lu IPv4 and %lu IPv6 verdicts of the device\n",
      *compared, updater.state().size(), verdicts[0], verdicts[1]);
  return {};
}

// Of one operation on the table.
struct OperationCost {
  double p50_us, p99_us, p999_us, max_us;
};

OperationCost cost_of(const Updater& updater) {
  std::vector<float> sorted = updater.cost_us();
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return static_cast<double>(sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))]);
  };
  return {at(0.5), at(0.99), at(0.999), at(1)};
}

// The columns are those of frames: here each is an update.
Outcome csv_row(const Updater& updater, const OperationCost& cost) {
  Outcome row;
  row.frames = updater.applied();
  row.seconds = updater.seconds();
  row.p50_us = cost.p50_us;
  row.p99_us = cost.p99_us;
  row.p999_us = cost.p999_us;
  row.max_us = cost.max_us;
  return row;
}

void report(const BenchOptions& options, const std::string& device, const Updater& updater, const Kinds& windows,
            double deadline_us) {
  Yardsticks yardsticks;
  yardsticks.share = options.at > 0 ? options.at : usual_load;
  yardsticks.deadline_us = deadline_us;
  const char* const names[] = {"without updates", "with a waking thread", "with updates"};
  for (unsigned i = 0; i < windows.size(); ++i) {
    const std::string label = fmt::format("{} {}", device, names[i]);
    fmt::print("RESULT churn {}: {}\n", label, windows_text(windows[i]));
    append_csv(options, "churn", label, windows[i].of[windows[i].spread(&Outcome::p99_us).at], yardsticks);
  }
  const OperationCost cost = cost_of(updater);
  std::printf(
      "RESULT churn %s: %.0f updates/s applied (%lu in %.1f s, %lu of them announced; %lu withdrawals more were of "
      "nothing); a table operation took %.1f us, p99 %.1f, p99.9 %.1f, worst %.1f\n",
      device.c_str(), static_cast<double>(updater.applied()) / updater.seconds(), updater.applied(), updater.seconds(),
      updater.announced(), updater.unknown(), cost.p50_us, cost.p99_us, cost.p999_us, cost.max_us);
  append_csv(options, "churn", device + " table operations", csv_row(updater, cost), {});
}

void judge(Goals& goals, const Kinds& windows, std::uint64_t grown) {
  judge_windows(goals, "", "updates", {windows[0], windows[1]}, windows[2]);
  // A table that is rebuilt is a table that is allocated.
  goals.at_most("growth of DPDK's heap", static_cast<double>(grown) / 1024, 0, "KB");
}

Expected<std::vector<Update>> updates_of(const BenchOptions& options) {
  if (options.updates.empty()) {
    return make_updates(made_updates, made_per_second, 5);
  }
  return read_updates(options.updates);
}

Expected<int> run(const BenchOptions& options, const std::string& device, const RouterTable& table,
                  std::vector<Update> updates) {
  std::vector<packet::IpAddress> destinations;
  for (const Update& update : updates) {
    destinations.push_back(update.prefix.address);
  }
  if (auto sent = table.send_to(destinations); !sent) {
    return tl::unexpected(sent.error());
  }
  RigOptions of_rig = router_rig(options, table, 4, engine::Mode::full, device);
  Checked* checked = nullptr;
  of_rig.wrap = [&checked](std::unique_ptr<engine::Element> inner) {
    auto wrapper = std::make_unique<Checked>(std::move(inner), false);
    checked = wrapper.get();
    return wrapper;
  };
  auto rig = Rig::make(of_rig);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  Updater updater(static_cast<function::Router&>(checked->inner()).table(), std::move(updates),
                  *Pace::parse(options.pace));
  const Outcome saturated = (*rig)->measure(1, options.seconds);
  std::printf("%s\n", row("saturated", saturated).c_str());
  (*rig)->set_rate(static_cast<double>(saturated.frames) / saturated.seconds *
                   (options.at > 0 ? options.at : usual_load));
  const std::uint64_t heap = dpdk_bytes();
  Kinds windows;
  auto done = measure_windows(**rig, updater, options.seconds * window_share, windows);
  const std::uint64_t grown = dpdk_bytes() - std::min(heap, dpdk_bytes());
  done = done && updater.applied() == 0 ? make_error("no update fell due: raise --seconds or --pace") : done;
  done = done ? verify(**rig, *checked, table, updater) : done;
  done = done ? (*rig)->finish() : done;
  if (!done) {
    return tl::unexpected(done.error());
  }
  report(options, device, updater, windows, static_cast<double>(of_rig.engine.deadline.count()) / 1e3);
  const engine::EngineStats stats = (*rig)->engine().stats();
  if (stats.total.dropped != 0) {
    std::printf("RESULT churn %s: dropped, though every destination has a route: %s\n", device.c_str(),
                drops_text(stats).c_str());
  }
  Goals goals("churn " + device, options.goals);
  goals.at_most("dropped", static_cast<double>(stats.total.dropped), 0, "frames");
  judge(goals, windows, grown);
  return goals.status();
}

}  // namespace

int bench_churn(const BenchOptions& options) {
  const auto fail = [](const std::string& message, int status) {
    std::fprintf(stderr, "bench churn: %s\n", message.c_str());
    return status;
  };
  auto routes = RouterTable::read(options);
  if (!routes) {
    return fail(routes.error().message, 2);
  }
  auto updates = updates_of(options);
  if (!updates) {
    return fail(updates.error().message, 2);
  }
  if (auto eal = start_bench_eal(router_memory); !eal) {
    return fail(eal.error().message, 1);
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  }
  const auto table = RouterTable::make(std::move(*routes));
  if (!table) {
    return fail(table.error().message, 1);
  }
  std::printf("updates: %zu in %.1f s%s, at pace %s\n", updates->size(), updates->back().seconds,
              options.updates.empty() ? ", made up" : (" of " + options.updates).c_str(), options.pace.c_str());
  const std::string automatic = ceilings ? "cuda:0" : "cpu";
  const auto status = run(options, options.device == "auto" ? automatic : options.device, **table, std::move(*updates));
  return status ? *status : fail(status.error().message, 1);
}

}  // namespace sluice::cli::bench
