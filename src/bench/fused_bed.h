// What `bench fused` runs: batches of frames in pinned host memory with their keys and addresses, the tables of three
// parts, and the three parts' kernels or the one that does for all of them.
//
// Every frame is IPv4. Its key for the rules is drawn from them, its address for the routes from those: the two are
// independent, as is its payload, which lies where a NIC's DMA would leave it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/acl_sets.h"
#include "bench/bench.h"
#include "bench/match_frames.h"
#include "device/gpu.h"
#include "lookup/acl/gpu_classifier.h"
#include "lookup/fib.h"
#include "lookup/gpu_fib.h"
#include "lookup/trie.h"
#include "match/automaton/cpu_matcher.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/key_set.h"

namespace sluice::cli::bench {

struct FusedParts {
  bool acl, inspect;  // and route, always
};

class FusedBed {
 public:
  // Of DPDK's heap.
  static std::uint64_t memory_needed();

  static Expected<std::unique_ptr<FusedBed>> make(const BenchOptions& options);
  ~FusedBed();

  device::Gpu& gpu() { return *gpu_; }
  // Frames of a mix of sizes.
  Expected<void> load(const std::string& mix);
  const MatchFrames& frames() const { return *frames_; }
  // Rules that deny so many percent of the frames.
  Expected<void> deny(unsigned percent);
  double denied_share() const;

  unsigned batch() const { return batch_; }
  // Batch b of them, on the stream; `fused`: as one kernel.
  unsigned batches() const { return (frames_->count() + batch_ - 1) / batch_; }
  Expected<void> launch(unsigned b, FusedParts parts, bool fused, device::GpuStream& stream);

  // All batches once, and what came out against the CPU: rules by trying each, routes by rte_fib, keys by Hyperscan, as
  // far as a launch reports them (match_verify.h), though every frame is searched to its end. Of what is denied, behind
  // a fused kernel, that nothing was looked for. Answers how many keys there are.
  Expected<std::uint64_t> verify(FusedParts parts, bool fused);

  const std::string& about() const { return about_; }

 private:
  FusedBed() = default;
  Expected<void> make_memory();
  Expected<void> make_routes();
  Expected<void> make_patterns(const BenchOptions& options);
  bool is_denied(std::uint32_t frame) const;
  Expected<void> verify_rules() const;
  Expected<void> verify_routes(bool dropped_early) const;

  std::unique_ptr<void, void (*)(void*)> memory_{nullptr, nullptr};  // before the GPU, which unpins it first
  std::unique_ptr<device::Gpu> gpu_;
  unsigned batch_ = 0;
  std::string about_;

  AclSet set_;
  std::unique_ptr<lookup::acl::GpuClassifier> classifier_;
  std::unique_ptr<lookup::Trie> trie4_, trie6_;
  std::unique_ptr<lookup::Fib> fib_;
  std::unique_ptr<lookup::GpuFib> gpu_fib_;
  std::vector<match::Pattern> patterns_;
  std::unique_ptr<match::KeySet> keys_;
  std::unique_ptr<match::GpuMatcher> matcher_;
  std::unique_ptr<match::CpuMatcher> reference_;  // of the keys

  std::unique_ptr<MatchFrames> frames_;
  lookup::acl::Key4* key_ = nullptr;  // pinned, by frame
  std::uint32_t* place_ = nullptr;
  lookup::acl::RuleIndex* rule_ = nullptr;
  std::uint32_t* address_ = nullptr;
  lookup::NextHopId* hop_ = nullptr;
};

}  // namespace sluice::cli::bench
