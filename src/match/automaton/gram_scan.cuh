// A warp finds the keys of a group of frames as it reads them (device/frame_read.cuh): every lane looks at the 16
// positions of its own bytes, and at the eight bytes in front of them, which the lane before it has.
//
//     __shared__ GroupHits hits[warps];
//     KeyScan scan(view, hits[warp]);                            // empties the hits
//     group.read<4>([&](const FrameUnit& unit, uint4 bytes) { scan.visit(unit, bytes, begin, end, klass); });
//     // hits[warp].count[f], .key[f][]: of the group's frame f, each key once
//
// Cost: about 11 instructions and one read from L1 for each byte; the rest is rare. All lanes of the warp together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "device/frame_read.cuh"
#include "match/automaton/gram_table.h"
#include "match/automaton/match_batch.h"

namespace sluice::match {

struct GroupHits {
  std::uint32_t count[32];
  std::uint32_t key[32][max_hits];
};

// Four bytes at once, ASCII upper case to lower case.
__device__ __forceinline__ std::uint32_t fold4(std::uint32_t word) {
  const std::uint32_t low = word & 0x7f7f7f7fu;
  const std::uint32_t from_a = low + 0x01010101u * (0x80 - 'A');
  const std::uint32_t past_z = low + 0x01010101u * (0x7f - 'Z');
  return word | ((from_a & ~past_z & ~word & 0x80808080u) >> 2);
}

// What else hears of each key that stands in a group's frame f, each time that it does. Nobody.
// One that `counts` has bytes(active) and keys(active): of each step over bytes and of each turn of comparing, which
// all lanes come to, whether this lane has anything to do in it (bench/techniques/tally.cuh).
struct Unheard {
  static constexpr bool hears = false, counts = false;
  __device__ void operator()(unsigned /*f*/, std::uint32_t /*key*/) const {}
};

// Marks every key of a group's frames.
struct EveryKey {
  static constexpr bool hears = true, counts = false;
  std::uint32_t* of_group;
  std::uint32_t words;
  __device__ void operator()(unsigned frame, std::uint32_t key) const {
    atomicOr(of_group + std::size_t{frame} * words + key / 32, 1u << key % 32);
  }
};

inline constexpr std::uint32_t no_hit = ~0u;

// Adds what the lanes have found, a key of a frame or no_hit each, to their frames' hits, each key once; count
// max_hits + 1: there were more.
__device__ inline void record_hits(GroupHits& hits, std::uint32_t hit, unsigned frame) {
  const unsigned lane = threadIdx.x % 32;
  unsigned hitters = __ballot_sync(device::every_lane, hit != no_hit);
  while (hitters != 0) {
    const int source = __ffs(static_cast<int>(hitters)) - 1;
    hitters &= hitters - 1;
    const std::uint32_t key = __shfl_sync(device::every_lane, hit, source);
    const unsigned of = __shfl_sync(device::every_lane, frame, source);
    const std::uint32_t count = hits.count[of];
    const bool known = lane < count && lane < max_hits && hits.key[of][lane] == key;
    const bool add = !__any_sync(device::every_lane, known) && count <= max_hits;
    if (add && lane == 0) {
      if (count < max_hits) hits.key[of][count] = key;
      hits.count[of] = count + 1;
    }
    __syncwarp();
  }
}

template <typename Hearer = Unheard>
class KeyScan {
 public:
  __device__ __forceinline__ KeyScan(const GramView& view, GroupHits& hits, Hearer hearer = {})
      : view_(view), hits_(hits), hearer_(hearer) {
    hits_.count[lane()] = 0;
    __syncwarp();
  }

