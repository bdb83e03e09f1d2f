// What whole conversations cost an inspection, as `sluice bench inspect` has them: HTTP and other TCP streams of text,
// 32,768 frames of the heavy tail, again and again. `keys`: a device reports the keys that are there, worked out
// before; `nothing`: it finds none. The rest of a gateway is not there, so memory is warmer than in one.
//
// $SLUICE_BENCH_RULES names a file of detection rules, of which those that are commented out count, too; without it
// they are made up, and little is found. Metrics, of the last round, which do not vary: prefilter matches that are
// confirmed and bytes that the core searches for a frame, and alerts; and ns a frame, the least of all rounds.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "function/inspect/inspection.h"
#include "lookup/bench_eal.h"
#include "match/automaton/key_scan.h"
#include "match/rules/rule_set.h"
#include "packet/frame_mix.h"
#include "port/random_conversations_test.h"
#include "port/replay_options.h"

namespace sluice::function {
namespace {

constexpr unsigned frame_count = 32768, batch = 64, rounds = 10;

struct Talk {
  bool http;
  bool keys;  // the device reports those that are there
};

struct Counting final : AlertSink {
  void alert(const Alert&) override { ++alerts; }
  std::uint64_t alerts = 0;
};

Expected<std::vector<std::vector<std::uint8_t>>> frames_of(const Talk& talk) {
  const auto options = port::ReplayOptions::parse("replay,payload=text");
  if (!options) return tl::unexpected(options.error());
  auto mix = packet::FrameMix::make("heavy-tail");
  if (!mix) return tl::unexpected(mix.error());
  std::mt19937_64 random(1);
  auto source = port::test::random_conversations(*mix, random, frame_count);
  source.http = talk.http;
  source.text = true;
  source.fill = [&](std::span<std::uint8_t> bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string& piece = options->pieces[random() % options->pieces.size()];
      const std::size_t size = std::min(piece.size(), bytes.size() - at);
      std::memcpy(bytes.data() + at, piece.data(), size);
      at += size;
    }
  };
  return port::make_conversations(source);
}

Expected<std::shared_ptr<InspectionRules>> rules_of_bench() {
  match::ReadOptions reading;
  reading.commented_out = true;
  const char* const path = std::getenv("SLUICE_BENCH_RULES");
  auto set = path != nullptr
                 ? match::read_rules(std::vector<std::string>{path}, reading)
                 : match::read_rules_text("alert tcp any any -> any any (content:\"a rule\"; sid:1;)\n", "bench.rules");
  if (!set) return tl::unexpected(set.error());
  return InspectionRules::make(std::move(*set));
}

std::vector<std::vector<std::uint32_t>> keys_of(const std::vector<std::vector<std::uint8_t>>& frames,
                                                const InspectionRules& rules) {
  std::vector<std::vector<std::uint32_t>> all(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const match::PacketFacts facts =
        match::facts_of({reinterpret_cast<const char*>(frames[i].data()), frames[i].size()});
    match::scan_keys(rules.gram_table().view(), facts.payload, 0, rules.detector().classes().class_of(facts), all[i]);
    std::ranges::sort(all[i]);
    all[i].erase(std::unique(all[i].begin(), all[i].end()), all[i].end());
  }
  return all;
}

void conversations(benchmark::State& state, const Talk& talk) {
  lookup::start_bench_eal();
  const auto frames = frames_of(talk);
  auto rules = rules_of_bench();
  if (!frames || !rules) return state.SkipWithError((frames ? rules.error() : frames.error()).message.c_str());
  std::vector<std::vector<std::uint32_t>> keys(frames->size());
  if (talk.keys) keys = keys_of(*frames, **rules);
  InspectionSettings settings;
  settings.conversations.streams.drop_conflicts = true;
  Counting sink;
  Inspection inspection(std::make_unique<InspectionSearch>(*rules), settings, sink);
  inspection.touch_memory();
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), now = 0;
  InspectionCounters before;
  std::uint64_t alerts = 0;
  for (auto _ : state) {
    before = inspection.counters();
    alerts = sink.alerts;
    const std::uint64_t began = rte_rdtsc();
    for (unsigned i = 0; i < frames->size(); ++i) {
      if (i % batch == 0) inspection.begin(match::Detector::unlimited, batch);
      inspection.next(batch - i % batch);
      const std::string_view frame{reinterpret_cast<const char*>((*frames)[i].data()), (*frames)[i].size()};
      const FrameBrief brief = inspection.brief_of(frame);
      inspection.frame(
          frame, now += 5,
          {(*rules)->generation(), keys[i].data(), static_cast<std::uint32_t>(keys[i].size()), brief.updates_flow_only},
          brief.hash);
    }
    least = std::min(least, rte_rdtsc() - began);
  }
  const auto a_frame = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(frames->size());
  };
  const InspectionCounters& after = inspection.counters();
  state.counters["prefilter_matches"] = a_frame(after.confirmed - before.confirmed);
  state.counters["searched"] = a_frame(after.searched - before.searched);
  state.counters["alerts"] = static_cast<double>(sink.alerts - alerts);
  state.counters["many_keys"] = static_cast<double>(after.many_keys - before.many_keys);
  state.counters["ns"] = a_frame(least) * 1e9 / static_cast<double>(rte_get_tsc_hz());
}

BENCHMARK_CAPTURE(conversations, http_keys, Talk{true, true})->Iterations(rounds);
BENCHMARK_CAPTURE(conversations, http_nothing, Talk{true, false})->Iterations(rounds);
BENCHMARK_CAPTURE(conversations, streams_keys, Talk{false, true})->Iterations(rounds);

}  // namespace
}  // namespace sluice::function
