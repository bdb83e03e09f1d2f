// The kernels of techniques.h with a thread for each packet; those of its pieces are in segments.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "bench/techniques/dfa.h"
#include "bench/techniques/tally.cuh"
#include "device/launch.h"

namespace sluice::match {

inline constexpr unsigned technique_threads = 256;  // as in the paper
inline constexpr unsigned prefetch_bytes = 12 * 1024;
inline constexpr unsigned chunk_bytes = 8;

struct PacketBatch {
  const std::uint8_t* bytes;
  const std::uint32_t* offset;  // of a packet in `bytes`, a multiple of 16
  const std::uint16_t* length;
  const std::uint32_t* order;  // null, or which packet a thread takes
  std::uint32_t* ends;
  std::uint32_t count;
};

// What a thread knows of its packet: all that is exchanged.
struct Walk {
  const std::uint8_t* at;
  std::uint32_t left;   // bytes
  std::uint32_t state;  // of the automaton
  std::uint32_t ends;
  std::uint32_t packet;

  __device__ bool alive() const { return left != 0; }

  __device__ __forceinline__ void step(const std::uint32_t* __restrict__ next) {
    const auto chunk = *reinterpret_cast<const unsigned long long*>(at);
    const unsigned here = left < chunk_bytes ? left : chunk_bytes;
    for (unsigned i = 0; i < here; ++i) {
      const std::uint32_t entry = __ldg(next + state * 256ull + (chunk >> 8 * i & 0xff));
      state = entry & ~Dfa::accepts;
      ends += entry >> 31;
    }
    at += chunk_bytes;
    left -= here;
  }
};

__device__ __forceinline__ Walk begin_walk(const PacketBatch& batch, unsigned i) {
  if (i >= batch.count) return {nullptr, 0, 0, 0, ~0u};
  const unsigned packet = batch.order == nullptr ? i : batch.order[i];
  return {batch.bytes + batch.offset[packet], batch.length[packet], 0, 0, packet};
}

// The first warp reads its packets, as many as fit, into shared memory, where its threads then find them.
__device__ inline void prefetch_first_warp(Walk& walk, uint4* shared) {
  if (threadIdx.x >= 32) return;
  const unsigned units = (walk.left + 15) / 16;
  unsigned sum = units;
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned below = __shfl_up_sync(0xffffffffu, sum, step);
    if (threadIdx.x >= step) sum += below;
  }
  const unsigned begin = sum - units;
  const bool fits = sum <= prefetch_bytes / 16;
  for (unsigned p = 0; p < 32; ++p) {
    if (__shfl_sync(0xffffffffu, static_cast<int>(fits), static_cast<int>(p)) == 0) break;
    const auto from = __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(walk.at), static_cast<int>(p));
    const unsigned to = __shfl_sync(0xffffffffu, begin, static_cast<int>(p));
    const unsigned many = __shfl_sync(0xffffffffu, units, static_cast<int>(p));
    for (unsigned u = threadIdx.x; u < many; u += 32) shared[to + u] = reinterpret_cast<const uint4*>(from)[u];
  }
  __syncwarp();
  if (fits && walk.left != 0) walk.at = reinterpret_cast<const std::uint8_t*>(shared + begin);
}

template <bool prefetch, bool counted>
__global__ void __launch_bounds__(technique_threads)
    walk_packets(PacketBatch batch, const std::uint32_t* __restrict__ next, LoopTally tally) {
  __shared__ uint4 fetched[prefetch ? prefetch_bytes / 16 : 1];
  Walk walk = begin_walk(batch, blockIdx.x * technique_threads + threadIdx.x);
  if constexpr (prefetch) prefetch_first_warp(walk, fetched);
  Tally seen;
  while (walk.alive()) {
    walk.step(next);
    if constexpr (counted) seen.iteration();
  }
  if (walk.packet != ~0u) batch.ends[walk.packet] = walk.ends;
  if constexpr (counted) seen.add_to(tally);
}

