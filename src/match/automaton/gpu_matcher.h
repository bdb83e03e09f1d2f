// Multi-pattern matching on the GPU: which keys (key_set.h) the payloads of a batch of frames hold. Frames are read
// where they lie, in host memory or in device memory.
//
// Exact on keys: found and key[] of a frame are its keys, each once, in no particular order; with more than max_hits of
// them, which of them are told is open.
//
// Threads: create() on the control thread; match() on the one thread that drives the GPU. Errors: a CUDA error, or the
// GPU is lost. Cost: match() one launch, about 2 us of CPU time; the figures are in docs/inspect.md.
#pragma once

#include <cstddef>
#include <memory>

#include "base/error.h"
#include "device/gpu.h"
#include "match/automaton/gram_table.h"
#include "match/automaton/match_batch.h"

namespace sluice::match {

class GpuMatcher {
 public:
  // Uploads the table, which need not live longer than the call. The memory is given back when the Gpu is destroyed.
  static Expected<std::unique_ptr<GpuMatcher>> create(device::Gpu& gpu, const GramTable& table);
  virtual ~GpuMatcher() = default;

  virtual Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) = 0;
  // For a kernel that does more than match (gram_scan.cuh).
  virtual const GramView& view() const = 0;
};

}  // namespace sluice::match