  // `unit`, `bytes`: of FrameGroup::read, in the order it gives them. The payload of the unit's frame is
  // [begin, end) of the frame; `klass` is the frame's class.
  __device__ __forceinline__ void visit(const device::FrameUnit& unit, uint4 bytes, int begin, int end,
                                        unsigned klass) {
    const std::uint32_t x = fold4(bytes.x), y = fold4(bytes.y), z = fold4(bytes.z), w = fold4(bytes.w);
    // The lane before has the bytes in front; of the first lane that is the last lane of the visit before.
    const bool last = lane() == 31;
    const int before = static_cast<int>((lane() + 31) % 32);
    const std::uint32_t back_z = __shfl_sync(device::every_lane, last ? z_ : z, before);
    const std::uint32_t back_w = __shfl_sync(device::every_lane, last ? w_ : w, before);
    z_ = z;
    w_ = w;
    const std::uint32_t word[6] = {back_z, back_w, x, y, z, w};
    const int stop = end - unit.offset;
    std::uint32_t long_ends = 0, short_ends = 0;
    const bool looks = unit.any() && (view_.whole || hits_.count[unit.frame] <= max_hits);
    if constexpr (Hearer::counts) hearer_.bytes(looks);
    if (looks) {
      long_ends = ends<true>(word, klass) & positions(begin + 3 - unit.offset, stop);
      if ((view_.short_classes >> klass & 1) != 0) {
        short_ends = ends<false>(word, klass) & positions(begin + 1 - unit.offset, stop);
      }
    }
    if (__any_sync(device::every_lane, (long_ends | short_ends) != 0)) {
      compare(word, long_ends, short_ends, unit, begin, klass);
    }
  }

 private:
  static __device__ __forceinline__ unsigned lane() { return threadIdx.x % 32; }

  // Positions [from, to) of 16, as bits.
  static __device__ __forceinline__ std::uint32_t positions(int from, int to) {
    const int low = from < 0 ? 0 : from > 16 ? 16 : from;
    const int high = to < 0 ? 0 : to > 16 ? 16 : to;
    return high <= low ? 0u : (1u << high) - (1u << low);
  }

  // The positions of the 16 own bytes at which a key may end.
  template <bool grams>
  __device__ __forceinline__ std::uint32_t ends(const std::uint32_t (&word)[6], unsigned klass) const {
    std::uint32_t found = 0;
    SLUICE_UNROLL
    for (int e = 0; e < 16; ++e) {
      const std::uint32_t four =
          e % 4 == 3 ? word[2 + e / 4] : __funnelshift_r(word[1 + e / 4], word[2 + e / 4], 8 * (e % 4 + 1));
      if constexpr (grams) {
        const std::uint32_t bit = GramTable::gram_hash(four) >> view_.filter_shift;
        found |= (__ldg(view_.filter + bit / 32) >> bit % 32 & 1u) << e;
      } else {
        const std::uint32_t two = four >> 16;
        found |= (__ldg(view_.short_ends + klass * GramTable::short_words + two / 32) >> two % 32 & 1u) << e;
      }
    }
    return found;
  }

  // The eight bytes that end at position e, the last one highest.
  static __device__ __forceinline__ std::uint64_t eight(const std::uint32_t (&word)[6], int e) {
    const int at = e / 4;
    const std::uint32_t a = at == 0 ? word[0] : at == 1 ? word[1] : at == 2 ? word[2] : word[3];
    const std::uint32_t b = at == 0 ? word[1] : at == 1 ? word[2] : at == 2 ? word[3] : word[4];
    const std::uint32_t c = at == 0 ? word[2] : at == 1 ? word[3] : at == 2 ? word[4] : word[5];
    const int shift = 8 * (e % 4 + 1);
    const std::uint64_t ba = static_cast<std::uint64_t>(b) << 32 | a, cb = static_cast<std::uint64_t>(c) << 32 | b;
    return (ba >> shift & 0xffffffffu) | (cb >> shift << 32);
  }

