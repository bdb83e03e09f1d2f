// First-match classification on the GPU: the tables of tables.h in device memory, exchanged while lookups run.
//
// In: keys (acl_rule.h) in host memory that the GPU reaches, in device memory, or, in a fused kernel
// (gpu_classifier_view.cuh), in registers. Out: the index of the first rule that matches, or no_match: the same that
// Classifier answers.
//
// Rule changes: as of device/table_mirror.h, which is how a list becomes another. prepare() builds the new tables
// beside the old ones; sync() carries them to the GPU, and then the next classify() uses them. generation() and of()
// say which list the launches from now on use, so that their answers can be distinguished.
//
// Threads: create() and prepare() as TableMirror::publish(); classify() and view() as sync().
//
// Errors: rules that check() refuses; tables larger than the limit; a CUDA error, or the GPU is lost. After an error
// the old rules stay. Cost: prepare(): tens of milliseconds to seconds (docs/acl.md); classify(): one launch for both
// families, about 2 us of CPU time. Device memory: of two lists, while one takes the other's place; it is kept for the
// next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "device/gpu.h"
#include "device/table_mirror.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/tables.h"
#include "lookup/acl/tables_view.h"

namespace sluice::lookup::acl {

class GpuClassifier : public device::TableMirror {
 public:
  struct Options {
    Tables::Options tables;
    std::size_t max_sync_bytes = 1U << 20;  // what one sync() moves
  };

  // Builds and uploads. `rules` in match order; they are not kept. The gpu must outlive the GpuClassifier.
  static Expected<std::unique_ptr<GpuClassifier>> create(device::Gpu& gpu, std::span<const AclRule> rules,
                                                         const Options& options, std::shared_ptr<const void> of = {});
  static Expected<std::unique_ptr<GpuClassifier>> create(device::Gpu& gpu, std::span<const AclRule> rules,
                                                         std::shared_ptr<const void> of = {}) {
    return create(gpu, rules, Options(), std::move(of));
  }

  virtual Expected<std::unique_ptr<Prepared>> prepare(std::span<const AclRule> rules) = 0;

  // Enqueues out4[i] = first rule for keys4[i] and out6[i] = first rule for keys6[i]. All arrays lie in pinned host or
  // device memory; a null one is fine where its count is 0.
  virtual Expected<void> classify(device::GpuStream& stream, const Key4* keys4, RuleIndex* out4, std::uint32_t n4,
                                  const Key6* keys6, RuleIndex* out6, std::uint32_t n6) = 0;

  // For kernels enqueued before the next sync().
  virtual ClassifierView view() const = 0;
};

}  // namespace sluice::lookup::acl
