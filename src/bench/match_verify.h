// The keys that a GPU found in frames, against Hyperscan. A launch reports of a frame how many it has up to
// match::max_hits and "more", and as many of them: that is what verify_keys() compares, of every frame. What a launch
// does with keys beyond is not to be seen from outside; verify_every_key() has all of them marked, and compares those.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "bench/match_frames.h"
#include "match/automaton/cpu_matcher.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::cli::bench {

// Hyperscan with the keys as its patterns.
Expected<std::unique_ptr<match::CpuMatcher>> matcher_of(const match::KeySet& keys);

// Of a payload with the keys `expected`: whether `found` and the keys at `reported` are what a launch reports of it.
bool is_reported(std::span<const std::uint32_t> expected, std::uint32_t found, const std::uint32_t* reported);

// What was reported of every frame; of a frame that was not `read`, that none were found. Answers how many keys
// Hyperscan finds in those that were.
Expected<std::uint64_t> verify_keys(
    const match::CpuMatcher& reference, const match::KeySet& keys, const MatchFrames& frames,
    const std::function<bool(std::uint32_t)>& read = [](std::uint32_t) { return true; });

// All keys of every frame, however many, by a launch of their own (GpuMatcher::every_key, or the same of another
// matcher). Answers how many there are: that the GPU has marked, and Hyperscan found.
using EveryKeyOf = std::function<Expected<std::vector<std::uint32_t>>(const match::MatchBatch& batch)>;
Expected<std::uint64_t> verify_every_key(const match::CpuMatcher& reference, const match::KeySet& keys,
                                         const MatchFrames& frames, std::uint32_t at_once, const EveryKeyOf& every_key);
Expected<std::uint64_t> verify_every_key(const match::CpuMatcher& reference, const match::KeySet& keys,
                                         const MatchFrames& frames, match::GpuMatcher& matcher,
                                         device::GpuStream& stream);

// Of the frames, those with more keys than are reported. A gateway's core searches them; a matcher made to match whole
// frames goes on to their end, as Hyperscan does.
double share_of_many(const MatchFrames& frames);

}  // namespace sluice::cli::bench
