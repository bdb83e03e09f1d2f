// Lookups and changes at 600 K IPv4 and 200 K IPv6 routes. Tables are checked against one another before anything is
// timed.
//
//   lookup4/32/0: bulk of 32, destinations spread over all routes; /1: as in a trace, few of them most of the time.
//   change: one announce or withdraw (half each) of a route that exists, Fib alone or with the GPU's trie and change
//   log. gpu_*: with a real GPU only; keys and results in host memory.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "lookup/bench_eal.h"
#include "lookup/change_log.h"
#include "lookup/fib.h"
#include "lookup/gpu_fib.h"
#include "lookup/route_file.h"
#include "lookup/trie.h"

namespace sluice::lookup {
namespace {

constexpr std::size_t routes4 = 600'000;
constexpr std::size_t routes6 = 200'000;
constexpr std::size_t keys = 1U << 18;
enum Pattern { spread, trace };

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "lookup_bench: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T need(Expected<T> value) {
  return value ? std::move(*value) : (die(value.error().message), T{});
}

struct Key6 {
  std::uint8_t bytes[16];
};

struct World {
  World() {
    start_bench_eal();
    fib = need(Fib::create({.name = "bench", .max_routes4 = routes4, .max_routes6 = routes6}));
    trie4 = need(Trie::create(4, Fib::default_groups(4, routes4) * 2));
    trie6 = need(Trie::create(6, Fib::default_groups(6, routes6) * 2));
    list = make_routes(routes4, routes6, 1);
    for (const RouteLine& line : list.routes) {
      if (auto ok = fib->add(line.prefix, line.next_hop); !ok) {
        die(ok.error().message);
      }
    }
    if (!fib->attach(*trie4) || !fib->attach(*trie6)) {
      die("the tries do not hold the routes");
    }
    fib->detach(*trie4);
    fib->detach(*trie6);
    for (const Pattern pattern : {spread, trace}) {
      make_keys(pattern);
      check(pattern);
    }
  }

  // A destination inside each route drawn. In a trace the route of rank r is drawn with a share of about 1/r.
  void make_keys(Pattern pattern) {
    std::mt19937_64 random(pattern);
    const auto draw = [&](std::size_t first, std::size_t count) {
      const double u = static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
      const double rank =
          pattern == spread ? u * static_cast<double>(count) : std::exp(u * std::log(static_cast<double>(count))) - 1;
      packet::IpPrefix prefix = list.routes[first + std::min(count - 1, static_cast<std::size_t>(rank))].prefix;
      const std::uint64_t bits = pattern == spread ? random() : 1;
      for (unsigned bit = prefix.length; bit < prefix.address.bits(); ++bit) {
        if (bits >> (bit % 64) & 1) {
          prefix.address.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
        }
      }
      return prefix.address;
    };
    for (std::size_t i = 0; i < keys; ++i) {
      keys4[pattern].push_back(draw(0, routes4).v4_host_order());
      const packet::IpAddress address = draw(routes4, routes6);
      Key6 key;
      std::memcpy(key.bytes, address.bytes.data(), 16);
      keys6[pattern].push_back(key);
    }
  }

  const std::uint8_t (*key6(Pattern pattern, std::size_t i) const)[16] {
    return reinterpret_cast<const std::uint8_t(*)[16]>(keys6[pattern][i].bytes);
  }

  void check(Pattern pattern) const {
    std::vector<NextHopId> out4(keys);
    std::vector<NextHopId> out6(keys);
    fib->lookup4(keys4[pattern].data(), out4.data(), keys);
    fib->lookup6(key6(pattern, 0), out6.data(), keys);
    for (std::size_t i = 0; i < keys; ++i) {
      if (out4[i] != trie4->lookup4(keys4[pattern][i]) || out6[i] != trie6->lookup6(keys6[pattern][i].bytes) ||
          out4[i] == no_route || out6[i] == no_route) {
        die("the tables disagree");
      }
    }
  }

