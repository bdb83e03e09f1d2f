// sluice bench route and sluice bench idle: the router's cost per frame, and its latency when little happens.
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <utility>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/route_rounds.h"
#include "bench/router_rig.h"
#include "bench/testpmd.h"
#include "bench/verify.h"
#include "bench/verify_frames.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint64_t verified_frames = 300'000;
constexpr double goal_of_zero_load = 90;  // % of zero-load's frames that full-load forwards
constexpr double goal_times_testpmd = 2;  // testpmd's time for a frame
constexpr double goal_of_ipv4 = 85;       // % of IPv4's frames that IPv6 forwards

constexpr double idle_load = 0.01, idle_p99_us = 50;
constexpr std::pair<Work, const char*> works[] = {
    {Work::full, "full-load"}, {Work::zero_load, "zero-load"}, {Work::mac_loop, "MAC loop"}};

std::string device_label(const std::string& device, int family, const char* work) {
  return fmt::format("{} IPv{} {}", device, family, work);
}

std::string spread_text(const Spread& spread, double factor, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", spread.median * factor, digits, spread.low * factor, digits,
                     spread.high * factor, digits);
}

Yardsticks yardsticks(const RoundsOfWork& rounds) {
  Yardsticks one;
  const Spread ns = rounds.spread();
  one.ns_per_frame = ns.median;
  one.ns_low = ns.low;
  one.ns_high = ns.high;
  return one;
}

// What receiving and collecting alone cost, in a run of its own: the engine's mode cannot change while it runs.
Expected<void> measure_collector(const BenchOptions& options, const RouterTable& table, const std::string& device) {
  auto rig = Rig::make(router_rig(options, table, 4, engine::Mode::collector_only, device));
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  for (const int family : {4, 6}) {
    if (auto chosen = (*rig)->replay().set_family(family); !chosen) {
      return chosen;
    }
    const Outcome outcome = (*rig)->measure(0.5, options.seconds);
    Yardsticks yardsticks;
    yardsticks.ns_per_frame = outcome.seconds * 1e9 * (*rig)->cores() / static_cast<double>(outcome.frames);
    const std::string label = device_label(device, family, "collector-only");
    std::printf("%-26s %8.2f Mpps, dropped as measured_only | %.1f ns per frame and core\n", label.c_str(),
                outcome.mpps(), yardsticks.ns_per_frame);
    yardsticks.setting = fmt::format("{} lanes on {} cores", (*rig)->lanes(), (*rig)->cores());
    append_csv(options, "route", label, outcome, yardsticks);
  }
  return (*rig)->finish();
}

void print_rounds(const BenchOptions& options, const std::string& device, int family, const RouteRounds& rounds) {
  for (const auto& [work, name] : works) {
    const RoundsOfWork& one = rounds.get(family, work);
    if (one.empty()) {
      continue;
    }
    const std::string label = device_label(device, family, name);
    const std::string ns = spread_text(one.spread(), 1, 1);
    if (work == Work::mac_loop) {
      std::printf("%-26s %8.2f Mpps | %s ns per frame and core\n", label.c_str(), one.median().mpps(), ns.c_str());
    } else {
      std::printf("%s | %s ns per frame and core\n", row(label, one.median()).c_str(), ns.c_str());
    }
    Yardsticks columns = yardsticks(one);
    if (work != Work::mac_loop) {
      columns.deadline_us = static_cast<double>(rounds.deadline.count()) / 1e3;
    }
    columns.setting = rounds.cores;
    append_csv(options, "route", label, one.median(), columns);
  }
}

// Its samples between the rounds of the device.
void report_testpmd(const BenchOptions& options, const std::string& device, const RouteRounds& rounds, bool hugepages) {
  const Spread mpps = spread_of(rounds.testpmd);
  std::printf(
      "dpdk-testpmd --forward-mode=mac on two net_null ports, one core, %s, %zu samples between the rounds: %s Mpps, "
      "%.1f ns per frame\n",
      hugepages ? "hugepages" : "ordinary pages", rounds.testpmd.size(), spread_text(mpps, 1, 1).c_str(),
      1000 / mpps.median);
  Outcome outcome;
  outcome.seconds = 1;
  outcome.frames = static_cast<std::uint64_t>(mpps.median * 1e6);
  outcome.rounds = static_cast<unsigned>(rounds.testpmd.size());
  outcome.mpps_low = mpps.low;
  outcome.mpps_high = mpps.high;
  Yardsticks yardsticks;
  yardsticks.ns_per_frame = 1000 / mpps.median;
  yardsticks.ns_low = 1000 / mpps.high;
  yardsticks.ns_high = 1000 / mpps.low;
  append_csv(options, "route", "testpmd mac on null ports beside " + device, outcome, yardsticks);
}

