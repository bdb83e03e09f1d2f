// The loops of the scan that Sluice uses, counted (loop_count.h): the code and the spread of GpuMatcher::match() in a
// kernel of its own, so that the one that is timed counts nothing.
//
// An iteration over bytes is of 16 of each thread. Steps at a group's end that hold no bytes, which are there because
// four are under way at a time, are none.
//
// Threads, errors: as GpuMatcher::match().
#pragma once

#include "base/error.h"
#include "bench/techniques/loop_count.h"
#include "device/gpu.h"
#include "match/automaton/gpu_matcher.h"

namespace sluice::match {

// Enqueues it; adds to the tally, and reports no keys.
Expected<void> count_filter(const GpuMatcher& matcher, const MatchBatch& batch, const SearchTally& tally,
                            device::GpuStream& stream);

}  // namespace sluice::match
