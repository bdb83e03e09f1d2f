// First-match classification on the GPU: the tables of tables.h in device memory, exchanged while lookups run.
//
// In: keys (acl_rule.h) in host memory that the GPU reaches, in device memory, or, in a fused kernel
// (gpu_classifier_view.cuh), in registers. Out: the index of the first rule that matches, or no_match: the same that
// Classifier answers.
//
// Rule changes: replace(), or build() and commit(), builds the new tables beside the old ones; sync() carries them to
// the GPU a piece at a time, and then lets the next classify() use them. What a reader sees: a launch uses all of one
// list or all of the next, never a mix; generation() says which list the launches from now on use, so that their
// answers can be told apart. Memory of an old list is written again only when all kernels that were enqueued before the
// change have ended, and after that all that were enqueued meanwhile (gpu_fib.h says why twice). A kernel that stays
// resident for ever would hold it for ever.
//
// Threads: create(), replace(), build(), commit() and destruction on the control thread; all else on the one thread
// that drives the GPU's streams. replace() never makes that thread wait, but for the moment in which tables change
// hands.
//
// Errors: rules that check() refuses; tables larger than the limit; a CUDA error, or the GPU is lost. After an error
// the old rules stay. Cost: replace(): tens of milliseconds to seconds (docs/acl.md); sync(): a few loads when nothing
// changed; classify(): one launch for both families, about 2 us of CPU time. Device memory: of two lists, while one
// takes the other's place; it is kept for the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "device/gpu.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/tables.h"
#include "lookup/acl/tables_view.h"

namespace sluice::lookup::acl {

class GpuClassifier {
 public:
  struct Options {
    Tables::Options tables;
    std::size_t max_sync_bytes = 1U << 20;  // what one sync() moves
  };

  // Builds and uploads. `rules` in match order; they are not kept. The gpu must outlive the GpuClassifier.
  static Expected<std::unique_ptr<GpuClassifier>> create(device::Gpu& gpu, std::span<const AclRule> rules,
                                                         const Options& options);
  static Expected<std::unique_ptr<GpuClassifier>> create(device::Gpu& gpu, std::span<const AclRule> rules) {
    return create(gpu, rules, Options());
  }
  virtual ~GpuClassifier() = default;

  // Another list in the place of this one, from a sync() soon after. One that no sync() has begun with is forgotten.
  Expected<void> replace(std::span<const AclRule> rules) {
    auto built = build(rules);
    if (!built) return tl::unexpected(built.error());
    commit(std::move(*built));
    return {};
  }
  // The two halves of replace(): all that can fail, and the change. A list that is not committed leaves no trace; none
  // may outlive the GpuClassifier.
  class Built {
   public:
    virtual ~Built() = default;
  };
  virtual Expected<std::unique_ptr<Built>> build(std::span<const AclRule> rules) = 0;
  virtual void commit(std::unique_ptr<Built> built) = 0;

  // One step of a change, if there is one.
  virtual Expected<void> sync(device::GpuStream& stream) = 0;
  // No change is on its way.
  virtual bool up_to_date() const = 0;
  // 1 for the list of create(), one more for each commit().
  virtual std::uint64_t generation() const = 0;

  // Enqueues out4[i] = first rule for keys4[i] and out6[i] = first rule for keys6[i]. All arrays lie in pinned host or
  // device memory; a null one is fine where its count is 0.
  virtual Expected<void> classify(device::GpuStream& stream, const Key4* keys4, RuleIndex* out4, std::uint32_t n4,
                                  const Key6* keys6, RuleIndex* out6, std::uint32_t n6) = 0;

  // For kernels enqueued before the next sync().
  virtual ClassifierView view() const = 0;
  // All that is allocated, old and new.
  virtual std::size_t device_bytes() const = 0;
};

}  // namespace sluice::lookup::acl
