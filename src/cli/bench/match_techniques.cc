#include "cli/bench/match_techniques.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>

#include "cli/bench/csv.h"
#include "cli/bench/progress.h"
#include "match/techniques/techniques.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t packets_in_batch = 16384;
constexpr std::size_t depth = 16;
constexpr unsigned rounds = 20;

Outcome outcome_of(std::uint64_t bytes, double microseconds) {
  Outcome out;
  out.seconds = microseconds / 1e6;
  out.frames = packets_in_batch;
  out.bytes = bytes;
  return out;
}

Expected<void> verify(const match::Dfa& dfa, const std::vector<std::string>& packets, match::Technique technique,
                      const match::TechniqueRun& run) {
  for (std::size_t p = 0; p < packets.size(); ++p) {
    if (run.ends[p] != dfa.count(packets[p])) {
      return make_error(fmt::format("NOT VERIFIED: {}: packet {}: {} ends of patterns instead of {}",
                                    match::name_of(technique), p, run.ends[p], dfa.count(packets[p])));
    }
  }
  return {};
}

}  // namespace

Expected<void> compare_techniques(const BenchOptions& options, device::Gpu& gpu, match::GpuMatcher& matcher,
                                  std::span<const match::Pattern> patterns, const MatchFrames& frames,
                                  const std::string& mix) {
  const Progress progress("comparing techniques");
  const auto dfa = match::Dfa::make(patterns, depth);
  if (!dfa) {
    return tl::unexpected(dfa.error());
  }
  std::vector<std::string> packets;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < packets_in_batch; ++i) {
    packets.emplace_back(frames.payload(i));
    bytes += packets.back().size();
  }
  auto all = match::Techniques::create(gpu, *dfa, packets);
  if (!all) {
    return tl::unexpected(all.error());
  }
  std::printf("techniques: %s, %u payloads of %.0f bytes in device memory; automaton of %zu states, %.0f MB, patterns cut "
              "to %zu bytes; every count verified\n",
              mix.c_str(), packets_in_batch, static_cast<double>(bytes) / packets_in_batch, dfa->states(),
              static_cast<double>(dfa->bytes()) / 1e6, depth);
  double base = 0;
  for (const match::Technique technique : match::techniques) {
    auto run = (*all)->run(technique, rounds);
    if (!run) {
      return tl::unexpected(run.error());
    }
    if (auto ok = verify(*dfa, packets, technique, *run); !ok) {
      return ok;
    }
    base = technique == match::Technique::base ? run->microseconds : base;
    const Outcome outcome = outcome_of(bytes, run->microseconds);
    std::printf("RESULT technique %-14s %7.1f us, %6.1f GB/s, %5.2f times base; control-flow efficiency %5.1f %%%s\n",
                match::name_of(technique), run->microseconds, outcome.gbytes(), base / run->microseconds,
                100 * run->loop.efficiency(),
                run->prepare_microseconds > 0
                    ? fmt::format("; sorting on the CPU {:.0f} us beforehand", run->prepare_microseconds).c_str()
                    : "");
    append_csv(options, "technique", match::name_of(technique), outcome, {.share = run->loop.efficiency(), .setting = "share is the control-flow efficiency"});
  }
  const auto filter = (*all)->run_filter(matcher, rounds);
  if (!filter) {
    return tl::unexpected(filter.error());
  }
  const Outcome outcome = outcome_of(bytes, *filter);
  std::printf("RESULT technique %-14s %7.1f us, %6.1f GB/s, %5.2f times base\n", "filter", *filter, outcome.gbytes(),
              base / *filter);
  append_csv(options, "technique", "filter", outcome, {});
  return {};
}

}  // namespace sluice::cli::bench
