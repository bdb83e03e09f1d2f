// The techniques of the literature for packets of divergent sizes (match/techniques/techniques.h) on one batch in
// device memory, beside the scan that Sluice uses.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "cli/bench/bench.h"
#include "cli/bench/match_frames.h"
#include "match/automaton/gpu_matcher.h"

namespace sluice::cli::bench {

Expected<void> compare_techniques(const BenchOptions& options, device::Gpu& gpu, match::GpuMatcher& matcher,
                                  std::span<const match::Pattern> patterns, const MatchFrames& frames,
                                  const std::string& mix);

}  // namespace sluice::cli::bench
