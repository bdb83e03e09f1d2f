// sluice bench route and sluice bench idle: the router's cost per frame, and its latency when little happens.
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "cli/bench/bench.h"
#include "cli/bench/router_rig.h"
#include "cli/bench/testpmd.h"
#include "cli/bench/verify.h"

namespace sluice::cli::bench {
namespace {

std::string device_label(const std::string& device, int family, const char* mode) {
  return fmt::format("{} IPv{} {}", device, family, mode);
}

// Rate of one mode, saturated; 0 after an error, which is printed.
double measure_mode(const BenchOptions& options, const std::string& settings, int family, engine::Mode mode,
                    const char* name, const std::string& device) {
  auto rig = Rig::make(router_rig(options, settings, family, mode, device));
  if (!rig) {
    std::fprintf(stderr, "bench route: %s\n", rig.error().message.c_str());
    return 0;
  }
  const Outcome outcome = (*rig)->measure(1.0, options.seconds);
  const double per_core =
      outcome.seconds * 1e9 * (*rig)->lanes() / static_cast<double>(outcome.frames + outcome.dropped);
  std::printf("%s | %.1f ns per frame and core\n", row(device_label(device, family, name), outcome).c_str(), per_core);
  std::fflush(stdout);
  append_csv(options, "route", device_label(device, family, name), outcome, 0);
  if (auto finished = (*rig)->finish(); !finished) {
    std::fprintf(stderr, "bench route: %s\n", finished.error().message.c_str());
    return 0;
  }
  return static_cast<double>(outcome.frames + (mode == engine::Mode::collector_only ? outcome.dropped : 0)) /
         outcome.seconds;
}

}  // namespace

int bench_route(const BenchOptions& options) {
  // Before DPDK takes the hugepages in this process.
  const Testpmd testpmd = run_testpmd_mac(options.seconds);
  if (auto eal = start_bench_eal(router_memory); !eal) {
    std::fprintf(stderr, "bench route: %s\n", eal.error().message.c_str());
    return 1;
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    std::printf("no GPU: %s\n", ceilings.error().message.c_str());
  }
  if (testpmd.mpps > 0) {
    std::printf("dpdk-testpmd --forward-mode=mac on two net_null ports, one core, %s: %.1f Mpps, %.1f ns per frame\n",
                testpmd.hugepages ? "hugepages" : "ordinary pages", testpmd.mpps, 1000 / testpmd.mpps);
  } else {
    std::printf("dpdk-testpmd: %s\n", testpmd.why.c_str());
  }
  const std::string path = fmt::format("/tmp/sluice-bench-routes-{}.txt", getpid());
  const auto settings = write_settings(options, path);
  if (!settings) {
    std::fprintf(stderr, "bench route: %s\n", settings.error().message.c_str());
    return 1;
  }
  std::vector<std::string> devices{"cpu"};
  if (ceilings && options.device != "cpu") {
    devices.push_back(options.device == "auto" ? "cuda:0" : options.device);
  }
  int status = 0;
  for (const std::string& device : devices) {
    std::array<double, 2> full{};
    for (const int family : {4, 6}) {
      const auto checked = verify_verdicts(router_rig(options, *settings, family, engine::Mode::full, device), 300'000);
      if (!checked) {
        std::fprintf(stderr, "bench route: NOT VERIFIED on %s: %s\n", device.c_str(), checked.error().message.c_str());
        status = 1;
        continue;
      }
      std::printf("verified on %s: %lu IPv%d verdicts against rte_fib's\n", device.c_str(), *checked, family);
      measure_mode(options, *settings, family, engine::Mode::collector_only, "collector-only", device);
      const double zero = measure_mode(options, *settings, family, engine::Mode::zero_load, "zero-load", device);
      const double rate = measure_mode(options, *settings, family, engine::Mode::full, "full-load", device);
      full[family == 6] = rate;
      const double per_core = default_lanes(options) * 1e9 / rate;
      std::printf("RESULT route %s IPv%d: full-load %.1f Mpps = %.1f %% of zero-load; %.1f ns per frame and core",
                  device.c_str(), family, rate / 1e6, 100 * rate / zero, per_core);
      if (testpmd.mpps > 0) {
        std::printf(" = %.2f times testpmd's", per_core / (1000 / testpmd.mpps));
      }
      std::printf("\n");
    }
    std::printf("RESULT route %s: IPv6 at %.1f %% of IPv4\n", device.c_str(), 100 * full[1] / full[0]);
    std::fflush(stdout);
  }
  unlink(path.c_str());
  return status;
}

int bench_idle(const BenchOptions& options) {
  if (auto eal = start_bench_eal(router_memory); !eal) {
    std::fprintf(stderr, "bench idle: %s\n", eal.error().message.c_str());
    return 1;
  }
  const std::string path = fmt::format("/tmp/sluice-bench-routes-{}.txt", getpid());
  const auto settings = write_settings(options, path);
  if (!settings) {
    std::fprintf(stderr, "bench idle: %s\n", settings.error().message.c_str());
    return 1;
  }
  auto rig = Rig::make(
      router_rig(options, *settings, 4, engine::Mode::full, options.device == "auto" ? "cpu" : options.device));
  unlink(path.c_str());
  if (!rig) {
    std::fprintf(stderr, "bench idle: %s\n", rig.error().message.c_str());
    return 1;
  }
  const Outcome saturated = (*rig)->measure(1.0, options.seconds);
  std::printf("%s\n", row("saturated", saturated).c_str());
  for (const double load : {0.01, 0.1, 0.5, 0.9}) {
    (*rig)->set_rate(static_cast<double>(saturated.frames) / saturated.seconds * load);
    const Outcome outcome = (*rig)->measure(0.5, options.seconds);
    std::printf("RESULT idle %s\n", row(fmt::format("{:.0f} % load", load * 100), outcome).c_str());
    append_csv(options, "idle", fmt::format("{:.0f} % load", load * 100), outcome, load);
  }
  if (auto finished = (*rig)->finish(); !finished) {
    std::fprintf(stderr, "bench idle: %s\n", finished.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace sluice::cli::bench
