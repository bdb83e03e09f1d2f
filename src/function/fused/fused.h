// The fused kernel: the work that the elements of a pass have for a batch, as one kernel (Blink, whose Classifier,
// IPLookup and IDSMatcher these are, calls it a capsule). Instead of GpuClassifier::classify, GpuFib::lookup and
// GpuMatcher::match, one launch goes over the frames once: a warp takes a group of them, each lane classifies and looks
// up its own frame, then all lanes read the payloads of those that are left.
//
// A frame that the classifier drops costs nothing more: its route is not looked up, its payload does not come over the
// link. Dropped are malformed frames and those whose rule, or the default, is `deny`; `mark` and `police` go on.
//
// What comes out: for every frame the rule that classify() finds; for frames that go on what lookup() and match() find,
// but for this: the argument of an IPv6 frame is not looked up as if it were an IPv4 address, so its `verdict` stays as
// it was. Of dropped frames `found` is 0, and next hop and keys stay as they were.
//
// What of a frame comes over the link besides its payload is read once: of an IPv4 frame that is classified 29 bytes.
// Loads are of 32 bytes at least, which are a few frames' of an array.
//
// How a pipeline uses it: each element adds its own to a FusedWork (fusable.h), in the order of the chain.
// Threads: as GpuMatcher::match. Errors: a CUDA error. Cost: one launch; the metrics are in docs/fused.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "device/gpu.h"
#include "function/acl/frame_place.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/tables_view.h"
#include "lookup/gpu_fib.h"
#include "match/automaton/gram_table.h"
#include "match/automaton/match_batch.h"

namespace sluice::function {

// All arrays lie in memory that the device addresses.
struct FusedWork {
  struct Classify {
    lookup::acl::ClassifierView view;
    bool deny_others = false;              // of frames that no rule matches
    bool in_order = false;                 // every frame has an IPv4 key, in the order of frames: `place` is not read
    const std::uint32_t* place = nullptr;  // by frame (frame_place.h)
    const lookup::acl::Key4* keys4 = nullptr;
    const lookup::acl::Key6* keys6 = nullptr;
    lookup::acl::RuleIndex* rules4 = nullptr;  // out, by key
    lookup::acl::RuleIndex* rules6 = nullptr;
  };
  struct Route {
    lookup::Fib4View view4 = {};
    lookup::Fib6View view6 = {};
    // By frame: its IPv4 destination in host order, or the index of its key. Not read where the classifier has an IPv4
    // key, which holds the destination, too.
    const std::uint32_t* argument = nullptr;
    lookup::NextHopId* verdict = nullptr;    // out, by frame
    const std::uint32_t* is_key6 = nullptr;  // by frame, a bit: it has a key. Null: none has
    const std::uint8_t* keys6 = nullptr;     // 16 bytes each, 16-byte aligned
    lookup::NextHopId* answers6 = nullptr;   // out, by key
  };
  struct Match {
    match::GramView view = {};
    match::MatchBatch batch;  // of `count` frames
  };

  std::uint32_t count = 0;  // frames
  std::optional<Classify> classify;
  std::optional<Route> route;
  std::optional<Match> match;

  unsigned parts() const { return unsigned{classify.has_value()} + route.has_value() + match.has_value(); }
};

inline constexpr std::size_t most_works = 8;  // in one kernel

// Enqueues the work of two parts or three, of several batches, each with the same parts, as one kernel.
Expected<void> launch_fused(std::span<const FusedWork> works, device::GpuStream& stream);
inline Expected<void> launch_fused(const FusedWork& work, device::GpuStream& stream) {
  return launch_fused(std::span(&work, 1), stream);
}

}  // namespace sluice::function
