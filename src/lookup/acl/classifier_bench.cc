// One core's classification by rte_acl, and what building costs, for made-up sets of 10,000 rules and both families.
// The GPU's rates are sluice bench acl's.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookup/acl/classifier.h"
#include "lookup/acl/make_rules.h"
#include "lookup/acl/tables.h"
#include "lookup/bench_eal.h"

namespace sluice::lookup::acl {
namespace {

constexpr std::size_t rules = 10'000;
constexpr std::size_t headers = 65'536;
constexpr unsigned bulk = 256;

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "classifier_bench: %s\n", message.c_str());
  std::exit(1);
}

const Classifier& classifier(RuleMix mix, int family) {
  start_bench_eal();
  static std::map<std::pair<RuleMix, int>, std::unique_ptr<Classifier>> made;
  auto& one = made[{mix, family}];
  if (!one) {
    auto built = Classifier::create({.name = "bench"}, make_rules(mix, rules, 1, family));
    if (!built) {
      die(built.error().message);
    }
    one = std::move(*built);
  }
  return *one;
}

void classify4(benchmark::State& state) {
  const auto mix = static_cast<RuleMix>(state.range(0));
  const Classifier& of = classifier(mix, 4);
  const auto keys = make_headers4(make_rules(mix, rules, 1), headers, 2);
  std::vector<RuleIndex> out(bulk);
  std::size_t at = 0;
  for (auto _ : state) {
    of.classify4(keys.data() + at, out.data(), bulk);
    benchmark::DoNotOptimize(out.data());
    at = (at + bulk) % headers;
  }
  state.SetItemsProcessed(state.iterations() * bulk);
}

void classify6(benchmark::State& state) {
  const auto mix = static_cast<RuleMix>(state.range(0));
  const Classifier& of = classifier(mix, 6);
  const auto keys = make_headers6(make_rules(mix, rules, 1, 6), headers, 2);
  std::vector<RuleIndex> out(bulk);
  std::size_t at = 0;
  for (auto _ : state) {
    of.classify6(keys.data() + at, out.data(), bulk);
    benchmark::DoNotOptimize(out.data());
    at = (at + bulk) % headers;
  }
  state.SetItemsProcessed(state.iterations() * bulk);
}

void build_rte_acl(benchmark::State& state) {
  start_bench_eal();
  const auto list = make_rules(static_cast<RuleMix>(state.range(0)), rules, 1);
  for (auto _ : state) {
    if (const auto made = Classifier::create({.name = "build"}, list); !made) {
      die(made.error().message);
    }
  }
}

void build_gpu_tables(benchmark::State& state) {
  const auto list = make_rules(static_cast<RuleMix>(state.range(0)), rules, 1);
  for (auto _ : state) {
    const auto made = Tables::build(list);
    if (!made) {
      die(made.error().message);
    }
    state.counters["MB"] = static_cast<double>(made->bytes()) / 1e6;
  }
}

// 0, 1, 2: acl, fw, ipc.
BENCHMARK(classify4)->DenseRange(0, 2);
BENCHMARK(classify6)->DenseRange(0, 2);
BENCHMARK(build_rte_acl)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(build_gpu_tables)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::lookup::acl
