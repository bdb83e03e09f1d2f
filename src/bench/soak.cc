// sluice bench soak: the router under full load while its table churns, for as long as --hold says. It must lose no
// frame without a name, forward every frame, and not grow. With --csv a sample each second, for scripts/plot-results.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/machine.h"
#include "bench/bench.h"
#include "bench/goals.h"
#include "bench/memory_use.h"
#include "bench/router_rig.h"
#include "function/routing.h"
#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {

constexpr std::size_t churned_routes = 20'000;
constexpr unsigned changes_per_second = 5'000;
constexpr std::size_t grown_mappings = 4;   // that are named
constexpr double allowed_growth_kb = 8192;  // of the allocator's own making

void print_start(function::Routing& routing) {
  const function::RouteTable& table = routing.table();
  std::printf("start: %lu MB resident (hugepages are not counted there)\n", resident_bytes() >> 20);
  std::printf("bound: [memory] size = %lu MB, of which frames and forwarding tables have taken %lu MB, all of it now\n",
              router_memory >> 20, dpdk_bytes() >> 20);
  std::printf("bound: [route] max_ipv4 = %u and max_ipv6 = %u routes, of which %zu and %zu are there\n",
              routing.capacity(4), routing.capacity(6), table.size(4), table.size(6));
}

// One line for each second. Nothing without a file.
class Series {
 public:
  static Expected<Series> open(const std::string& path) {
    Series series;
    if (path.empty()) {
      return series;
    }
    if (std::filesystem::exists(path)) {
      return make_error("--csv " + path + ": is there already; a soak writes a file of its own");
    }
    series.file_.open(path);
    if (!(series.file_ << "seconds,resident,changes,frames,dropped,late\n").flush()) {
      return make_error("--csv " + path + ": cannot be written");
    }
    return series;
  }
  void sample(double seconds, std::uint64_t resident, std::uint64_t changes, const engine::EngineStats& stats) {
    next_ += 1;
    file_ << fmt::format("{:.2f},{},{},{},{},{}\n", seconds, resident, changes, stats.total.tx_frames,
                         stats.total.dropped, stats.total.misses);
    file_.flush();
  }
  bool due(double seconds) const { return file_.is_open() && seconds >= next_; }
  bool complete() const { return !file_.is_open() || file_.good(); }

 private:
  std::ofstream file_;
  double next_ = 0;
};

// Announces and withdraws, turn and turn about, prefixes that the table may or may not hold, at a metric of their own.
class Churn {
 public:
  Churn(function::RouteTable& table, lookup::RouteList list)
      : table_(table), list_(std::move(list)), there_(list_.routes.size()) {}
  Expected<void> step(unsigned count) {
    for (; count != 0; --count, ++changes_) {
      const std::size_t at = changes_ % list_.routes.size();
      const packet::IpPrefix& prefix = list_.routes[at].prefix;
      Expected<void> done;
      if (there_[at]) {
        done = table_.remove_route(prefix, 7);
      } else {
        function::Route route;
        route.prefix = prefix;
        route.metric = 7;
        const char* gateway = prefix.address.family == 4 ? "198.19.0.9" : "2001:2:0:19::9";
        route.next_hops = {{0, *packet::IpAddress::parse(gateway), 1}};
        done = table_.add_route(route);
      }
      if (!done) {
        return done;
      }
      there_[at] = !there_[at];
    }
    return {};
  }
  std::uint64_t changes() const { return changes_; }

 private:
  function::RouteTable& table_;
  lookup::RouteList list_;
  std::vector<bool> there_;
  std::uint64_t changes_ = 0;
};

// What a run was like. The first figures are taken once every route has come and gone, and caches are warm.
struct Held {
  double seconds = 0;
  double settled = 0;  // the second of the first figures
  std::uint64_t resident = 0;
  std::uint64_t first_resident = 0;
  std::uint64_t first_dpdk = 0;  // on hugepages, which the resident size does not show
  Resident first_mappings, last_mappings;
};

