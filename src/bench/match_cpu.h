// Hyperscan on every core that this process may use, over the same frames, for comparison.
#pragma once

#include "bench/match_frames.h"
#include "bench/rig.h"
#include "match/automaton/cpu_matcher.h"

namespace sluice::cli::bench {

// Each core scans payloads of its own share of the frames, again and again. Bytes are those of whole frames. An Error
// when Hyperscan refused to: that would look fast.
Expected<Outcome> scan_on_all_cores(const match::CpuMatcher& matcher, const MatchFrames& frames, double seconds);

}  // namespace sluice::cli::bench
