// Multi-pattern matching on the GPU: which keys (key_set.h) the payloads of a batch of frames hold. Frames are read
// where they lie, in host memory or in device memory. The tables may be exchanged while frames are matched.
//
// Exact on keys: found and key[] of a frame are its keys, each once, in no particular order; with more than max_hits of
// them, which of them are told is open.
//
// Other patterns: build() and commit() of their table; sync() carries it to the GPU a piece at a time, and then lets
// the next match() use it. A launch uses all of one table or all of the next; generation() says which one the launches
// from now on use, so that their keys can be told apart. When the memory of an old table is written again:
// device/table_exchange.h.
//
// Threads: create(), build(), commit() and destruction on the control thread, or the one that reloads; all else on the
// one thread that drives the GPU. Errors: a CUDA error, or the GPU is lost; the old table stays. Cost: match() one
// launch, about 2 us of CPU time (docs/matching.md has figures); sync() a few loads when nothing changed, else a copy
// of max_sync_bytes at most into pinned memory. Device memory: of two tables, while one takes the other's place; it is
// kept for the next change, and given back when the Gpu is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"
#include "match/automaton/gram_table.h"
#include "match/automaton/match_batch.h"

namespace sluice::match {

class GpuMatcher {
 public:
  static constexpr std::size_t default_sync_bytes = 1U << 20;

  // Uploads the table. The gpu must outlive the GpuMatcher. `max_sync_bytes`: what one sync() moves. `whole`: frames
  // with more than max_hits keys, which are told alike, are searched to their end, as a core does: for comparing.
  static Expected<std::unique_ptr<GpuMatcher>> create(device::Gpu& gpu, GramTable table,
                                                      std::size_t max_sync_bytes = default_sync_bytes,
                                                      bool whole = false);
  virtual ~GpuMatcher() = default;

  // The two halves of a change: all that can fail, and the change, which a sync() soon after begins. One that no sync()
  // has begun with is forgotten when the next is committed; one that is not committed leaves no trace. None may outlive
  // the GpuMatcher.
  class Built {
   public:
    virtual ~Built() = default;
  };
  virtual Expected<std::unique_ptr<Built>> build(GramTable table) = 0;
  virtual void commit(std::unique_ptr<Built> built) = 0;

  // One step of a change, if there is one.
  virtual Expected<void> sync(device::GpuStream& stream) = 0;
  // No change is on its way.
  virtual bool up_to_date() const = 0;
  // 1 for the table of create(), one more for each commit().
  virtual std::uint64_t generation() const = 0;

  virtual Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) = 0;
  // To verify by: all keys of each frame, however many; bit k % 32 of word [frame * key_words(keys) + k / 32] for key
  // k. `keys`: how many the table has. Nothing else is written. Waits for the stream; device memory for the answer is
  // kept until the Gpu is destroyed.
  virtual Expected<std::vector<std::uint32_t>> every_key(const MatchBatch& batch, std::size_t keys,
                                                         device::GpuStream& stream) = 0;
  static constexpr std::size_t key_words(std::size_t keys) { return (keys + 31) / 32; }
  // For a kernel that does more than match (gram_scan.cuh), enqueued before the next sync().
  virtual GramView view() const = 0;
  // All that is allocated, old and new.
  virtual std::size_t device_bytes() const = 0;
};

}  // namespace sluice::match
