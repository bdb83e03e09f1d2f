// The techniques of the literature for packets of divergent sizes (match/techniques/techniques.h) on one batch, in
// device memory and over the link, beside the scan that Sluice uses (the filter), which searches whole payloads, too.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "cli/bench/bench.h"
#include "cli/bench/match_frames.h"
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

// Of every technique, of the filter and of each place a rate, once what it found has been compared with the CPU's; and
// which is the fastest over the link.
Expected<void> compare_techniques(const BenchOptions& options, device::Gpu& gpu, const Filter& filter,
                                  std::span<const match::Pattern> patterns, const MatchFrames& frames,
                                  const std::string& mix);

}  // namespace sluice::cli::bench
