// The kernels of gathered.h.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "bench/techniques/dfa.h"
#include "bench/techniques/groups.cuh"
#include "bench/techniques/tally.cuh"
#include "device/frame_read.cuh"
#include "match/automaton/gram_scan.cuh"
#include "match/automaton/match_spread.cuh"

namespace sluice::match {

// A key that ends in a state: the longest one, and the state in which the next shorter one does; 0: there is none.
struct alignas(16) KeyEnd {
  std::uint32_t key;
  ClassMask classes;
  std::uint32_t next;
  std::uint32_t unused;
};

struct KeyAutomaton {
  const std::uint32_t* next;  // Dfa::next()
  const KeyEnd* end;          // of each state; read where a key ends
  bool whole;                 // as GramView::whole
};

// A slot for each frame of a batch, and the descriptors of what is in them.
struct GatherSlots {
  std::uint64_t bytes;  // address of the first slot, aligned to a line
  std::uint32_t pitch;  // a multiple of a line
  std::uint64_t* frame;
  Span* span;
  std::uint8_t* klass;
};

// Payloads to their slots, at the same place in a line as where they come from.
__global__ void __launch_bounds__(match_block_threads)
    gather_payloads(MatchBatch batch, GatherSlots slots, unsigned per_warp) {
  constexpr int depth = 8;  // lines under way, of a lane
  const unsigned lane = threadIdx.x % 32;
  for_each_group(batch, per_warp, [&](unsigned first, const MatchFrame& frame, auto&& meanwhile) {
    const unsigned i = first + lane;
    const std::uint64_t payload = frame.address + frame.span.begin;
    const unsigned length = frame.span.end > frame.span.begin ? frame.span.end - frame.span.begin : 0;
    const auto skew = static_cast<unsigned>(payload % device::line_bytes);
    const bool fits = skew + length <= slots.pitch;
    const std::uint64_t slot = slots.bytes + std::uint64_t{i} * slots.pitch + skew;
    const auto lines = device::FrameGroup::of(payload, fits ? length : 0);
    const auto units = device::FrameLines<16>::of(payload, fits ? length : 0);
    meanwhile();
    if (lane < per_warp && i < batch.count) {
      slots.frame[i] = fits ? slot - frame.span.begin : frame.address;
      slots.span[i] = frame.span;
      slots.klass[i] = static_cast<std::uint8_t>(frame.klass);
    }
    const auto store = [&](const device::FrameUnit& unit, uint4 bytes) {
      const std::uint64_t to =
          __shfl_sync(device::every_lane, static_cast<unsigned long long>(slot), static_cast<int>(unit.frame));
      if (unit.any()) *reinterpret_cast<uint4*>(to + static_cast<std::uint64_t>(std::int64_t{unit.offset})) = bytes;
    };
    if (2 * units.steps() <= lines.steps()) {
      units.read<depth / 2>(store);  // small frames, packed
    } else {
      lines.read<depth>(store);
    }
  });
}

// A lane's piece of a payload: 64 bytes of whole words of eight, so the first and the last ones may hold other bytes.
struct Piece {
  static constexpr int bytes = 64, word = 8, warm_up = 8;  // a key that ends in the piece begins in the warm-up
  const std::uint8_t* base;                                // of the payload's first word
  int from;                                                // of the piece
  int begin, stop;                                         // bytes that are searched, without the warm-up: [from, stop)
};

// Eight bytes on; `after`: the state behind each. Answers at which of them a key ends.
__device__ __forceinline__ unsigned walk_word(const KeyAutomaton& keys, const Piece& piece, int at,
                                              std::uint32_t& state, std::uint32_t (&after)[Piece::word]) {
  const auto word = *reinterpret_cast<const unsigned long long*>(piece.base + at);
  unsigned ends = 0;
  SLUICE_UNROLL
  for (int i = 0; i < Piece::word; ++i) {
    if (at + i >= piece.begin && at + i < piece.stop) {
      const std::uint32_t entry = __ldg(keys.next + state * 256ull + (word >> 8 * i & 0xff));
      state = entry & ~Dfa::accepts;
      ends |= entry >> 31 << i;
    }
    after[i] = state;
  }
  return at < piece.from ? 0 : ends;
}

// Each lane takes its positions one by one, and the keys that end there; the warp records them.
template <typename Hearer>
__device__ void report_ends(const KeyAutomaton& keys, GroupHits& hits, unsigned ends,
                            const std::uint32_t (&after)[Piece::word], unsigned frame, unsigned klass, Hearer hearer) {
  std::uint32_t state = 0;
  while (__any_sync(device::every_lane, ends != 0 || state != 0)) {
    if constexpr (Hearer::counts) hearer.keys(ends != 0 || state != 0);
    if (state == 0 && ends != 0) {
      const int at = __ffs(static_cast<int>(ends)) - 1;
      ends &= ends - 1;
      SLUICE_UNROLL
      for (int i = 0; i < Piece::word; ++i) state = i == at ? after[i] : state;
    }
    std::uint32_t hit = no_hit;
    if (state != 0) {
      const uint4 end = __ldg(reinterpret_cast<const uint4*>(keys.end + state));
      if ((end.y >> klass & 1) != 0) hit = end.x;
      state = end.z;
    }
    if constexpr (Hearer::hears) {
      if (hit != no_hit) hearer(frame, hit);
    }
    record_hits(hits, hit, frame);
  }
}

// The keys of a group's payloads, cut into pieces, a piece for each lane, whatever frame it is of.
template <typename Hearer>
__device__ __forceinline__ void walk_group(const KeyAutomaton& keys, GroupHits& hits, const MatchFrame& frame,
                                           Hearer hearer) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t payload = frame.address + frame.span.begin;
  const unsigned length = frame.span.end > frame.span.begin ? frame.span.end - frame.span.begin : 0;
  const auto skew = static_cast<unsigned>(payload % Piece::word);
  const unsigned pieces = length == 0 ? 0 : (skew + length + Piece::bytes - 1) / Piece::bytes;
  unsigned end = pieces;
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned below = __shfl_up_sync(device::every_lane, end, step);
    if (lane >= step) end += below;
  }
  const unsigned all = __shfl_sync(device::every_lane, end, 31);
  hits.count[lane] = 0;
  __syncwarp();
  for (unsigned base = 0; base < all; base += 32) {
    unsigned of = 0;
    SLUICE_UNROLL
    for (unsigned step = 16; step > 0; step /= 2) {
      if (__shfl_sync(device::every_lane, end, static_cast<int>(of + step - 1)) <= base + lane) of += step;
    }
    const auto holder = static_cast<int>(of);
    const std::uint64_t start = __shfl_sync(device::every_lane, static_cast<unsigned long long>(payload), holder);
    const unsigned behind = __shfl_sync(device::every_lane, skew, holder);
    const unsigned size = __shfl_sync(device::every_lane, length, holder);
    const unsigned number = base + lane - __shfl_sync(device::every_lane, end - pieces, holder);
    const unsigned klass = __shfl_sync(device::every_lane, frame.klass, holder);
    Piece piece{reinterpret_cast<const std::uint8_t*>(start - behind), static_cast<int>(number) * Piece::bytes,
                static_cast<int>(behind), 0};
    if (base + lane < all) {
      piece.stop = min(static_cast<int>(behind + size), piece.from + Piece::bytes);
    }
    std::uint32_t state = 0;
    // All lanes take as many words, so that the warp can record what they find.
    SLUICE_ROLLED
    for (int at = piece.from - Piece::warm_up, words = 0; words <= Piece::bytes / Piece::word;
         ++words, at += Piece::word) {
      std::uint32_t after[Piece::word] = {};
      unsigned ends = 0;
      const bool walks = at >= 0 && at < piece.stop && (keys.whole || hits.count[of] <= max_hits);
      if constexpr (Hearer::counts) hearer.bytes(walks);
      if (walks) ends = walk_word(keys, piece, at, state, after);
      if (__any_sync(device::every_lane, ends != 0)) report_ends(keys, hits, ends, after, of, klass, hearer);
    }
  }
  __syncwarp();
}

