// What frames cost an inspection that release what hundreds of others have brought: 64 streams of 252 segments, of
// which the first byte is missing, and 64 resets that come together (port/replay_conversations.h). `whole`: all that
// waits is handed over; `in_time`: with the time that a batch has at a deadline of 1 ms. Metrics: us for the resets, ns
// for each other frame, the least of all rounds.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "function/inspect/inspection.h"
#include "lookup/bench_eal.h"
#include "match/rules/rule_set.h"
#include "packet/frame_mix.h"
#include "port/random_conversations_test.h"

namespace sluice::function {
namespace {

constexpr unsigned frame_count = 16384, resets = frame_count / 256, batch = 64;

std::vector<std::vector<std::uint8_t>> make_frames() {
  auto mix = packet::FrameMix::make("heavy-tail");
  std::mt19937_64 random(1);
  auto source = port::test::random_conversations(*mix, random, frame_count);
  source.resets = true;
  return port::make_conversations(source);
}

struct Nobody final : AlertSink {
  void alert(const Alert&) override {}
};

void released(benchmark::State& state, bool in_time, bool drops) {
  lookup::start_bench_eal();
  const auto frames = make_frames();
  auto set = match::read_rules_text("alert tcp any any -> any any (content:\"a rule\"; sid:1;)\n", "bench.rules");
  auto rules = set ? InspectionRules::make(std::move(*set)) : tl::unexpected(set.error());
  if (!rules) return state.SkipWithError(rules.error().message.c_str());
  InspectionSettings settings;
  settings.drop_on_overload = drops;
  settings.conversations.streams.drop_conflicts = settings.conversations.streams.drop_without_capacity = drops;
  Nobody nobody;
  Inspection inspection(std::make_unique<InspectionSearch>(*rules), settings, nobody);
  inspection.touch_memory();
  const std::uint64_t time = in_time ? rte_get_tsc_hz() / 4000 : match::Detector::unlimited;
  std::uint64_t of_resets = std::numeric_limits<std::uint64_t>::max(), of_others = of_resets, now = 0;
  for (auto _ : state) {
    std::uint64_t began = rte_rdtsc(), others = 0;
    for (unsigned i = 0; i < frame_count; ++i) {
      if (i == frame_count - resets) {
        others = rte_rdtsc() - began;
        began += others;
      }
      if (i % batch == 0) inspection.begin(time, batch);
      inspection.next(batch - i % batch);
      inspection.frame({reinterpret_cast<const char*>(frames[i].data()), frames[i].size()}, now += 5);
    }
    of_resets = std::min(of_resets, rte_rdtsc() - began);
    of_others = std::min(of_others, others);
  }
  const double second = static_cast<double>(rte_get_tsc_hz());
  state.counters["resets_us"] = static_cast<double>(of_resets) * 1e6 / second;
  state.counters["others_ns"] = static_cast<double>(of_others) * 1e9 / second / (frame_count - resets);
  state.counters["left"] = static_cast<double>(inspection.counters().releases_left);
}

BENCHMARK_CAPTURE(released, whole_pass, false, false)->Iterations(30);
BENCHMARK_CAPTURE(released, in_time_pass, true, false)->Iterations(30);
BENCHMARK_CAPTURE(released, whole_drop, false, true)->Iterations(30);
BENCHMARK_CAPTURE(released, in_time_drop, true, true)->Iterations(30);

}  // namespace
}  // namespace sluice::function