// The router beside both yardsticks. On a GPU the loop is the one of the CPU's run.
void print_result(const std::string& device, int family, const RouteRounds& rounds, const RouteRounds& cpu,
                  Goals& goals) {
  const RoundsOfWork& full = rounds.get(family, Work::full);
  const RoundsOfWork& loop = cpu.get(family, Work::mac_loop);
  const double ns = full.spread().median;
  const Spread of_zero_load = ratio(rounds.get(family, Work::zero_load), full);
  std::printf("RESULT route %s IPv%d: full-load %.1f Mpps = %s %% of zero-load; %s ns per frame and core",
              device.c_str(), family, full.median().mpps(), spread_text(of_zero_load, 100, 1).c_str(),
              spread_text(full.spread(), 1, 1).c_str());
  if (!loop.empty()) {
    std::printf(" = %s times the MAC loop's on the same port and frames", spread_text(ratio(full, loop), 1, 2).c_str());
  }
  const double times_testpmd = rounds.testpmd.empty() ? 0 : ns * spread_of(rounds.testpmd).median / 1000;
  if (times_testpmd > 0) {
    std::printf(", %.2f times testpmd's on null ports", times_testpmd);
  }
  std::printf("\n");
  const std::string label = fmt::format("{} IPv{}", device, family);
  goals.at_least(label + ": full-load of zero-load", 100 * of_zero_load.median, goal_of_zero_load, "%");
  if (times_testpmd > 0) {
    goals.at_most(label + ": time for a frame", times_testpmd, goal_times_testpmd, "times testpmd's");
  } else {
    goals.without(label + ": time for a frame beside testpmd's", "it could not be run");
  }
}

Expected<void> verify_device(const BenchOptions& options, const RouterTable& table, const FrameVerifier& verifier,
                             const std::string& device) {
  for (const int family : {4, 6}) {
    if (device != "cpu") {  // that one's verdicts are rte_fib's
      const auto checked =
          verify_verdicts(router_rig(options, table, family, engine::Mode::full, device), verified_frames);
      if (!checked) {
        return make_error(fmt::format("NOT VERIFIED: IPv{}: {}", family, checked.error().message));
      }
      std::printf("verified on %s: %lu IPv%d verdicts against rte_fib's\n", device.c_str(), *checked, family);
    }
    const auto frames = verifier.verify(options, family, device, verified_frames);
    if (!frames) {
      return make_error(fmt::format("NOT VERIFIED: IPv{}: {}", family, frames.error().message));
    }
    std::printf(
        "verified on %s: %lu IPv%d frames of %u flows as they left, %lu of them with a choice of next hops: TTL, "
        "checksum, both link addresses, port, content, against a table of hash maps, and of all routes for %u flows\n",
        device.c_str(), frames->frames, family, frames->flows, frames->ecmp_frames, frames->slowly);
  }
  return {};
}

Expected<void> run_device(const BenchOptions& options, const RouterTable& table, const std::string& device,
                          Testpmd* testpmd, RouteRounds& cpu, Goals& goals) {
  if (auto collected = measure_collector(options, table, device); !collected) {
    return collected;
  }
  const auto rounds = measure_rounds(options, table, device, testpmd);
  if (!rounds) {
    return tl::unexpected(rounds.error());
  }
  if (rounds->loops.frames != 0) {
    std::printf(
        "verified on %s: of %lu frames looked at, the MAC loop had rewritten %lu and the replay port, since, %lu\n",
        device.c_str(), rounds->loops.touched + rounds->loops.refreshed, rounds->loops.touched,
        rounds->loops.refreshed);
    cpu = *rounds;
  }
  if (testpmd != nullptr) {
    report_testpmd(options, device, *rounds, testpmd->hugepages());
  }
  std::printf("rounds: %zu of each in turn; below: the median round, and the least and most of all\n",
              rounds->get(4, Work::full).ns.size());
  for (const int family : {4, 6}) {
    print_rounds(options, device, family, *rounds);
  }
  for (const int family : {4, 6}) {
    print_result(device, family, *rounds, cpu, goals);
  }
  const Spread of_ipv4 = ratio(rounds->get(4, Work::full), rounds->get(6, Work::full));
  std::printf("RESULT route %s: IPv6 at %s %% of IPv4\n", device.c_str(), spread_text(of_ipv4, 100, 1).c_str());
  goals.at_least(device + ": IPv6 of IPv4", 100 * of_ipv4.median, goal_of_ipv4, "%");
  std::fflush(stdout);
  return {};
}

}  // namespace

