// sluice bench match: which patterns payloads hold, on the GPU as frames come over the link, beside Hyperscan on all
// cores with the same patterns and frames; and the techniques of the literature for divergent packet sizes, on one
// batch.
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/machine.h"
#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/gpu_only.h"
#include "bench/match_cpu.h"
#include "bench/match_frames.h"
#include "bench/match_patterns.h"
#include "bench/match_techniques.h"
#include "bench/match_verify.h"
#include "bench/progress.h"
#include "bench/rig.h"
#include "bench/rounds.h"
#include "bench/spread.h"
#include "device/name.h"
#include "engine/histogram.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t frames_in_all = 1U << 17;
// With 8,192 and four the filter of 23,000 patterns has not reads enough on the link (docs/results).
constexpr unsigned default_batch = 16384, default_streams = 6;
constexpr std::uint32_t verified_at_once = 8192;
constexpr std::size_t frame_memory = std::size_t{frames_in_all} * MatchFrames::pitch;

std::uint32_t batch_of(const BenchOptions& options) {
  return std::min(options.batch != 0 ? options.batch : default_batch, frames_in_all);
}

struct Freed {
  void operator()(void* memory) const { rte_free(memory); }
};

// Of --payload.
struct Payloads {
  std::string name;   // behind the mix's
  std::string given;  // the file's bytes
  PayloadKind kind = PayloadKind::ordinary;
};

Expected<Payloads> payloads_of(const BenchOptions& options) {
  if (options.payload.empty()) return Payloads{};
  if (options.payload == "text") return Payloads{"text", {}, PayloadKind::text};
  if (options.payload == "random") return Payloads{"random", {}, PayloadKind::random};
  auto bytes = read_regular_file(options.payload, std::size_t{1} << 30);
  if (!bytes) return make_error("--payload " + bytes.error().message);
  if (bytes->empty()) return make_error("--payload " + options.payload + ": is empty");
  return Payloads{options.payload.substr(options.payload.rfind('/') + 1), std::move(*bytes), PayloadKind::given};
}

struct Bed {
  std::unique_ptr<void, Freed> memory;  // before the GPU, which unpins it first
  std::unique_ptr<device::Gpu> gpu;
  std::vector<match::Pattern> patterns;
  std::string set;           // the patterns' name
  std::size_t shortest = 0;  // of them, in bytes
  Payloads payloads;
  std::unique_ptr<match::KeySet> keys;
  std::unique_ptr<match::GpuMatcher> matcher;
  bool has_filter = true;  // the matcher is among those that are measured
  Gathered gathered;
  // Of the patterns, Hyperscan's two ways to have each reported once: by itself (HS_FLAG_SINGLEMATCH), or by its
  // caller.
  std::unique_ptr<match::CpuMatcher> cpu_once, cpu_every;
  std::unique_ptr<match::CpuMatcher> reference;  // of the keys
};

Expected<void> make_matchers(Bed& bed) {
  bed.keys = std::make_unique<match::KeySet>(bed.patterns);
  const match::GramTable table(*bed.keys);
  if (auto ok =
          keep(match::GpuMatcher::create(*bed.gpu, table, match::GpuMatcher::default_sync_bytes, true), bed.matcher);
      !ok) {
    return ok;
  }
  const std::uint64_t begin = rte_rdtsc();
  auto ok = keep(match::CpuMatcher::create(bed.patterns), bed.cpu_once);
  ok = ok ? keep(match::CpuMatcher::create(bed.patterns, match::CpuMatcher::Mode::every_end), bed.cpu_every) : ok;
  if (!ok) {
    return ok;
  }
  const double seconds = static_cast<double>(rte_rdtsc() - begin) / static_cast<double>(rte_get_tsc_hz());
  std::printf(
      "patterns: %s: %zu of at least %zu bytes, %zu keys; the GPU's tables %.0f KB; Hyperscan's %.1f and %.1f MB, "
      "compiled in %.1f s\n",
      bed.set.c_str(), bed.patterns.size(), bed.shortest, bed.keys->keys().size(),
      static_cast<double>(table.bytes()) / 1e3, static_cast<double>(bed.cpu_once->database_bytes()) / 1e6,
      static_cast<double>(bed.cpu_every->database_bytes()) / 1e6, seconds);
  return keep(matcher_of(*bed.keys), bed.reference);
}

