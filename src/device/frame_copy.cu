#include <algorithm>

#include "device/cuda_check.h"
#include "device/frame_copy.h"

namespace sluice::device {
namespace {

constexpr std::uint64_t copy_run_bytes = 384 << 10;
constexpr double copy_payload_share = 0.85;

// The longest run that begins with frame `first`.
FrameRun run_at(const std::uint64_t* frame, const std::uint16_t* length, std::uint32_t first, std::uint32_t count) {
  FrameRun run{frame[first], first, 1, 0, length[first], false};
  if (first + 1 == count) return run;
  const auto step = static_cast<std::int64_t>(frame[first + 1] - frame[first]);
  const std::int64_t stride = step < 0 ? -step : step;
  if (stride % 16 != 0 || stride > RunList::longest_stride) return run;
  std::uint32_t next = first + 1;
  for (; next < count; ++next) {
    if (static_cast<std::int64_t>(frame[next] - frame[next - 1]) != step) break;
    const std::uint32_t width = std::max<std::uint32_t>(run.width, length[next]);
    if (width > stride) break;
    run.width = width;
  }
  run.count = next - first;
  if (run.count == 1) return run;
  run.stride = static_cast<std::uint32_t>(stride);
  run.descending = step < 0;
  run.address = frame[run.descending ? next - 1 : first];
  return run;
}

// Parts of about `piece_bytes`.
std::uint64_t pieces_of(const FrameRun& run, std::uint64_t piece_bytes) {
  return std::clamp<std::uint64_t>((run.row_bytes() + piece_bytes / 2) / piece_bytes, 1, run.count);
}

std::byte* staged_rows(const FrameRun& run, std::byte* staging, std::size_t pitch) {
  return staging + run.first * pitch + run.address % row_alignment;
}

}  // namespace

unsigned RunList::split(FrameRun* pieces, unsigned max_pieces, std::uint64_t piece_bytes) const {
  unsigned found = 0;
  for (unsigned r = 0; complete && r < count; ++r) {
    const FrameRun& whole = run[r];
    const std::uint64_t parts = pieces_of(whole, piece_bytes);
    if (found + parts > max_pieces) return 0;
    for (std::uint64_t p = 0; p < parts; ++p) {
      const auto begin = static_cast<std::uint32_t>(whole.count * p / parts);
      const auto end = static_cast<std::uint32_t>(whole.count * (p + 1) / parts);
      FrameRun& piece = pieces[found++] = whole;
      piece.first = whole.first + begin;
      piece.count = end - begin;
      const std::uint64_t stride = whole.stride;
      piece.address = whole.descending ? whole.address - (end - 1) * stride : whole.address + begin * stride;
    }
  }
  return found;
}

unsigned find_runs(const std::uint64_t* frame, const std::uint16_t* length, std::uint32_t count, FrameRun* runs,
                   unsigned max_runs, std::uint64_t piece_bytes) {
  unsigned found = 0;
  for (std::uint32_t first = 0; first < count;) {
    const FrameRun whole = run_at(frame, length, first, count);
    first += whole.count;
    const std::uint64_t pieces = pieces_of(whole, piece_bytes);
    if (found + pieces > max_runs) return 0;
    for (std::uint64_t p = 0; p < pieces; ++p) {
      FrameRun& piece = runs[found++] = whole;
      const auto begin = static_cast<std::uint32_t>(whole.count * p / pieces);
      const auto end = static_cast<std::uint32_t>(whole.count * (p + 1) / pieces);
      piece.first = whole.first + begin;
      piece.count = end - begin;
      piece.address = frame[whole.descending ? whole.first + end - 1 : piece.first];
      piece.width = *std::max_element(length + piece.first, length + piece.first + piece.count);
    }
  }
  return found;
}

bool join_runs(FrameRun& run, const FrameRun& next) {
  const std::uint64_t stride = run.stride;
  const std::uint64_t width = std::max(run.width, next.width);
  const FrameRun &lower = run.descending ? next : run, &upper = run.descending ? run : next;
  const bool fits = run.count > 1 && next.count > 1 && next.stride == stride && next.descending == run.descending &&
                    next.first == run.first + run.count && width <= stride &&
                    upper.address == lower.address + lower.count * stride;
  if (!fits) return false;
  run.address = lower.address;
  run.count += next.count;
  run.width = static_cast<std::uint32_t>(width);
  return true;
}

bool worth_copying(const FrameRun* runs, unsigned count, std::uint64_t bytes) {
  std::uint64_t moved = 0;
  for (unsigned r = 0; r < count; ++r) moved += runs[r].row_bytes();
  return count != 0 && moved >= count * copy_run_bytes &&
         static_cast<double>(bytes) >= copy_payload_share * static_cast<double>(moved);
}

StagedFrames staged_frames(const FrameRun& run, std::byte* staging, std::size_t pitch) {
  const auto rows = reinterpret_cast<std::uint64_t>(staged_rows(run, staging, pitch));
  const auto step = static_cast<std::int64_t>(pitch);
  if (run.descending) return {rows + (run.count - 1) * pitch, -step};
  return {rows, step};
}

Expected<void> copy_up(const FrameRun& run, std::byte* staging, std::size_t pitch, void* stream) {
  SLUICE_CUDA_TRY(cudaMemcpy2DAsync(staged_rows(run, staging, pitch), pitch, reinterpret_cast<const void*>(run.address),
                                    std::max(run.stride, run.width), run.width, run.count, cudaMemcpyHostToDevice,
                                    static_cast<cudaStream_t>(stream)));
  return {};
}

Expected<void> copy_down(const FrameRun& run, std::byte* staging, std::size_t pitch, void* stream) {
  SLUICE_CUDA_TRY(cudaMemcpy2DAsync(reinterpret_cast<void*>(run.address), std::max(run.stride, run.width),
                                    staged_rows(run, staging, pitch), pitch, run.width, run.count,
                                    cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
  return {};
}

}  // namespace sluice::device
