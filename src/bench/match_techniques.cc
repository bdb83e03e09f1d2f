#include "bench/match_techniques.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/csv.h"
#include "bench/match_verify.h"
#include "bench/progress.h"
#include "bench/techniques/techniques.h"

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

Expected<void> verify(const Filter& filter, const std::string& name, const std::vector<std::string>& packets,
                      const match::FilterRun& run) {
  match::CpuMatcher::Scratch scratch(filter.reference);
  std::vector<std::uint32_t> in(filter.keys.keys().size() + 1);
  for (std::size_t p = 0; p < packets.size(); ++p) {
    const std::size_t count = filter.reference.match(scratch, packets[p], 0, in.data(), in.size());
    if (!is_reported({in.data(), count}, run.found[p], run.keys.data() + p * match::max_hits)) {
      return make_error(
          fmt::format("NOT VERIFIED: {}: packet {}: {} keys instead of {}", name, p, run.found[p], count));
    }
  }
  return {};
}

struct Batch {
  std::vector<std::string> packets;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> ends;  // as the automaton counts them on the CPU
};

Batch batch_of(const MatchFrames& frames, std::uint32_t size, const match::Dfa& dfa) {
  Batch batch;
  for (std::uint32_t i = 0; i < std::min(size, frames.count()); ++i) {
    batch.packets.emplace_back(frames.payload(i));
    batch.bytes += batch.packets.back().size();
    batch.ends.push_back(dfa.count(batch.packets.back()));
  }
  return batch;
}

const char* name_of(match::PacketPlace place) {
  return place == match::PacketPlace::device ? "in device memory" : "over the link";
}

// Microseconds, with what the CPU does beforehand; of techniques in the order of match::techniques.
struct Times {
  std::vector<double> technique;
  std::vector<std::pair<std::string, double>> matcher;  // by name; the filter first
};

void report(const BenchOptions& options, const std::string& set, const Batch& batch, const std::string& name,
            match::PacketPlace place, double microseconds, double base, const match::LoopCount& loop,
            const std::string& more = {}) {
  const Outcome outcome = outcome_of(batch.packets.size(), batch.bytes, microseconds);
  std::printf(
      "RESULT technique %-14s %-16s %8.1f us, %6.1f GB/s, %5.2f times base; control-flow efficiency %5.1f %%%s\n",
      name.c_str(), name_of(place), microseconds, outcome.gbytes(), base / microseconds, 100 * loop.efficiency(),
      more.c_str());
  append_csv(options, "technique", name + " " + name_of(place), outcome,
             {.share = loop.efficiency(),
              .setting = fmt::format("{}; batch of {}; share is the control-flow efficiency{}", set,
                                     batch.packets.size(), more)});
}

