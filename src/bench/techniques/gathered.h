// Payloads that a kernel brings to device memory, line by line, and another one searches there, both on one stream: the
// link does not wait for the search, nor the search for the link, where several streams are under way. Reports the same
// keys as GpuMatcher, for comparison with it (docs/matching.md).
//
//   filter     what is brought is searched as GpuMatcher does it, by its kernel and tables
//   automaton  an automaton of the keys (dfa.h), a thread for each 64 bytes, which first reads the eight in front of
//              them (the segments of techniques.h)
//
// Each stream has capacity for a batch, a slot for each frame. A longer payload is not brought: it is searched
// where it lies, over the link, with the same result.
//
// Threads: one. Errors: a CUDA error; a batch of more frames than there are slots. Cost: two launches, about 4 us of
// CPU time. Device memory: the slots, and of the automaton 1 KiB for each state, up to 8 for a key; freed with the Gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "bench/techniques/loop_count.h"
#include "device/gpu.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::match {

enum class GatheredSearch { filter, automaton };

struct GatherCapacity {
  std::uint32_t frames;  // of a batch, at most
  std::uint32_t payload_bytes;
  unsigned streams;  // of the Gpu, the first ones
};

class GatheredMatcher {
 public:
  // `filter`: of the same keys; both must outlive the GatheredMatcher, and the filter's table is not to be exchanged.
  // `whole`: as of GpuMatcher::create(), which the filter has its own of.
  static Expected<std::unique_ptr<GatheredMatcher>> create(device::Gpu& gpu, GpuMatcher& filter, const KeySet& keys,
                                                           GatheredSearch search, const GatherCapacity& capacity,
                                                           bool whole);
  virtual ~GatheredMatcher() = default;

  // As GpuMatcher::match() and every_key(), on the stream of that number.
  virtual Expected<void> match(const MatchBatch& batch, unsigned stream) = 0;
  virtual Expected<std::vector<std::uint32_t>> every_key(const MatchBatch& batch, unsigned stream) = 0;
  // Brings the payloads as match() does and counts the loops of the search (loop_count.h), not of the bringing; adds to
  // the tally, and reports no keys. An iteration over bytes is of eight of each thread (automaton) or 16 (filter).
  virtual Expected<void> count(const MatchBatch& batch, const SearchTally& tally, unsigned stream) = 0;
  virtual std::size_t device_bytes() const = 0;
};

}  // namespace sluice::match
