// Multi-pattern matching on the GPU: which keys (key_set.h) the payloads of a batch of frames hold. Frames are read
// where they lie, in host memory or in device memory. The tables may be exchanged while frames are matched.
//
// Exact on keys: found and key[] of a frame are its keys, each once, in no particular order; with more than max_hits of
// them, which of them are reported is open.
//
// Other patterns: as of device/table_mirror.h, which is how a table becomes another. prepare() takes the new one;
// sync() carries it to the GPU a piece at a time, and then the next match() uses it. generation() and of() say which
// one the launches from now on use, so that their keys can be distinguished. When the memory of an old table is written
// again: device/device_table.h.
//
// Threads: create() and prepare() as TableMirror::publish(); all else as sync(). Errors: a CUDA error, or the GPU is
// lost; the old table stays. Cost: match() one launch, about 2 us of CPU time (docs/matching.md has figures). Device
// memory: of two tables, while one takes the other's place; it is kept for the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"
#include "device/table_mirror.h"
#include "match/automaton/gram_table.h"
#include "match/automaton/match_batch.h"

namespace sluice::match {

class GpuMatcher : public device::TableMirror {
 public:
  static constexpr std::size_t default_sync_bytes = 1U << 20;

  // Uploads the table. The gpu must outlive the GpuMatcher. `max_sync_bytes`: what one sync() moves. `whole`: frames
  // with more than max_hits keys, which are reported alike, are searched to their end, as a core does: for comparing.
  static Expected<std::unique_ptr<GpuMatcher>> create(device::Gpu& gpu, GramTable table,
                                                      std::size_t max_sync_bytes = default_sync_bytes,
                                                      bool whole = false, std::shared_ptr<const void> of = {});

  virtual Expected<std::unique_ptr<Prepared>> prepare(GramTable table) = 0;

  virtual Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) = 0;
  // To verify by: all keys of each frame, however many; bit k % 32 of word [frame * key_words(keys) + k / 32] for key
  // k. `keys`: how many the table has. Nothing else is written. Waits for the stream; device memory for the answer is
  // kept.
  virtual Expected<std::vector<std::uint32_t>> every_key(const MatchBatch& batch, std::size_t keys,
                                                         device::GpuStream& stream) = 0;
  static constexpr std::size_t key_words(std::size_t keys) { return (keys + 31) / 32; }
  // For a kernel that does more than match (gram_scan.cuh), enqueued before the next sync().
  virtual GramView view() const = 0;
};

}  // namespace sluice::match
