// How a kernel that reads the payloads of a batch spreads them over warps: the one that matches, and those that do more
// than match (function/fused/).
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/frame_read.cuh"
#include "match/automaton/match_batch.h"

namespace sluice::match {

inline constexpr unsigned match_block_threads = 256, match_block_warps = match_block_threads / 32;

struct MatchSpread {
  unsigned blocks;
  unsigned per_warp;  // frames that a warp takes at a time
};

inline MatchSpread spread_of(const MatchBatch& batch) {
  // Frames in host memory: the link is full with the first figure, where frames are large, and more that is under way
  // makes each read wait longer; of small ones, whose number counts, more must be. In device memory the whole GPU is
  // needed.
  constexpr unsigned link_blocks = 132, small_blocks = 528, staged_blocks = 1056;
  // What a warp reads of its frames' descriptors comes in pieces of 32 bytes, which are at least four of them.
  constexpr unsigned shared_by = 8, enough_to_share = 512;
  constexpr std::uint64_t small_payload = 64;  // bytes, on average
  const bool small = batch.bytes < small_payload * batch.count;
  const unsigned most_blocks = batch.on_device ? staged_blocks : small ? small_blocks : link_blocks;
  unsigned per_warp = small ? 32 : device::frames_per_warp(batch.count, most_blocks * match_block_warps);
  if (!batch.on_device && batch.count >= enough_to_share) per_warp = std::max(per_warp, shared_by);
  const unsigned per_block = per_warp * match_block_warps;
  return {std::min(most_blocks, (batch.count + per_block - 1) / per_block), per_warp};
}

}  // namespace sluice::match
