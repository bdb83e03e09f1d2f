// How full the warps of a search are, counted by its kernels in a launch of their own, which is not timed.
//
// An iteration is of a warp: of the threads that are active in it, those that have bytes to look at, 32 are a
// control-flow efficiency of 100 %. One in which no thread is active is none.
#pragma once

#include <cstdint>

namespace sluice::match {

// Of one loop, over all warps.
struct LoopCount {
  std::uint64_t iterations = 0, active = 0;
  double efficiency() const {
    return iterations == 0 ? 0 : static_cast<double>(active) / (32 * static_cast<double>(iterations));
  }
};

// Of a search that reports keys: the loop over bytes, and the one over what they have come up with. In the latter a
// thread is active as long as it has a place where a key may end (the filter, which then compares) or does (an
// automaton).
struct SearchLoops {
  LoopCount bytes, keys;
};

// Where kernels count, in device memory.
struct LoopTally {
  unsigned long long* iterations;
  unsigned long long* active;
};
struct SearchTally {
  LoopTally bytes, keys;
};

}  // namespace sluice::match