__global__ void __launch_bounds__(match_block_threads)
    walk_keys(MatchBatch batch, KeyAutomaton keys, unsigned per_warp) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  for_each_group(batch, per_warp, [&](unsigned first, const MatchFrame& frame, auto&& meanwhile) {
    meanwhile();
    walk_group(keys, hits, frame, Unheard{});
    if (lane < per_warp && first + lane < batch.count) store_hits(hits, batch, first + lane);
  });
}

__global__ void __launch_bounds__(match_block_threads)
    count_walks(MatchBatch batch, KeyAutomaton keys, unsigned per_warp, SearchTally tally) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  Tally bytes, of_keys;
  for_each_group(batch, per_warp, [&](unsigned /*first*/, const MatchFrame& frame, auto&& meanwhile) {
    meanwhile();
    walk_group(keys, hits, frame, LoopHearer{bytes, of_keys});
  });
  bytes.add_to(tally.bytes);
  of_keys.add_to(tally.keys);
}

// `seen`: bit k of the words of each frame, of every key k.
__global__ void __launch_bounds__(match_block_threads)
    mark_walked_keys(MatchBatch batch, KeyAutomaton keys, unsigned per_warp, std::uint32_t* seen, std::uint32_t words) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  for_each_group(batch, per_warp, [&](unsigned first, const MatchFrame& frame, auto&& meanwhile) {
    meanwhile();
    walk_group(keys, hits, frame, EveryKey{seen + std::size_t{first} * words, words});
  });
}

}  // namespace sluice::match
