// A warp reads the bytes of a group of up to 32 frames, in host memory or in device memory, 16 bytes a lane, in whole
// 128-byte lines, whatever the frames' sizes. Eight lanes share a line, four lines make one step of the warp, `depth`
// steps are in flight. Small frames share a step, large ones take several.
//
//     const FrameGroup group = FrameGroup::of(address, length);        // lane l holds frame l; length 0: no frame
//     group.read<4>([&](const FrameUnit& unit, uint4 bytes) { ... });  // all lanes together, also those without bytes
//
// Performance considerations: the link needs about 256 KiB in flight: 128 warps at depth 4. Lines are never split
// between two requests. Reads round to 16-byte units that hold at least one byte of the frame: never past the page, nor
// past the mbuf.
#pragma once

#include <cstdint>

#include "device/frame_copy.h"
#include "device/launch.h"

namespace sluice::device {

inline constexpr unsigned every_lane = 0xFFFFFFFFu;
inline constexpr unsigned line_bytes = 128;

// How many frames a warp takes at a time: 32 (descriptors and verdicts are then read and stored whole), fewer when the
// batch would leave some of the `warps` without work.
inline unsigned frames_per_warp(std::uint32_t frames, unsigned warps) {
  unsigned per_warp = 32;
  while (per_warp > 4 && frames < per_warp * warps) per_warp /= 2;
  return per_warp;
}

// Bytes [begin, end) of a 32-bit word, as a mask.
__device__ __forceinline__ unsigned word_mask(int begin, int end) {
  const int from = begin < 0 ? 0 : begin > 4 ? 4 : begin;
  const int to = end < 0 ? 0 : end > 4 ? 4 : end;
  return to <= from ? 0u : static_cast<unsigned>((1ull << 8 * to) - (1ull << 8 * from));
}

// Bytes [begin, end) of 16, as a mask.
__device__ __forceinline__ uint4 byte_mask(int begin, int end) {
  return make_uint4(word_mask(begin, end), word_mask(begin - 4, end - 4), word_mask(begin - 8, end - 8),
                    word_mask(begin - 12, end - 12));
}

__device__ __forceinline__ uint4 bytes_and(uint4 a, uint4 b) {
  return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
}
__device__ __forceinline__ uint4 bytes_xor(uint4 a, uint4 b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

// The sum of 16 bytes.
__device__ __forceinline__ unsigned byte_sum(uint4 v) {
  return __dp4a(v.x, 0x01010101u, __dp4a(v.y, 0x01010101u, __dp4a(v.z, 0x01010101u, __dp4a(v.w, 0x01010101u, 0u))));
}

// The sum of `value` over the eight lanes of a line, in each of them.
__device__ __forceinline__ unsigned line_sum(unsigned value) {
  value += __shfl_xor_sync(every_lane, value, 1);
  value += __shfl_xor_sync(every_lane, value, 2);
  return value + __shfl_xor_sync(every_lane, value, 4);
}

// Where frame i is: staged, or in place.
__device__ __forceinline__ std::uint64_t frame_place(const std::uint64_t* frame, const StagedFrames& staged,
                                                     unsigned i) {
  return staged.step == 0 ? frame[i] : staged.address + static_cast<std::uint64_t>(staged.step * static_cast<int>(i));
}

// One lane's 16 bytes of a frame.
struct FrameUnit {
  unsigned frame;  // in the group
  int offset;      // of the first of the 16 bytes from the frame's first byte; negative in front of it
  int begin, end;  // bytes [begin, end) of the 16 belong to the frame; begin >= end: this lane has none

  __device__ bool any() const { return begin < end; }
  __device__ bool whole() const { return begin == 0 && end == 16; }
};

// `line`: what frames are rounded to, a multiple of 16 that divides line_bytes: 16 packs small frames into the lanes of
// a step, but splits lines between requests where frames are large.
template <unsigned line>
class FrameLines {
 public:
  // Lane l's frame; `length` 0 where there is none.
  static __device__ __forceinline__ FrameLines of(std::uint64_t address, unsigned length) {
    FrameLines group;
    group.address_ = address;
    group.length_ = length;
    const auto skew = static_cast<unsigned>(address % line);
    const unsigned lines = length == 0 ? 0 : (skew + length + line - 1) / line;
    unsigned sum = lines;
    for (unsigned step = 1; step < 32; step *= 2) {
      const unsigned below = __shfl_up_sync(every_lane, sum, step);
      if (threadIdx.x % 32 >= step) sum += below;
    }
    group.line_end_ = sum;
    group.line_begin_ = sum - lines;
    group.lines_ = __shfl_sync(every_lane, sum, 31);
    return group;
  }

  template <int depth, typename Visit>
  __device__ __forceinline__ void read(Visit&& visit) const {
    for (unsigned first = 0; first < lines_; first += lines_a_step * depth) {
      const unsigned at = first + threadIdx.x % 32 / lanes_a_line;
      FrameUnit unit[depth];
      uint4 bytes[depth];
      SLUICE_UNROLL
      for (int d = 0; d < depth; ++d) {
        const std::uint64_t address = locate(at + lines_a_step * d, unit[d]);
        bytes[d] = unit[d].any() ? __ldcs(reinterpret_cast<const uint4*>(address)) : make_uint4(0, 0, 0, 0);
      }
      SLUICE_UNROLL
      for (int d = 0; d < depth; ++d) {
        if (!unit[d].whole()) bytes[d] = bytes_and(bytes[d], byte_mask(unit[d].begin, unit[d].end));
        visit(unit[d], bytes[d]);
      }
    }
  }

  // Of the warp, in which the group is read.
  __device__ unsigned steps() const { return (lines_ + lines_a_step - 1) / lines_a_step; }

 private:
  static constexpr unsigned lanes_a_line = line / 16, lines_a_step = 32 / lanes_a_line;

  // Fills in this lane's unit of line `at` of the group; returns the unit's address.
  __device__ __forceinline__ std::uint64_t locate(unsigned at, FrameUnit& unit) const {
    unsigned frame = 0;  // the number of frames that end at or before the line
    SLUICE_UNROLL
    for (unsigned step = 16; step > 0; step /= 2)
      if (__shfl_sync(every_lane, line_end_, static_cast<int>(frame + step - 1)) <= at) frame += step;
    const auto holder = static_cast<int>(frame);
    const std::uint64_t start = __shfl_sync(every_lane, static_cast<unsigned long long>(address_), holder);
    const auto length = static_cast<int>(__shfl_sync(every_lane, length_, holder));
    const unsigned in_frame = at - __shfl_sync(every_lane, line_begin_, holder);
    const std::uint64_t address = start / line * line + in_frame * line + threadIdx.x % lanes_a_line * 16;
    unit.frame = frame;
    unit.offset = static_cast<int>(static_cast<std::int64_t>(address - start));
    unit.begin = unit.offset < 0 ? -unit.offset : 0;
    unit.end = length - unit.offset < 16 ? length - unit.offset : 16;
    if (at >= lines_ || unit.offset <= -16) unit.end = unit.begin = 0;
    return address;
  }

  std::uint64_t address_;
  unsigned length_;
  unsigned line_begin_, line_end_;  // the frame's lines, counted over the group
  unsigned lines_;                  // of the group
};
using FrameGroup = FrameLines<line_bytes>;

}  // namespace sluice::device
