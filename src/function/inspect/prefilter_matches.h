// What a device has found in a frame's payload before the frame is inspected.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstdint>
#include <span>

#include "match/automaton/match_batch.h"

namespace sluice::function {

// The keys that a device has found (match/automaton/match_batch.h).
struct KeyHits {
  std::uint64_t generation = 0;  // of the rules that they are of; of others than the Inspection's they are of no use
  const std::uint32_t* key = nullptr;
  std::uint32_t count = 0;  // above match::max_hits: not all are here, which is of no use either
  // FrameBrief::updates_flow_only of the frame, by the same rules.
  bool updates_flow_only = false;
};

// KeyHits as an Inspection may use them. They are not copied: for as long as the hits live.
class PrefilterMatches {
 public:
  // None, and nobody has looked.
  PrefilterMatches() : hits_(&no_hits) {}
  // `generation`: of the rules in force.
  PrefilterMatches(const KeyHits& hits, std::uint64_t generation) : hits_(&hits) {
    const bool looked = hits.generation == generation, are_all = hits.count <= match::max_hits;
    known_ = looked & are_all;
    too_many_ = looked & !are_all;
  }
  // They are of the rules in force, and all that there are.
  static PrefilterMatches of_searched(const KeyHits& hits) {
    PrefilterMatches matches;
    matches.hits_ = &hits;
    matches.known_ = true;
    return matches;
  }
  // Of a payload that no device has seen whole.
  static PrefilterMatches of_unseen() {
    PrefilterMatches matches;
    matches.too_many_ = true;
    return matches;
  }

  std::span<const std::uint32_t> keys() const { return {hits_->key, hits_->count}; }
  // KeyHits::updates_flow_only.
  bool updates_flow_only() const { return hits_->updates_flow_only; }
  bool known() const { return known_; }        // they are all that there are, by the rules in force
  bool too_many() const { return too_many_; }  // the device has found more than it says, or has not seen all

 private:
  static constexpr KeyHits no_hits{};
  const KeyHits* hits_;
  bool known_ = false, too_many_ = false;
};

}  // namespace sluice::function
