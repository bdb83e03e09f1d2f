// The keys that a GPU found in frames, against Hyperscan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"
#include "cli/bench/match_frames.h"
#include "match/automaton/cpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::cli::bench {

// Hyperscan with the keys as its patterns.
Expected<std::unique_ptr<match::CpuMatcher>> matcher_of(const match::KeySet& keys);

// Every frame's keys; of a frame that was not `read`, that none were found. Answers how many keys there are.
Expected<std::uint64_t> verify_keys(
    const match::CpuMatcher& reference, const match::KeySet& keys, const MatchFrames& frames,
    const std::function<bool(std::uint32_t)>& read = [](std::uint32_t) { return true; });

}  // namespace sluice::cli::bench