  std::unique_ptr<Fib> fib;
  std::unique_ptr<Trie> trie4;
  std::unique_ptr<Trie> trie6;
  RouteList list;
  std::vector<std::uint32_t> keys4[2];
  std::vector<Key6> keys6[2];
};

World& world() {
  static World one;
  return one;
}

void lookup4(benchmark::State& state) {
  const World& w = world();
  const auto bulk = static_cast<unsigned>(state.range(0));
  const auto& from = w.keys4[state.range(1)];
  std::vector<NextHopId> out(bulk);
  std::size_t at = 0;
  for (auto _ : state) {
    w.fib->lookup4(from.data() + at, out.data(), bulk);
    benchmark::DoNotOptimize(out.data());
    at = (at + bulk) % (keys - 256);
  }
  state.SetItemsProcessed(state.iterations() * bulk);
}

void lookup6(benchmark::State& state) {
  const World& w = world();
  const auto bulk = static_cast<unsigned>(state.range(0));
  const auto pattern = static_cast<Pattern>(state.range(1));
  std::vector<NextHopId> out(bulk);
  std::size_t at = 0;
  for (auto _ : state) {
    w.fib->lookup6(w.key6(pattern, at), out.data(), bulk);
    benchmark::DoNotOptimize(out.data());
    at = (at + bulk) % (keys - 256);
  }
  state.SetItemsProcessed(state.iterations() * bulk);
}

BENCHMARK(lookup4)->ArgsProduct({{32, 64, 256}, {spread, trace}});
BENCHMARK(lookup6)->ArgsProduct({{32, 64, 256}, {spread, trace}});

// Withdraws and announces again, in random order, and calls `each` after every change.
template <typename Each>
void change_routes(benchmark::State& state, int family, const Each& each) {
  World& w = world();
  std::mt19937_64 random(9);
  const std::size_t first = family == 4 ? 0 : routes4;
  const std::size_t count = family == 4 ? routes4 : routes6;
  const RouteLine* line = nullptr;
  for (auto _ : state) {
    if (line == nullptr) {
      line = &w.list.routes[first + random() % count];
      benchmark::DoNotOptimize(w.fib->remove(line->prefix).has_value());
    } else {
      benchmark::DoNotOptimize(w.fib->add(line->prefix, line->next_hop).has_value());
      line = nullptr;
    }
    each();
  }
  if (line != nullptr) {
    benchmark::DoNotOptimize(w.fib->add(line->prefix, line->next_hop).has_value());
  }
  state.SetItemsProcessed(state.iterations());
}

void change_fib(benchmark::State& state) {
  const World& w = world();
  change_routes(state, static_cast<int>(state.range(0)), [] {});
  state.counters["fib_MiB"] = static_cast<double>(w.fib->memory_bytes() >> 20);
  state.counters["trie4_MiB"] = static_cast<double>(w.trie4->slots_touched() * sizeof(std::uint32_t) >> 20);
  state.counters["trie6_MiB"] = static_cast<double>(w.trie6->slots_touched() * sizeof(std::uint32_t) >> 20);
}

void change_fib_trie_and_log(benchmark::State& state) {
  World& w = world();
  const auto family = static_cast<int>(state.range(0));
  Trie& trie = family == 4 ? *w.trie4 : *w.trie6;
  if (!w.fib->attach(trie)) {
    die("the trie does not hold the routes");
  }
  {
    ChangeLog log(trie, [] { return false; });
    std::vector<Run> runs(4096);
    std::vector<std::uint32_t> values(16384);
    ChangeSet set{runs.data(), values.data(), 4096, 16384, 0, 0, 0, 0, false};
    std::uint64_t bytes = 0;
    unsigned changes = 0;
    change_routes(state, family, [&] {
      // As the engine does: once for some changes.
      if (++changes % 16 == 0 && log.pack(set, 65536, true)) {
        bytes += set.runs * sizeof(Run) + set.values_used * sizeof(std::uint32_t);
        log.release_retired();
      }
    });
    state.counters["sent_bytes"] = static_cast<double>(bytes) / static_cast<double>(changes);
  }
  w.fib->detach(trie);
}

BENCHMARK(change_fib)->Arg(4)->Arg(6);
BENCHMARK(change_fib_trie_and_log)->Arg(4)->Arg(6);

struct GpuWorld {
  GpuWorld() {
    World& w = world();
    gpu = need(device::Gpu::open(0, 2));
    fib = need(GpuFib::create(*gpu, *w.trie4, *w.trie6));
    keys4 = static_cast<std::uint32_t*>(need(gpu->allocate_host(keys * 4)));
    keys6 = static_cast<Key6*>(need(gpu->allocate_host(keys * 16)));
    for (unsigned s = 0; s < 2; ++s) {
      out4[s] = static_cast<NextHopId*>(need(gpu->allocate_host(keys * 4)));
      out6[s] = static_cast<NextHopId*>(need(gpu->allocate_host(keys * 4)));
    }
    for (const Pattern pattern : {trace, spread}) {
      std::copy(w.keys4[pattern].begin(), w.keys4[pattern].end(), keys4);
      std::copy(w.keys6[pattern].begin(), w.keys6[pattern].end(), keys6);
      launch(0, keys, keys);
      wait(0);
      for (std::size_t i = 0; i < keys; ++i) {
        if (out4[0][i] != w.trie4->lookup4(keys4[i]) || out6[0][i] != w.trie6->lookup6(keys6[i].bytes)) {
          die("the GPU's table disagrees");
        }
      }
    }
  }
  void launch(unsigned s, std::uint32_t n4, std::uint32_t n6) {
    if (!fib->lookup(gpu->stream(s), keys4, out4[s], n4, keys6->bytes, out6[s], n6) || !gpu->stream(s).mark()) {
      die("GPU: " + gpu->why());
    }
  }
  void wait(unsigned s) {
    while (gpu->stream(s).pending_marks() > 0) {
      if (gpu->stream(s).poll() == device::MarkState::failed) {
        die("GPU: " + gpu->why());
      }
    }
  }