  // Each lane takes its positions one by one, and the keys that may end there; the warp records what was found.
  __device__ void compare(const std::uint32_t (&word)[6], std::uint32_t long_ends, std::uint32_t short_ends,
                          const device::FrameUnit& unit, int begin, unsigned klass) {
    std::uint32_t at = 0, last = 0;
    std::uint64_t value = 0;
    int available = 0;  // bytes of the payload up to the position
    while (__any_sync(device::every_lane, (long_ends | short_ends) != 0 || at < last)) {
      if constexpr (Hearer::counts) hearer_.keys((long_ends | short_ends) != 0 || at < last);
      if (at == last && (long_ends | short_ends) != 0) {
        const bool is_long = long_ends != 0;
        std::uint32_t& ends = is_long ? long_ends : short_ends;
        const int e = __ffs(static_cast<int>(ends)) - 1;
        ends &= ends - 1;
        value = eight(word, e);
        available = unit.offset + e + 1 - begin;
        const std::uint32_t* const bucket =
            is_long
                ? view_.bucket + (GramTable::gram_hash(static_cast<std::uint32_t>(value >> 32)) >> view_.bucket_shift)
                : view_.short_bucket + GramTable::short_hash(static_cast<std::uint32_t>(value >> 48));
        at = __ldg(bucket);
        last = __ldg(bucket + 1);
      }
      std::uint32_t hit = no_hit;
      while (at < last && hit == no_hit) {
        const uint4 raw = __ldg(reinterpret_cast<const uint4*>(view_.entry + at++));
        const std::uint64_t key = static_cast<std::uint64_t>(raw.y) << 32 | raw.x;
        const int length = static_cast<int>(raw.z % 16);
        const bool same = ((value ^ key) >> (64 - 8 * length)) == 0;
        if (same && length <= available && (raw.w >> klass & 1) != 0) hit = raw.z / 16;
      }
      if constexpr (Hearer::hears) {
        if (hit != no_hit) hearer_(unit.frame, hit);
      }
      record_hits(hits_, hit, unit.frame);
      if (!view_.whole && hits_.count[unit.frame] > max_hits) long_ends = short_ends = at = last = 0;
    }
  }

  const GramView& view_;
  GroupHits& hits_;
  const Hearer hearer_;
  std::uint32_t z_ = 0, w_ = 0;  // the last eight bytes of this lane's unit of the visit before
};

// A lane's own frame of a group. A span without bytes: nothing of it is read.
struct MatchFrame {
  std::uint64_t address = 0;
  Span span = {0, 0};
  unsigned klass = 0;
};

// Reads a group's payloads where they lie; hits has their keys when it returns. `meanwhile()` is called when the places
// of this group's bytes are known and before they are read: loads that begin there travel with them.
template <typename Meanwhile, typename Hearer = Unheard>
__device__ __forceinline__ void match_group(const GramView& view, GroupHits& hits, const MatchFrame& frame,
                                            Meanwhile&& meanwhile, Hearer hearer = {}) {
  const unsigned begin_end = frame.span.begin | static_cast<unsigned>(frame.span.end) << 16, own_class = frame.klass;
  // Lines in front of the payload are not read: the group's "frames" are the payloads.
  const std::uint64_t payload = frame.address + frame.span.begin;
  const unsigned length = frame.span.end > frame.span.begin ? frame.span.end - frame.span.begin : 0;
  const auto lines = device::FrameGroup::of(payload, length);
  const auto units = device::FrameLines<16>::of(payload, length);
  meanwhile();
  KeyScan<Hearer> scan(view, hits, hearer);
  const auto look = [&](const device::FrameUnit& unit, uint4 bytes) {
    const unsigned of = __shfl_sync(device::every_lane, begin_end, static_cast<int>(unit.frame));
    const unsigned kind = __shfl_sync(device::every_lane, own_class, static_cast<int>(unit.frame));
    scan.visit(unit, bytes, 0, static_cast<int>(of >> 16) - static_cast<int>(of & 0xffff), kind);
  };
  if (2 * units.steps() <= lines.steps()) {
    units.read<1>(look);  // small frames, packed
  } else {
    lines.read<4>(look);
  }
  __syncwarp();
}

// This lane's frame of the group is frame i of the batch. A __syncwarp() must stand between this and the next group.
__device__ __forceinline__ void store_hits(const GroupHits& hits, const MatchBatch& batch, unsigned i) {
  const unsigned lane = threadIdx.x % 32, count = hits.count[lane];
  batch.found[i] = count;
  for (unsigned h = 0; h < min(count, max_hits); ++h) batch.key[i * max_hits + h] = hits.key[lane][h];
}

}  // namespace sluice::match
