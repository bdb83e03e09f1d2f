// The techniques of the literature for packets of divergent sizes (bench/techniques/techniques.h) on one batch, in
// device memory and over the link, beside the scan that Sluice uses (the filter) and those of
// payloads that a kernel brings to device memory first (gathered.h), all of which search whole payloads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/match_frames.h"
#include "bench/techniques/gathered.h"
#include "match/automaton/cpu_matcher.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::cli::bench {

struct Filter {
  const std::string& set;  // the patterns' name
  match::GpuMatcher& matcher;
  const match::CpuMatcher& reference;  // of the keys
  const match::KeySet& keys;
};

// What reports the same keys as the filter, by name; `only`: the one of that name. Each searches whole payloads.
using Gathered = std::vector<std::pair<std::string, std::unique_ptr<match::GatheredMatcher>>>;
Expected<Gathered> make_gathered(device::Gpu& gpu, match::GpuMatcher& filter, const match::KeySet& keys,
                                 std::uint32_t frames, unsigned streams, const std::string& only = {});

// Of every technique, of the filter and of each place a rate, once what it found has been compared with the CPU's; and
// which is the fastest over the link.
Expected<void> compare_techniques(const BenchOptions& options, device::Gpu& gpu, const Filter& filter,
                                  std::span<const match::Pattern> patterns, const MatchFrames& frames,
                                  const std::string& mix);

}  // namespace sluice::cli::bench