Expected<Held> hold(engine::Engine& engine, Churn& churn, Series& series, double length) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Held held;
  held.settled = std::min(30.0, length / 4);
  double next_report = 0;
  while (seconds() < length) {
    if (auto stepped = churn.step(changes_per_second / 100); !stepped) {
      return tl::unexpected(stepped.error());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    held.resident = resident_bytes();
    if (held.first_resident == 0 && seconds() >= held.settled) {
      held.first_resident = held.resident;
      held.first_dpdk = dpdk_bytes();
      held.first_mappings = resident_by_mapping();
    }
    if (series.due(seconds())) {
      series.sample(seconds(), held.resident, churn.changes(), engine.stats());
    }
    if (seconds() >= next_report) {
      next_report += 30;
      const engine::EngineStats stats = engine.stats();
      std::printf("%5.0f s: %lu MB resident, %lu route changes, %lu frames, %lu dropped, %lu late\n", seconds(),
                  held.resident >> 20, churn.changes(), stats.total.tx_frames, stats.total.dropped, stats.total.misses);
      std::fflush(stdout);
    }
  }
  held.seconds = seconds();
  held.last_mappings = resident_by_mapping();
  return held;
}

}  // namespace

int bench_soak(const BenchOptions& options) {
  const auto fail = [](const std::string& message, int status = 1) {
    std::fprintf(stderr, "bench soak: %s\n", message.c_str());
    return status;
  };
  auto routes = RouterTable::read(options);
  if (!routes) {
    return fail(routes.error().message, 2);
  }
  auto series = Series::open(options.csv);
  if (!series) {
    return fail(series.error().message, 2);
  }
  if (auto eal = start_bench_eal(router_memory); !eal) {
    return fail(eal.error().message);
  }
  if (const auto ceilings = print_ceilings(options, true); !ceilings) {
    std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  }
  const auto table = RouterTable::make(std::move(*routes));
  if (!table) {
    return fail(table.error().message);
  }
  auto rig =
      Rig::make(router_rig(options, **table, 4, engine::Mode::full, options.device == "auto" ? "cpu" : options.device));
  if (!rig) {
    return fail(rig.error().message);
  }
  function::Routing& routing = *(*rig)->engine().pipeline().first<function::Routing>();
  Churn churn(routing.table(), lookup::make_routes(churned_routes, churned_routes / 10, 99));
  (*rig)->engine().start();
  print_start(routing);
  const auto held = hold((*rig)->engine(), churn, *series, options.hold);
  if (!held) {
    return fail(held.error().message);
  }
  if (auto finished = (*rig)->finish(); !finished) {
    return fail(finished.error().message);
  }
  const engine::EngineStats stats = (*rig)->engine().stats();
  const auto dpdk_growth = static_cast<std::int64_t>(dpdk_bytes()) - static_cast<std::int64_t>(held->first_dpdk);
  const auto growth = static_cast<std::int64_t>(held->resident) - static_cast<std::int64_t>(held->first_resident);
  std::printf(
      "RESULT soak: %.0f s, %lu route changes, %lu frames, %lu dropped, %lu late, %.1f %% computed by the GPU, "
      "counters add "
      "up, %lu MB resident, %+ld KB since second %.0f; DPDK's heap %+ld KB\n",
      held->seconds, churn.changes(), stats.total.tx_frames, stats.total.dropped, stats.total.misses,
      100 * static_cast<double>(stats.total.frames_gpu) /
          static_cast<double>(std::max<std::uint64_t>(1, stats.total.frames_gpu + stats.total.frames_cpu)),
      held->resident >> 20, growth >> 10, held->settled, dpdk_growth >> 10);
  std::printf("grown: %s\n", growth_text(held->first_mappings, held->last_mappings, grown_mappings).c_str());
  if (!series->complete()) {
    return fail("the series was not written to " + options.csv + " as a whole");
  }
  if (stats.total.dropped != 0) {
    return fail("a default route matches everything, and yet frames were dropped");
  }
  Goals goals("soak", options.goals);
  goals.at_most("growth of the resident size", static_cast<double>(growth) / 1024, allowed_growth_kb, "KB");
  goals.at_most("growth of DPDK's heap", static_cast<double>(dpdk_growth) / 1024, allowed_growth_kb, "KB");
  return goals.status();
}

}  // namespace sluice::cli::bench
