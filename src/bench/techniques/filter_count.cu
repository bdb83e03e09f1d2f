#include "bench/techniques/filter_count.h"
#include "bench/techniques/groups.cuh"
#include "bench/techniques/tally.cuh"
#include "device/cuda_check.h"
#include "device/launch.h"
#include "match/automaton/gram_scan.cuh"
#include "match/automaton/match_spread.cuh"

namespace sluice::match {
namespace {

__global__ void __launch_bounds__(match_block_threads)
    count_groups(MatchBatch batch, GramView view, unsigned per_warp, SearchTally tally) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  Tally bytes, keys;
  for_each_group(batch, per_warp, [&](unsigned /*first*/, const MatchFrame& frame, auto&& meanwhile) {
    match_group(view, hits, frame, meanwhile, LoopHearer{bytes, keys});
  });
  bytes.add_to(tally.bytes);
  keys.add_to(tally.keys);
}

}  // namespace

Expected<void> count_filter(const GpuMatcher& matcher, const MatchBatch& batch, const SearchTally& tally,
                            device::GpuStream& stream) {
  if (batch.count == 0) return {};
  const MatchSpread spread = spread_of(batch);
  SLUICE_CUDA_TRY(device::launch(count_groups, spread.blocks, match_block_threads, 0,
                                 static_cast<cudaStream_t>(stream.raw()), batch, matcher.view(), spread.per_warp,
                                 tally));
  return {};
}

}  // namespace sluice::match
