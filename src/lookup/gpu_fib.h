// Longest-prefix match on the GPU: copies of an IPv4 and an IPv6 Trie in device memory, kept up to date while lookups
// run.
//
// In: addresses in host memory that the GPU reaches (or, in a fused kernel, in registers). Out: ids of next hops, the
// same that Fib answers.
//
// Threads: create() and destruction on the control thread; sync() and lookup() on the one thread that drives all the
// GPU's streams. The control thread may change the tries at any time: sync() never waits for it.
//
// What a lookup may see while changes are applied: for its address a route that the trie held at some moment since the
// last sync before the lookup's kernel began, never anything else (change_log.h argues it). Three things carry this
// onto a GPU:
//   - A change set is applied by two kernels in one stream: the first fills new blocks, the second changes slots in
//     use. A kernel's stores are visible to the whole device before the next one in its stream starts, so a lookup
//     kernel on any stream that reads a pointer to a new block finds the block complete. Slots are aligned words: never
//     half of one.
//   - Lookups read through an SM's L1, which is emptied when a kernel starts on it but not when another SM writes. A
//     line that is out of date holds an older route, or an older pointer to a block that still holds the older routes.
//   - A block that was taken out is used again only when no lookup can reach it and no L1 can hold a line of it: after
//     the change that unlinked it has been applied, all kernels that were enqueued by then on any stream of the GPU
//     have ended, and after that all that were enqueued meanwhile (one of these may share an SM with one of those, and
//     its L1). Events say when it ends; they are polled, never waited for. A kernel that stays resident for ever would
//     hold blocks for ever.
// An id that no route names any more may be given to another next hop once up_to_date() and one more cycle has passed.
//
// Errors: a CUDA error, or the GPU is lost; the Gpu says which.
// Cost: lookup(): one launch for both families, about 2 us of CPU time. sync(): a few loads when nothing changed; else
// max_bytes at most are packed and two kernels launched. Device memory: what the two tries have (trie.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "device/gpu.h"
#include "lookup/next_hop.h"
#include "lookup/trie.h"

namespace sluice::lookup {

// The slots of a trie in device memory, for kernels (gpu_fib_view.cuh). Valid as long as the GpuFib.
struct Fib4View {
  const std::uint32_t* slots;
};
struct Fib6View {
  const std::uint32_t* slots;
};

class GpuFib {
 public:
  // What a sync moves at most by default: some 900 scattered routes.
  static constexpr std::size_t default_sync_bytes = 64 * 1024;

  // Uploads what the tries hold and follows them from then on. The gpu and the tries must outlive the GpuFib.
  // `max_sync_bytes` is the largest max_bytes that sync() will use.
  static Expected<std::unique_ptr<GpuFib>> create(device::Gpu& gpu, Trie& v4, Trie& v6,
                                                  std::size_t max_sync_bytes = default_sync_bytes);
  virtual ~GpuFib() = default;

  // Enqueues pending changes, at most about max_bytes of them; the rest waits for the next call. Also when the control
  // thread is just changing a trie, and when the GPU is not done with earlier change sets.
  virtual Expected<void> sync(device::GpuStream& stream, std::size_t max_bytes = default_sync_bytes) = 0;
  // All changes made so far have been enqueued.
  virtual bool up_to_date() const = 0;

  // Enqueues out4[i] = next hop of keys4[i] (host byte order) and out6[i] = next hop of the 16 bytes at keys6 + 16 * i
  // (network order, keys6 16-byte aligned). All arrays lie in pinned host or device memory; a null one is fine where
  // its count is 0.
  virtual Expected<void> lookup(device::GpuStream& stream, const std::uint32_t* keys4, NextHopId* out4,
                                std::uint32_t n4, const std::uint8_t* keys6, NextHopId* out6, std::uint32_t n6) = 0;

  virtual Fib4View view4() const = 0;
  virtual Fib6View view6() const = 0;
  virtual std::size_t device_bytes() const = 0;
};

}  // namespace sluice::lookup
