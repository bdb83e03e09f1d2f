// How fast a full table comes out of a real kernel: the first dump, a dump that finds no difference, and notifications.
// The argument is the number of routes. Needs root (a network namespace of its own); the control plane only records.
#include <benchmark/benchmark.h>
#include <poll.h>

#include <cstdlib>
#include <fstream>

#include "../tests/support/net_namespace.h"
#include "control/netlink/mirror.h"
#include "port/tap_twin.h"

namespace sluice::control {
namespace {

// Takes everything and keeps nothing, so that the mirror is what is measured.
class CountingPlane : public function::ControlPlane {
 public:
  Expected<void> add_route(const function::Route&) override { return ++routes, Expected<void>{}; }
  Expected<void> remove_route(const packet::IpPrefix&, std::uint32_t) override { return {}; }
  Expected<void> add_neighbour(function::PortIndex, const packet::IpAddress&, const packet::MacAddress&) override {
    return {};
  }
  Expected<void> remove_neighbour(function::PortIndex, const packet::IpAddress&) override { return {}; }
  void set_link(function::PortIndex, bool, std::uint32_t) override {}
  void set_source(std::optional<function::PortIndex>, int, const packet::IpAddress&) override {}
  void set_ingress(function::PortIndex, const function::PortIngress&) override {}
  std::size_t routes = 0;
};

class Kernel {
 public:
  Kernel() : inside_(space_.enter()), twin_(port::TapTwin::open("sl-a", packet::MacAddress{{2, 0, 0, 0, 0, 1}}, 1500)) {
    ready_ = twin_.has_value() && space_.run("ip addr add 10.0.0.1/8 dev sl-a") == 0;
  }
  bool ready() const { return ready_; }
  // `verb`: add or replace; `count` IPv4 routes.
  void routes(const std::string& verb, std::int64_t count, const std::string& gateway) {
    const std::string path = "/tmp/mirror_bench_batch";
    std::ofstream file(path);
    for (std::int64_t i = 0; i < count; ++i) {
      file << "route " << verb << " " << 20 + i / 65536 << "." << i / 256 % 256 << "." << i % 256 << ".0/24 via "
           << gateway << "\n";
    }
    file.close();
    space_.run("ip -batch " + path + " && rm " + path);
  }
  MirrorOptions options() const {
    MirrorOptions options;
    options.twins = {{0, "sl-a"}};
    options.receive_buffer = 1 << 30;
    options.resync_pause = {};
    return options;
  }

 private:
  test::NetNamespace space_;
  test::NetNamespace::Entry inside_;
  Expected<port::TapTwin> twin_;
  bool ready_ = false;
};

bool skipped(benchmark::State& state, const Kernel& kernel) {
  if (!kernel.ready()) state.SkipWithError("needs root and /dev/net/tun");
  return !kernel.ready();
}

void first_dump(benchmark::State& state) {
  Kernel kernel;
  if (skipped(state, kernel)) return;
  kernel.routes("add", state.range(0), "10.0.0.2");
  for (auto _ : state) {
    CountingPlane plane;
    auto mirror = NetlinkMirror::open(kernel.options(), plane);
    if (!mirror || !(*mirror)->start() || plane.routes < static_cast<std::size_t>(state.range(0))) {
      state.SkipWithError("the dump failed");
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void resync_without_difference(benchmark::State& state) {
  Kernel kernel;
  if (skipped(state, kernel)) return;
  kernel.routes("add", state.range(0), "10.0.0.2");
  CountingPlane plane;
  auto mirror = NetlinkMirror::open(kernel.options(), plane);
  if (!mirror || !(*mirror)->start()) return state.SkipWithError("the dump failed");
  for (auto _ : state) {
    (*mirror)->resync();
    (void)(*mirror)->tick(NetlinkMirror::Clock::now() + std::chrono::hours(1));
    while (!(*mirror)->settled()) (void)(*mirror)->process();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void notifications(benchmark::State& state) {
  Kernel kernel;
  if (skipped(state, kernel)) return;
  kernel.routes("add", state.range(0), "10.0.0.2");
  CountingPlane plane;
  auto mirror = NetlinkMirror::open(kernel.options(), plane);
  if (!mirror || !(*mirror)->start()) return state.SkipWithError("the dump failed");
  bool flip = false;
  for (auto _ : state) {
    state.PauseTiming();
    kernel.routes("replace", state.range(0), (flip = !flip) ? "10.0.0.3" : "10.0.0.2");
    const std::size_t wanted = plane.routes + static_cast<std::size_t>(state.range(0));
    state.ResumeTiming();
    while (plane.routes < wanted) (void)(*mirror)->process();
  }
  if ((*mirror)->stats().overruns != 0) state.SkipWithError("notifications were lost");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(first_dump)->Arg(100000)->Arg(600000)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(resync_without_difference)->Arg(100000)->Arg(600000)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(notifications)->Arg(100000)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::control