Expected<Bed> make_bed(const BenchOptions& options) {
  const Progress progress("compiling patterns");
  Bed bed;
  auto patterns = choose_patterns(options.patterns);
  if (!patterns) {
    return tl::unexpected(patterns.error());
  }
  auto payloads = payloads_of(options);
  if (!payloads) {
    return tl::unexpected(payloads.error());
  }
  bed.payloads = std::move(*payloads);
  bed.set = patterns->name;
  bed.shortest = patterns->shortest();
  bed.patterns = std::move(patterns->patterns);
  const unsigned streams = options.streams != 0 ? options.streams : default_streams;
  if (auto ok = keep(device::Gpu::open(device::gpu_index(options.device).value_or(0), streams), bed.gpu); !ok) {
    return tl::unexpected(ok.error());
  }
  bed.memory.reset(rte_malloc("match-frames", frame_memory, 4096));
  if (bed.memory == nullptr) {
    return make_error("no memory for frames");
  }
  if (auto ok = bed.gpu->register_host(bed.memory.get(), frame_memory); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = make_matchers(bed); !ok) {
    return tl::unexpected(ok.error());
  }
  bed.has_filter = options.technique.empty() || options.technique == "filter";
  if (options.technique != "filter") {
    auto gathered =
        make_gathered(*bed.gpu, *bed.matcher, *bed.keys, batch_of(options), bed.gpu->stream_count(), options.technique);
    if (!gathered) {
      return tl::unexpected(gathered.error());
    }
    bed.gathered = std::move(*gathered);
  }
  return bed;
}

Expected<void> wait(device::Gpu& gpu, device::GpuStream& stream) {
  device::MarkState state = stream.poll();
  while (state == device::MarkState::pending) {
    state = stream.poll();
  }
  return state == device::MarkState::done ? Expected<void>{} : make_error(gpu.why());
}

// What searches, as a launch on a stream, and as one that marks every key.
struct Search {
  std::string name;
  std::function<Expected<void>(const match::MatchBatch& batch, unsigned stream)> match;
  EveryKeyOf every_key;
};

std::vector<Search> searches_of(Bed& bed) {
  std::vector<Search> all;
  if (bed.has_filter) {
    all.push_back({"filter",
                   [&bed](const match::MatchBatch& batch, unsigned stream) {
                     return bed.matcher->match(batch, bed.gpu->stream(stream));
                   },
                   [&bed](const match::MatchBatch& batch) {
                     return bed.matcher->every_key(batch, bed.keys->keys().size(), bed.gpu->stream(0));
                   }});
  }
  for (const auto& [name, matcher] : bed.gathered) {
    all.push_back(
        {name,
         [of = matcher.get()](const match::MatchBatch& batch, unsigned stream) { return of->match(batch, stream); },
         [of = matcher.get()](const match::MatchBatch& batch) { return of->every_key(batch, 0); }});
  }
  return all;
}