// The threads [0, alive) of a block have packets. Those of them that are done take over the packets of the last ones
// that are not; returns how many are left, which are the first ones again. All threads of the block together.
struct Exchange {
  Walk moving[technique_threads];
  unsigned below_holes[technique_threads / 32], below_movers[technique_threads / 32];
  unsigned flag;
};

__device__ inline unsigned remap(Walk& walk, unsigned alive, Exchange& shared) {
  const unsigned id = threadIdx.x, warp = id / 32, lane = id % 32;
  const auto left = static_cast<unsigned>(__syncthreads_count(id < alive && walk.alive()));
  const bool hole = id < left && !walk.alive();
  const bool mover = id >= left && id < alive && walk.alive();
  const unsigned holes = __ballot_sync(0xffffffffu, hole), movers = __ballot_sync(0xffffffffu, mover);
  if (lane == 0) {
    shared.below_holes[warp] = static_cast<unsigned>(__popc(holes));
    shared.below_movers[warp] = static_cast<unsigned>(__popc(movers));
  }
  __syncthreads();
  unsigned rank = static_cast<unsigned>(__popc((hole ? holes : movers) & ((1u << lane) - 1)));
  for (unsigned w = 0; w < warp; ++w) rank += hole ? shared.below_holes[w] : shared.below_movers[w];
  if (mover) {
    shared.moving[rank] = walk;
    walk.left = 0;
    walk.packet = ~0u;
  }
  if (id == 0) shared.flag = 0;
  __syncthreads();
  if (hole) walk = shared.moving[rank];
  return left;
}

enum class Signal { always, flag };

// CITES' threshold (section 3.2): so many threads of the block as have its longest packets, and a warp's at least,
// which nothing is gained from exchanging.
__device__ inline unsigned threads_left_alone(const Walk& walk, unsigned& longest) {
  if (threadIdx.x == 0) longest = 0;
  __syncthreads();
  atomicMax(&longest, walk.left);
  __syncthreads();
  const auto count = static_cast<unsigned>(__syncthreads_count(walk.alive() && walk.left == longest));
  return count > 32 ? count : 32;
}

// `stops`: no more exchanges once no more threads than CITES' threshold are left.
template <Signal signal, bool prefetch, bool counted>
__global__ void __launch_bounds__(technique_threads)
    walk_remapped(PacketBatch batch, const std::uint32_t* __restrict__ next, bool stops, LoopTally tally) {
  __shared__ uint4 fetched[prefetch ? prefetch_bytes / 16 : 1];
  __shared__ Exchange shared;
  Walk walk = begin_walk(batch, blockIdx.x * technique_threads + threadIdx.x);
  if constexpr (prefetch) prefetch_first_warp(walk, fetched);
  const unsigned threshold = stops ? threads_left_alone(walk, shared.flag) : 0;
  if (threadIdx.x == 0) shared.flag = 0;
  unsigned alive = technique_threads;
  Tally seen;
  const auto store = [&] {
    if (!walk.alive() && walk.packet != ~0u) {
      batch.ends[walk.packet] = walk.ends;
      walk.packet = ~0u;
    }
  };
  __syncthreads();
  while (alive > threshold) {
    if (walk.alive()) {
      walk.step(next);
      if constexpr (counted) seen.iteration();
    }
    if constexpr (signal == Signal::flag) {
      // On with the packet until some thread of the block is at an end.
      if (!walk.alive() && threadIdx.x < alive) atomicAdd(&shared.flag, 1u);
      while (walk.alive() && *static_cast<volatile unsigned*>(&shared.flag) == 0) {
        walk.step(next);
        if constexpr (counted) seen.iteration();
        if (!walk.alive()) atomicAdd(&shared.flag, 1u);
      }
    }
    store();
    alive = remap(walk, alive, shared);
  }
  while (walk.alive()) {
    walk.step(next);
    if constexpr (counted) seen.iteration();
  }
  store();
  if constexpr (counted) seen.add_to(tally);
}

}  // namespace sluice::match
