// Moves frames between host memory and the GPU by the copy engine. Frames that lie at a constant distance in memory, as
// those of one mempool do that were received in a row, travel as the rows of one 2-D copy.
//
//     FrameRun runs[64];
//     unsigned n = find_runs(batch.frame, batch.length, batch.count, runs, 64, 2 << 20);
//     for (unsigned r = 0; r < n; ++r) copy_up(runs[r], staging, pitch, stream.raw());
//
// Staging: frame i of the batch gets `pitch` bytes; the rows of a run stand in memory order, so that a run whose
// addresses fall has its last frame first. The lowest row begins at the same address modulo `row_alignment` as on the
// host, and as strides are multiples of 16, what is a 16-byte unit there is one here for every row. staged_frames()
// says where.
//
// A row is as wide as the run's longest frame. The bytes between a shorter frame's end and that width are in the same
// mbuf; copy_down() writes back there what copy_up() read, so both must be used together, with nobody else writing to
// those mbufs.
//
// Cost: find_runs about 1 ns a frame; a copy about 2 us of CPU time, and on the engine as much as 100 KB of payload, so
// runs below about 256 KiB are better read by a kernel (frame_read.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sluice::device {

inline constexpr std::size_t row_alignment = 128;

struct FrameRun {
  std::uint64_t address;  // of the lowest row
  std::uint32_t first;    // frames [first, first + count) of the batch
  std::uint32_t count;
  std::uint32_t stride;  // from row to row, a multiple of 16, at least `width`
  std::uint32_t width;   // bytes of the longest frame
  bool descending;       // the run's first frame is the highest row

  std::uint64_t row_bytes() const { return std::uint64_t{count} * width; }
};

// Splits frames [0, count) into runs in batch order, long runs into about equal pieces of about `piece_bytes`. Returns
// their number; 0 when there are no frames, or when more than `max_runs` would be needed.
unsigned find_runs(const std::uint64_t* frame, const std::uint16_t* length, std::uint32_t count, FrameRun* runs,
                   unsigned max_runs, std::uint64_t piece_bytes);

// The runs of frames that are met one by one, noted by who has them in its cache: so the thread that drives the GPU
// need not read where each lies. As find_runs() with one piece for each run. No constructor: it may stand in zeroed or
// pinned memory, and clear() begins anew. Cost of add(): 1 to 2 ns.
struct RunList {
  static constexpr unsigned max_runs = 16;
  static constexpr std::int64_t longest_stride = 1 << 20;

  void clear() {
    count = frames = longest = 0;
    bytes = 0;
    complete = true;
  }
  void add(std::uint64_t frame, std::uint32_t length);
  // As find_runs() of these frames, but each piece is as wide as its run; 0 also when the list is not complete.
  unsigned split(FrameRun* pieces, unsigned max_pieces, std::uint64_t piece_bytes) const;

  FrameRun run[max_runs];  // `address` is that of the first frame
  std::uint64_t bytes;     // of all frames
  std::uint64_t last;
  std::int64_t step;
  std::uint32_t count, frames, longest;
  bool complete;  // there was capacity for all
};

// Makes `next`, whose frames come behind those of `run` in a batch or in the one after it, part of `run`, where its
// rows stand behind them in memory, at the same distance and in the same order. False: they do not, and nothing is
// changed.
bool join_runs(FrameRun& run, const FrameRun& next);

// Whether these runs go faster by the copy engine than by a kernel that reads them in place: long runs, mostly payload
// (`bytes`: of the frames together; docs/device.md has the measurements).
bool worth_copying(const FrameRun* runs, unsigned count, std::uint64_t bytes);

inline void RunList::add(std::uint64_t frame, std::uint32_t length) {
  const std::uint32_t index = frames++;
  bytes += length;
  longest = length > longest ? length : longest;
  if (count != 0) {
    FrameRun& now = run[count - 1];
    const auto to = static_cast<std::int64_t>(frame - last);
    const auto stride = static_cast<std::uint64_t>(to < 0 ? -to : to);
    const std::uint32_t width = length > now.width ? length : now.width;
    const bool fits = now.count == 1 ? stride % 16 == 0 && stride <= longest_stride : to == step;
    if (fits && width <= stride) {
      now.stride = static_cast<std::uint32_t>(stride);
      now.width = width;
      now.descending = to < 0;
      ++now.count;
      step = to;
      last = frame;
      return;
    }
  }
  last = frame;
  if (count == max_runs) {
    complete = false;
    return;
  }
  run[count++] = {frame, index, 1, 0, length, false};
}

// Bytes of staging for one frame of up to `frame_bytes`.
constexpr std::size_t staging_pitch(std::size_t frame_bytes) {
  return (frame_bytes + 2 * row_alignment - 1) / row_alignment * row_alignment;
}

// Where the staging of a run's frames begins and how far apart they are: frame first + i is at address + i * step.
// step 0: not staged, the frames are read in place.
struct StagedFrames {
  std::uint64_t address = 0;
  std::int64_t step = 0;
};
StagedFrames staged_frames(const FrameRun& run, std::byte* staging, std::size_t pitch);

// Enqueue one 2-D copy. `staging`: device memory, aligned to row_alignment, of (first + count) * pitch bytes at least.
// `stream`: a cudaStream_t.
Expected<void> copy_up(const FrameRun& run, std::byte* staging, std::size_t pitch, void* stream);
Expected<void> copy_down(const FrameRun& run, std::byte* staging, std::size_t pitch, void* stream);

}  // namespace sluice::device