  std::unique_ptr<device::Gpu> gpu;
  std::unique_ptr<GpuFib> fib;
  std::uint32_t* keys4 = nullptr;
  Key6* keys6 = nullptr;
  NextHopId* out4[2] = {};
  NextHopId* out6[2] = {};
};

GpuWorld& gpu_world() {
  static GpuWorld one;
  return one;
}

// Two batches in flight, as the engine has them.
void gpu_lookup(benchmark::State& state) {
  GpuWorld& g = gpu_world();
  const auto n = static_cast<std::uint32_t>(state.range(0));
  const bool six = state.range(1) == 6;
  unsigned s = 0;
  for (auto _ : state) {
    g.wait(s);
    g.launch(s, six ? 0 : n, six ? n : 0);
    s ^= 1;
  }
  g.wait(0);
  g.wait(1);
  state.SetItemsProcessed(state.iterations() * n);
}

void gpu_lookup_latency(benchmark::State& state) {
  GpuWorld& g = gpu_world();
  const auto n = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    g.launch(0, n / 2, n / 2);
    g.wait(0);
  }
  state.SetItemsProcessed(state.iterations() * (n / 2 * 2));
}

// A change of 16 routes at a time, until the GPU has it.
void gpu_change(benchmark::State& state) {
  GpuWorld& g = gpu_world();
  World& w = world();
  const auto family = static_cast<int>(state.range(0));
  Trie& trie = family == 4 ? *w.trie4 : *w.trie6;
  if (!w.fib->attach(trie)) {
    die("the trie does not hold the routes");
  }
  unsigned changes = 0;
  change_routes(state, family, [&] {
    if (++changes % 16 == 0 && (!g.fib->sync(g.gpu->stream(0)) || !g.gpu->stream(0).mark())) {
      die("GPU: " + g.gpu->why());
    }
    if (changes % 16 == 0) {
      g.wait(0);
    }
  });
  w.fib->detach(trie);
}

const bool has_gpu = [] {
  const auto gpus = device::list_gpus();
  if (!gpus || gpus->front().name == "host SIMT shim") {
    return false;
  }
  benchmark::RegisterBenchmark("gpu_lookup", gpu_lookup)
      ->ArgsProduct({{1024, 8192, 65536, keys}, {4, 6}})
      ->UseRealTime();
  benchmark::RegisterBenchmark("gpu_lookup_latency", gpu_lookup_latency)->Arg(2)->Arg(1024)->Arg(8192)->UseRealTime();
  benchmark::RegisterBenchmark("gpu_change", gpu_change)->Arg(4)->Arg(6)->UseRealTime();
  return true;
}();

}  // namespace
}  // namespace sluice::lookup