Expected<Times> compare(const BenchOptions& options, device::Gpu& gpu, const Filter& filter, const match::Dfa& dfa,
                        const match::TwoByteTable& pairs, const Gathered& gathered, const Batch& batch,
                        match::PacketPlace place) {
  auto all = match::Techniques::create(gpu, dfa, pairs, batch.packets, place);
  if (!all) {
    return tl::unexpected(all.error());
  }
  Times times;
  for (const match::Technique technique : match::techniques) {
    auto run = (*all)->run(technique, rounds);
    if (!run) {
      return tl::unexpected(run.error());
    }
    if (auto ok = verify(batch.ends, technique, *run); !ok) {
      return tl::unexpected(ok.error());
    }
    times.technique.push_back(run->microseconds + run->prepare_microseconds);
    std::string more;
    if (run->prepare_microseconds > 0) {
      more += fmt::format("; sorting on the CPU {:.0f} us beforehand", run->prepare_microseconds);
    }
    report(options, filter.set, batch, match::name_of(technique), place, run->microseconds, times.technique.front(),
           run->loop, more);
  }
  const auto keep_run = [&](const std::string& name, const Expected<match::FilterRun>& run) -> Expected<void> {
    if (!run) {
      return tl::unexpected(run.error());
    }
    if (auto ok = verify(filter, name, batch.packets, *run); !ok) {
      return ok;
    }
    times.matcher.push_back({name, run->microseconds});
    const auto& [bytes, keys] = run->loops;
    report(
        options, filter.set, batch, name, place, run->microseconds, times.technique.front(), bytes,
        fmt::format("; of the loop over keys {:.1f} %, {:.3f} iterations for each over bytes", 100 * keys.efficiency(),
                    static_cast<double>(keys.iterations) / static_cast<double>(bytes.iterations)));
    return {};
  };
  if (auto ok = keep_run("filter", (*all)->run_filter(filter.matcher, rounds)); !ok) {
    return tl::unexpected(ok.error());
  }
  for (const auto& [name, matcher] : gathered) {
    if (auto ok = keep_run(name, (*all)->run_gathered(*matcher, rounds)); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  return times;
}

void say_fastest(const Times& times, std::size_t packets, match::PacketPlace place) {
  const auto least = std::min_element(times.technique.begin(), times.technique.end());
  const char* const name = match::name_of(match::techniques[least - times.technique.begin()]);
  const double filter = times.matcher.front().second;
  std::printf("techniques: %zu payloads %s: the filter takes %.2f times the time of the fastest automaton (%s): %s\n",
              packets, name_of(place), filter / *least, name,
              filter <= *least ? "the filter is the fastest" : "THE FILTER IS NOT THE FASTEST");
  const auto best = std::ranges::min_element(times.matcher, {}, &std::pair<std::string, double>::second);
  std::printf(
      "techniques: %zu payloads %s: of what reports keys %s is the fastest, in %.2f of the filter's time alone\n",
      packets, name_of(place), best->first.c_str(), best->second / filter);
}

}  // namespace

Expected<Gathered> make_gathered(device::Gpu& gpu, match::GpuMatcher& filter, const match::KeySet& keys,
                                 std::uint32_t frames, unsigned streams, const std::string& only) {
  Gathered all;
  for (const auto& [name, search] : {std::pair{"gathered-filter", match::GatheredSearch::filter},
                                     std::pair{"gathered-automaton", match::GatheredSearch::automaton}}) {
    if (!only.empty() && only != name) {
      continue;
    }
    auto made = match::GatheredMatcher::create(gpu, filter, keys, search, {frames, MatchFrames::pitch, streams}, true);
    if (!made) {
      return tl::unexpected(made.error());
    }
    all.emplace_back(name, std::move(*made));
  }
  return all;
}

Expected<void> compare_techniques(const BenchOptions& options, device::Gpu& gpu, const Filter& filter,
                                  std::span<const match::Pattern> patterns, const MatchFrames& frames,
                                  const std::string& mix) {
  const Progress progress("comparing techniques");
  const auto dfa = match::Dfa::make(patterns, depth);
  if (!dfa) {
    return tl::unexpected(dfa.error());
  }
  std::printf("techniques: %s, automaton of %zu states, %.0f MB, patterns cut to %zu bytes\n", mix.c_str(),
              dfa->states(), static_cast<double>(dfa->bytes()) / 1e6, depth);
  const match::TwoByteTable pairs(*dfa);
  std::printf("techniques: pairs of bytes from %u states, %u classes of bytes, %.0f MB\n", pairs.hot_states(),
              pairs.classes(), static_cast<double>(pairs.bytes()) / 1e6);
  const auto gathered = make_gathered(gpu, filter.matcher, filter.keys, std::min(batch_sizes[1], frames.count()), 1);
  if (!gathered) {
    return tl::unexpected(gathered.error());
  }
  for (const std::uint32_t size : batch_sizes) {
    const Batch batch = batch_of(frames, size, *dfa);
    std::printf(
        "techniques: %zu payloads, %.0f bytes each; verified: every count of the automaton's ends, and the filter's "
        "keys as far as a launch reports them\n",
        batch.packets.size(), static_cast<double>(batch.bytes) / static_cast<double>(batch.packets.size()));
    for (const match::PacketPlace place : {match::PacketPlace::device, match::PacketPlace::host}) {
      const auto times = compare(options, gpu, filter, *dfa, pairs, *gathered, batch, place);
      if (!times) {
        return tl::unexpected(times.error());
      }
      say_fastest(*times, batch.packets.size(), place);
    }
    if (size >= frames.count()) {
      break;
    }
  }
  return {};
}

}  // namespace sluice::cli::bench
