// The kernels of techniques.h with a thread for each piece of a packet.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "bench/techniques/techniques.cuh"
#include "bench/techniques/two_byte_table.h"
#include "device/launch.h"

namespace sluice::match {

inline constexpr unsigned segment_bytes = 64;

// A warp takes 32 packets, cut into pieces of 64 bytes, a piece for each lane, whatever packet it is of.
// search(bytes of the packet, from, stop) gives the ends in [from, stop) of it.
template <typename Search>
__device__ __forceinline__ void over_pieces(const PacketBatch& batch, Search&& search) {
  __shared__ unsigned sums[technique_threads / 32][32];
  unsigned* const sum = sums[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warps = gridDim.x * (technique_threads / 32);
  for (unsigned first = (blockIdx.x * technique_threads + threadIdx.x) / 32 * 32; first < batch.count;
       first += warps * 32) {
    const bool mine = first + lane < batch.count;
    const unsigned offset = mine ? batch.offset[first + lane] : 0, length = mine ? batch.length[first + lane] : 0;
    const unsigned pieces = (length + segment_bytes - 1) / segment_bytes;
    unsigned end = pieces;
    for (unsigned step = 1; step < 32; step *= 2) {
      const unsigned below = __shfl_up_sync(0xffffffffu, end, step);
      if (lane >= step) end += below;
    }
    const unsigned all = __shfl_sync(0xffffffffu, end, 31);
    sum[lane] = 0;
    __syncwarp();
    for (unsigned base = 0; base < all; base += 32) {
      const unsigned piece = base + lane;
      unsigned packet = 0;
      for (unsigned step = 16; step > 0; step /= 2) {
        if (__shfl_sync(0xffffffffu, end, static_cast<int>(packet + step - 1)) <= piece) packet += step;
      }
      const auto holder = static_cast<int>(packet);
      const unsigned of = __shfl_sync(0xffffffffu, offset, holder), size = __shfl_sync(0xffffffffu, length, holder);
      const unsigned from = (piece - __shfl_sync(0xffffffffu, end - pieces, holder)) * segment_bytes;
      unsigned ends = 0;
      if (piece < all) {
        ends = search(batch.bytes + of, from, size - from < segment_bytes ? size : from + segment_bytes);
      }
      if (ends != 0) atomicAdd(&sum[packet], ends);
    }
    __syncwarp();
    if (mine) batch.ends[first + lane] = sum[lane];
    __syncwarp();
  }
}

// The `warm_up` bytes in front of a piece, a multiple of 8, bring the automaton to where it would be.
template <bool counted>
__global__ void __launch_bounds__(technique_threads)
    walk_segments(PacketBatch batch, const std::uint32_t* __restrict__ next, unsigned warm_up, unsigned hot_states,
                  LoopTally tally) {
  SLUICE_DYNAMIC_SHARED(std::uint32_t, hot);
  for (unsigned i = threadIdx.x; i < hot_states * 256; i += technique_threads) hot[i] = next[i];
  if (hot_states != 0) __syncthreads();
  Tally seen;
  over_pieces(batch, [&](const std::uint8_t* bytes, unsigned from, unsigned stop) {
    const unsigned back = from < warm_up ? from : warm_up;
    std::uint32_t state = 0;
    unsigned ends = 0;
    for (unsigned at = from - back; at < stop; at += chunk_bytes) {
      const auto chunk = *reinterpret_cast<const unsigned long long*>(bytes + at);
      const unsigned here = stop - at < chunk_bytes ? stop - at : chunk_bytes;
      for (unsigned i = 0; i < here; ++i) {
        const unsigned long long index = state * 256ull + (chunk >> 8 * i & 0xff);
        const std::uint32_t entry = state < hot_states ? hot[index] : __ldg(next + index);
        state = entry & ~Dfa::accepts;
        if (at >= from) ends += entry >> 31;
      }
      if constexpr (counted) seen.iteration();
    }
    return ends;
  });
  if constexpr (counted) seen.add_to(tally);
}

// A TwoByteTable in device memory.
struct PairTable {
  const std::uint32_t* pairs;
  const std::uint8_t* class_of;
  std::uint32_t classes;
  std::uint32_t hot_states;  // 0: single steps alone
};

// Bytes of shared memory for a thread's piece: an odd number of words, so that lanes at the same place of theirs meet
// in no bank, with capacity for the bytes that are read ahead.
inline constexpr unsigned staged_pitch(unsigned warm_up) {
  return warm_up + segment_bytes + 4;
}

__device__ __forceinline__ void store_words(std::uint8_t* to, const uint4& unit) {
  auto* const word = reinterpret_cast<std::uint32_t*>(to);
  word[0] = unit.x;
  word[1] = unit.y;
  word[2] = unit.z;
  word[3] = unit.w;
}

// The `back` bytes in front of `at` and the `size` bytes of the piece there, to `to`. The piece's own are asked for
// before anything waits for one of them.
__device__ __forceinline__ void stage(std::uint8_t* to, const std::uint8_t* at, unsigned back, unsigned size) {
  constexpr unsigned unit_bytes = sizeof(uint4), units = segment_bytes / unit_bytes;
  uint4 unit[units];
  SLUICE_UNROLL
  for (unsigned u = 0; u < units; ++u) {
    unit[u] = u * unit_bytes < size ? reinterpret_cast<const uint4*>(at)[u] : uint4{};
  }
  for (unsigned b = 0; b < back; b += unit_bytes) {
    store_words(to + b, *reinterpret_cast<const uint4*>(at - back + b));
  }
  SLUICE_UNROLL
  for (unsigned u = 0; u < units; ++u) store_words(to + back + u * unit_bytes, unit[u]);
}

// A lane brings its piece to shared memory and goes through it at a pace of its own: by two bytes from a hot state, by
// one from any other. Lanes wait for each other at the piece's end only; in step, a warp would hardly ever be in hot
// states with all 32 lanes. `warm_up`: a multiple of 16.
template <bool counted>
__global__ void __launch_bounds__(technique_threads)
    walk_staged(PacketBatch batch, const std::uint32_t* __restrict__ next, PairTable table, unsigned warm_up,
                LoopTally tally) {
  SLUICE_DYNAMIC_SHARED(std::uint8_t, staged);
  __shared__ std::uint8_t class_of[256];
  class_of[threadIdx.x] = table.class_of[threadIdx.x];
  __syncthreads();
  std::uint8_t* const piece = staged + threadIdx.x * staged_pitch(warm_up);
  Tally seen;
  over_pieces(batch, [&](const std::uint8_t* bytes, unsigned from, unsigned stop) {
    const unsigned back = from < warm_up ? from : warm_up, length = stop - (from - back);
    stage(piece, bytes + from, back, stop - from);
    std::uint32_t state = 0;
    unsigned ends = 0;
    unsigned byte0 = piece[0], byte1 = piece[1], class0 = class_of[byte0], class1 = class_of[byte1];
    for (unsigned at = 0; at < length;) {
      // Read ahead, so that these reads are not behind the table's.
      const unsigned byte2 = piece[at + 2], byte3 = piece[at + 3], class2 = class_of[byte2], class3 = class_of[byte3];
      const bool both = state < table.hot_states && at + 1 < length;
      const std::uint32_t entry = __ldg(both ? table.pairs + ((state * table.classes + class0) * table.classes + class1)
                                             : next + (state * 256ull + byte0));
      state = entry & TwoByteTable::state_mask;
      if (at >= back) ends += entry >> 31;
      if (at + 1 >= back) ends += entry >> 30 & 1;
      at += both ? 2 : 1;
      byte0 = both ? byte2 : byte1;
      byte1 = both ? byte3 : byte2;
      class0 = both ? class2 : class1;
      class1 = both ? class3 : class2;
      if constexpr (counted) seen.iteration();
    }
    return ends;
  });
  if constexpr (counted) seen.add_to(tally);
}

}  // namespace sluice::match
