#include "cli/bench/match_techniques.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>

#include "cli/bench/csv.h"
#include "cli/bench/progress.h"
#include "match/techniques/techniques.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t batch_sizes[] = {16384, 1U << 17};  // what a cycle collects; what fills a large GPU
constexpr std::size_t depth = 16;
constexpr unsigned rounds = 20;

Outcome outcome_of(std::size_t packets, std::uint64_t bytes, double microseconds) {
  Outcome out;
  out.seconds = microseconds / 1e6;
  out.frames = packets;
  out.bytes = bytes;
  return out;
}

Expected<void> verify(const std::vector<std::uint32_t>& expected, match::Technique technique,
                      const match::TechniqueRun& run) {
  for (std::size_t p = 0; p < expected.size(); ++p) {
    if (run.ends[p] != expected[p]) {
      return make_error(fmt::format("NOT VERIFIED: {}: packet {}: {} ends of patterns instead of {}",
                                    match::name_of(technique), p, run.ends[p], expected[p]));
    }
  }
  return {};
}

Expected<void> compare(const BenchOptions& options, device::Gpu& gpu, match::GpuMatcher& matcher, const match::Dfa& dfa,
                       const std::vector<std::string>& packets) {
  auto all = match::Techniques::create(gpu, dfa, packets);
  if (!all) {
    return tl::unexpected(all.error());
  }
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> expected;
  for (const std::string& packet : packets) {
    bytes += packet.size();
    expected.push_back(dfa.count(packet));
  }
  const std::string setting = fmt::format("batch of {}; share is the control-flow efficiency", packets.size());
  std::printf("techniques: %zu payloads, %.0f bytes each, in device memory; every count verified\n", packets.size(),
              static_cast<double>(bytes) / static_cast<double>(packets.size()));
  double base = 0;
  for (const match::Technique technique : match::techniques) {
    auto run = (*all)->run(technique, rounds);
    if (!run) {
      return tl::unexpected(run.error());
    }
    if (auto ok = verify(expected, technique, *run); !ok) {
      return ok;
    }
    base = technique == match::Technique::base ? run->microseconds : base;
    const Outcome outcome = outcome_of(packets.size(), bytes, run->microseconds);
    std::printf("RESULT technique %-14s %7.1f us, %6.1f GB/s, %5.2f times base; control-flow efficiency %5.1f %%%s\n",
                match::name_of(technique), run->microseconds, outcome.gbytes(), base / run->microseconds,
                100 * run->loop.efficiency(),
                run->prepare_microseconds > 0
                    ? fmt::format("; sorting on the CPU {:.0f} us beforehand", run->prepare_microseconds).c_str()
                    : "");
    append_csv(options, "technique", match::name_of(technique), outcome,
               {.share = run->loop.efficiency(), .setting = setting});
  }
  const auto filter = (*all)->run_filter(matcher, rounds);
  if (!filter) {
    return tl::unexpected(filter.error());
  }
  const Outcome outcome = outcome_of(packets.size(), bytes, *filter);
  std::printf("RESULT technique %-14s %7.1f us, %6.1f GB/s, %5.2f times base\n", "filter", *filter, outcome.gbytes(),
              base / *filter);
  append_csv(options, "technique", "filter", outcome, {.setting = setting});
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
  std::printf("techniques: %s, automaton of %zu states, %.0f MB, patterns cut to %zu bytes\n", mix.c_str(),
              dfa->states(), static_cast<double>(dfa->bytes()) / 1e6, depth);
  for (const std::uint32_t size : batch_sizes) {
    std::vector<std::string> packets;
    for (std::uint32_t i = 0; i < std::min(size, frames.count()); ++i) {
      packets.emplace_back(frames.payload(i));
    }
    if (auto ok = compare(options, gpu, matcher, *dfa, packets); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace sluice::cli::bench