int bench_route(const BenchOptions& options) {
  auto routes = RouterTable::read(options);
  if (!routes) {
    std::fprintf(stderr, "bench route: %s\n", routes.error().message.c_str());
    return 2;
  }
  // Before DPDK takes the hugepages in this process.
  auto testpmd = Testpmd::start();
  if (!testpmd) {
    std::printf("dpdk-testpmd: %s\n", testpmd.error().message.c_str());
  }
  if (auto eal = start_bench_eal(router_memory); !eal) {
    std::fprintf(stderr, "bench route: %s\n", eal.error().message.c_str());
    return 1;
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  }
  const auto table = RouterTable::make(std::move(*routes));
  if (!table) {
    std::fprintf(stderr, "bench route: %s\n", table.error().message.c_str());
    return 1;
  }
  const auto verifier = FrameVerifier::make(**table);
  if (!verifier) {
    std::fprintf(stderr, "bench route: %s\n", verifier.error().message.c_str());
    return 1;
  }
  std::vector<std::string> devices;
  if (options.device == "auto" || options.device == "cpu") {
    devices.emplace_back("cpu");
  }
  if (ceilings && options.device != "cpu") {
    devices.push_back(options.device == "auto" ? "cuda:0" : options.device);
  }
  int status = 0;
  Goals goals("route", options.goals);
  RouteRounds cpu;
  for (const std::string& device : devices) {
    if (auto right = verify_device(options, **table, *verifier, device); !right) {
      std::fprintf(stderr, "bench route: %s: %s\n", device.c_str(), right.error().message.c_str());
      status = 1;
      continue;
    }
    if (auto done = run_device(options, **table, device, testpmd ? testpmd->get() : nullptr, cpu, goals); !done) {
      std::fprintf(stderr, "bench route: %s: %s\n", device.c_str(), done.error().message.c_str());
      status = 1;
    }
  }
  return status | goals.status();
}

int bench_idle(const BenchOptions& options) {
  auto routes = RouterTable::read(options);
  if (!routes) {
    std::fprintf(stderr, "bench idle: %s\n", routes.error().message.c_str());
    return 2;
  }
  if (auto eal = start_bench_eal(router_memory); !eal) {
    std::fprintf(stderr, "bench idle: %s\n", eal.error().message.c_str());
    return 1;
  }
  if (const auto ceilings = print_ceilings(options, true); !ceilings) {
    std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  }
  const auto table = RouterTable::make(std::move(*routes));
  if (!table) {
    std::fprintf(stderr, "bench idle: %s\n", table.error().message.c_str());
    return 1;
  }
  auto rig =
      Rig::make(router_rig(options, **table, 4, engine::Mode::full, options.device == "auto" ? "cpu" : options.device));
  if (!rig) {
    std::fprintf(stderr, "bench idle: %s\n", rig.error().message.c_str());
    return 1;
  }
  const Outcome saturated = (*rig)->measure(1.0, options.seconds);
  std::printf("%s\n", row("saturated", saturated).c_str());
  Goals goals("idle", options.goals);
  for (const double load : {idle_load, 0.1, 0.5, 0.9}) {
    (*rig)->set_rate(static_cast<double>(saturated.frames) / saturated.seconds * load);
    const Outcome outcome = (*rig)->measure(0.5, options.seconds);
    std::printf("RESULT idle %s\n", row(fmt::format("{:.0f} % load", load * 100), outcome).c_str());
    if (load == idle_load) {
      goals.at_most("p99 at 1 % load", outcome.p99_us, idle_p99_us, "us");
    }
    Yardsticks yardsticks;
    yardsticks.share = load;
    yardsticks.deadline_us = static_cast<double>((*rig)->engine().options().deadline.count()) / 1e3;
    append_csv(options, "idle", fmt::format("{:.0f} % load", load * 100), outcome, yardsticks);
  }
  if (auto finished = (*rig)->finish(); !finished) {
    std::fprintf(stderr, "bench idle: %s\n", finished.error().message.c_str());
    return 1;
  }
  return goals.status();
}

}  // namespace sluice::cli::bench