// Every batch of the frames, on all streams in turn, one under way on each, until the time is over and all frames have
// been matched once; `alone`: one batch at a time.
Expected<Outcome> run_gpu(Bed& bed, const Search& search, const MatchFrames& frames, unsigned batch, double seconds,
                          bool alone) {
  const unsigned streams = alone ? 1 : bed.gpu->stream_count();
  std::vector<std::uint64_t> begun(streams);
  engine::Histogram latency;
  Outcome out;
  const std::uint64_t begin = rte_rdtsc(), hz = rte_get_tsc_hz();
  const auto length = static_cast<std::uint64_t>(seconds * static_cast<double>(hz));
  std::uint32_t first = 0;
  std::uint64_t done_frames = 0;
  for (unsigned turn = 0; rte_rdtsc() - begin < length || done_frames < frames.count(); ++turn) {
    const unsigned s = turn % streams;
    device::GpuStream& stream = bed.gpu->stream(s);
    if (begun[s] != 0) {
      if (auto ok = wait(*bed.gpu, stream); !ok) {
        return tl::unexpected(ok.error());
      }
      latency.add((rte_rdtsc() - begun[s]) * 1'000'000'000 / hz, 1);
    }
    const std::uint32_t count = std::min(batch, frames.count() - first);
    begun[s] = rte_rdtsc();
    if (auto ok = search.match(frames.batch(first, count), s); !ok) {
      return tl::unexpected(ok.error());
    }
    if (auto ok = stream.mark(); !ok) {
      return tl::unexpected(ok.error());
    }
    out.frames += count;
    out.bytes += frames.bytes(first, count);
    done_frames += count;
    first = first + count == frames.count() ? 0 : first + count;
  }
  for (unsigned s = 0; s < streams; ++s) {
    if (auto ok = wait(*bed.gpu, bed.gpu->stream(s)); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  out.seconds = static_cast<double>(rte_rdtsc() - begin) / static_cast<double>(hz);
  engine::HistogramSnapshot nanoseconds;
  nanoseconds.add(latency);
  out.p50_us = static_cast<double>(nanoseconds.percentile(0.5)) / 1e3;
  out.p99_us = static_cast<double>(nanoseconds.percentile(0.99)) / 1e3;
  out.max_us = static_cast<double>(nanoseconds.max()) / 1e3;
  return out;
}

// The middle one of several runs on all streams, with the slowest batch of all, and how far their rates lie apart.
struct Rounds {
  Outcome middle;
  Spread gbytes;
};

Expected<Rounds> run_rounds(Bed& bed, const Search& search, const MatchFrames& frames, unsigned batch, double seconds) {
  std::vector<Outcome> all;
  std::vector<double> gbytes;
  double slowest_us = 0;
  while (all.size() < repetitions) {
    const auto run = run_gpu(bed, search, frames, batch, seconds, false);
    if (!run) {
      return tl::unexpected(run.error());
    }
    all.push_back(*run);
    gbytes.push_back(run->gbytes());
    slowest_us = std::max(slowest_us, run->max_us);
  }
  Outcome middle = middle_of(all);
  middle.max_us = slowest_us;
  return Rounds{middle, spread_of(gbytes)};
}

struct MatchCase {
  std::string mix;
  PayloadKind kind;
  double goal;       // share of the link's ceiling
  double goal_mpps;  // 0: none
};

struct Measured {
  Search search;
  Rounds rounds;
  std::uint64_t keys;  // in all frames
};

// Each search with all its streams, verified before its rate is reported; the one with the highest.
Expected<Measured> fastest_of(const BenchOptions& options, Bed& bed, MatchFrames& frames, const std::string& label,
                              double ceiling) {
  std::optional<Measured> best;
  for (Search& search : searches_of(bed)) {
    frames.forget_results();
    const auto ran = run_rounds(bed, search, frames, batch_of(options), options.seconds);
    if (!ran) {
      return tl::unexpected(ran.error());
    }
    const Outcome& run = ran->middle;
    const auto reported = verify_keys(*bed.reference, *bed.keys, frames);
    const std::uint32_t at_once = std::min(batch_of(options), verified_at_once);
    const auto keys =
        reported ? verify_every_key(*bed.reference, *bed.keys, frames, at_once, search.every_key) : reported;
    if (!keys) {
      return make_error(search.name + ": " + keys.error().message);
    }
    std::printf("match %s by %s: %.1f Mpps, %.1f %% of the ceiling, verified\n", label.c_str(), search.name.c_str(),
                run.mpps(), 100 * run.gbytes() / ceiling);
    if (!best || run.gbytes() > best->rounds.middle.gbytes()) {
      best = Measured{std::move(search), *ran, *keys};
    }
  }
  return std::move(*best);
}

Expected<void> run_case(const BenchOptions& options, Bed& bed, const MatchCase& one, device::LinkCeilings& ceilings,
                        Goals& goals) {
  const std::string kind = one.kind == PayloadKind::attack ? "attack" : bed.payloads.name;
  const std::string label = one.mix + (kind.empty() ? "" : " " + kind);
  auto frames =
      MatchFrames::make(*bed.gpu, bed.memory.get(), frames_in_all, one.mix, one.kind, bed.patterns, bed.payloads.given);
  if (!frames) {
    return tl::unexpected(frames.error());
  }
  const unsigned batch = batch_of(options);
  const auto fastest = fastest_of(options, bed, *frames, label, ceilings.large.up);
  if (!fastest) {
    return tl::unexpected(fastest.error());
  }
  const auto& [search, ran, keys] = *fastest;
  const Outcome& full = ran.middle;
  const auto alone = run_gpu(bed, search, *frames, batch, options.seconds / 4, true);
  if (!alone) {
    return tl::unexpected(alone.error());
  }
  if (auto probed = probe_again(options, ceilings); !probed) {
    return probed;
  }
  const double ceiling = ceilings.large.up;
  const auto scanned_once = scan_on_all_cores(*bed.cpu_once, *frames, options.seconds);
  if (!scanned_once) return tl::unexpected(scanned_once.error());
  const auto scanned_every = scan_on_all_cores(*bed.cpu_every, *frames, options.seconds);
  if (!scanned_every) return tl::unexpected(scanned_every.error());
  const Outcome &once = *scanned_once, &every = *scanned_every;
  const Outcome& cpu = once.gbytes() > every.gbytes() ? once : every;
  const double share = full.gbytes() / ceiling, times = full.gbytes() / cpu.gbytes();
  std::printf(
      "verified: %u frames hold %lu keys, each marked by the GPU and found by Hyperscan; %.1f %% hold more than %u, "
      "and are searched whole\n",
      frames->count(), keys, 100 * share_of_many(*frames), match::max_hits);
  std::printf(
      "RESULT match %s: GPU (%s) %.1f Mpps, %.2f GB/s (%.2f to %.2f) = %.1f %% of the ceiling of %.1f; batches of %u: "
      "p50 %.0f p99 "
      "%.0f "
      "max "
      "%.0f us, one alone %.0f, %.0f, %.0f us; Hyperscan on %zu cores %.1f Gbps with "
      "SINGLEMATCH, %.1f without; the GPU is %.1f times as fast as the faster\n",
      label.c_str(), search.name.c_str(), full.mpps(), full.gbytes(), ran.gbytes.low, ran.gbytes.high, 100 * share,
      ceiling, batch, full.p50_us, full.p99_us, full.max_us, alone->p50_us, alone->p99_us, alone->max_us,
      allowed_cores().size(), 8 * once.gbytes(), 8 * every.gbytes(), times);
  const std::string setting =
      fmt::format("{} of at least {} bytes; {}; batches of {}; {} streams; rounds {:.2f} to {:.2f} GB/s", bed.set,
                  bed.shortest, search.name, batch, bed.gpu->stream_count(), ran.gbytes.low, ran.gbytes.high);
  append_csv(options, "match", label + " GPU", full,
             {.share = share, .goal = one.goal, .ceiling_gbytes = ceiling, .setting = setting});
  append_csv(options, "match", label + " GPU one batch", *alone, {.ceiling_gbytes = ceiling, .setting = setting});
  append_csv(options, "match", label + " Hyperscan SINGLEMATCH", once, {.setting = setting});
  append_csv(options, "match", label + " Hyperscan every match", every, {.setting = setting});
  if (one.goal > 0) {
    goals.at_least(label + " of the ceiling", 100 * share, 100 * one.goal, "%");
  }
  if (one.goal_mpps > 0) {
    goals.at_least(label, full.mpps(), one.goal_mpps, "Mpps");
  }
  if (one.kind == PayloadKind::ordinary && one.goal > 0) {
    goals.at_least(label + " over Hyperscan on all cores", times, bed.patterns.size() > 10'000 ? 10 : 5, "times");
  }
  return {};
}

Expected<void> run_all(const BenchOptions& options, Goals& goals) {
  auto ceilings = print_ceilings(options, true);
  if (!ceilings) {
    return tl::unexpected(ceilings.error());
  }
  auto bed = make_bed(options);
  if (!bed) {
    return tl::unexpected(bed.error());
  }
  std::vector<MatchCase> cases = {{"heavy-tail", PayloadKind::ordinary, 0.85, 0},
                                  {"1500", PayloadKind::ordinary, 0.90, 0},
                                  {"64", PayloadKind::ordinary, 0, 400},
                                  {"heavy-tail", PayloadKind::attack, 0, 0}};
  const PayloadKind kind = bed->payloads.kind;
  if (kind != PayloadKind::ordinary) {
    cases = {{"heavy-tail", kind, 0, 0}, {"1500", kind, 0, 0}};
  }
  if (!options.mix.empty()) {
    cases = {{options.mix, kind, 0, 0}};
  }
  for (const MatchCase& one : cases) {
    if (auto ok = run_case(options, *bed, one, *ceilings, goals); !ok) {
      return ok;
    }
  }
  const std::string mix = options.mix.empty() ? "heavy-tail" : options.mix;
  auto frames =
      MatchFrames::make(*bed->gpu, bed->memory.get(), frames_in_all, mix, kind, bed->patterns, bed->payloads.given);
  return frames ? compare_techniques(options, *bed->gpu, {bed->set, *bed->matcher, *bed->reference, *bed->keys},
                                     bed->patterns, *frames, mix)
                : tl::unexpected(frames.error());
}

}  // namespace

int bench_match(const BenchOptions& options) {
  return run_gpu_bench("match", frame_memory + (std::size_t{512} << 20), options,
                       [&](Goals& goals) { return run_all(options, goals); });
}

}  // namespace sluice::cli::bench
