#include <algorithm>

#include "device/cuda_check.h"
#include "device/launch.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/gram_scan.cuh"

namespace sluice::match {
namespace {

constexpr unsigned block_threads = 256, block_warps = block_threads / 32;
// Frames in host memory: the link is full with the first figure, where frames are large; of small ones, whose number
// counts, more must be under way. In device memory the whole GPU is needed.
constexpr unsigned link_blocks = 264, small_blocks = 528, staged_blocks = 1056;
constexpr std::uint64_t small_payload = 64;  // bytes, on average

// Each warp takes groups of `per_warp` frames, and fetches the next group's descriptors while it reads the frames of
// this one.
__global__ void __launch_bounds__(block_threads) match_groups(MatchBatch batch, GramView view, unsigned per_warp) {
  __shared__ GroupHits block_hits[block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned stride = gridDim.x * block_warps * per_warp;
  unsigned first = (blockIdx.x * block_warps + threadIdx.x / 32) * per_warp;
  const auto mine = [&](unsigned from) { return lane < per_warp && from + lane < batch.count; };
  std::uint64_t address = mine(first) ? batch.frame[first + lane] : 0;
  Span span = mine(first) ? batch.span[first + lane] : Span{0, 0};
  unsigned klass = mine(first) ? batch.klass[first + lane] : 0;
  for (; first < batch.count; first += stride) {
    const unsigned begin_end = span.begin | static_cast<unsigned>(span.end) << 16, own_class = klass;
    // Lines in front of the payload are not read: the group's "frames" are the payloads.
    const std::uint64_t payload = address + span.begin;
    const unsigned length = span.end > span.begin ? span.end - span.begin : 0;
    const auto lines = device::FrameGroup::of(payload, length);
    const auto units = device::FrameLines<16>::of(payload, length);
    const unsigned next = first + stride;
    address = mine(next) ? batch.frame[next + lane] : 0;
    span = mine(next) ? batch.span[next + lane] : Span{0, 0};
    klass = mine(next) ? batch.klass[next + lane] : 0;
    KeyScan scan(view, hits);
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
    if (mine(first)) {
      const unsigned count = hits.count[lane];
      batch.found[first + lane] = count;
      for (unsigned h = 0; h < min(count, max_hits); ++h) batch.key[(first + lane) * max_hits + h] = hits.key[lane][h];
    }
    __syncwarp();
  }
}

class CudaMatcher final : public GpuMatcher {
 public:
  explicit CudaMatcher(const GramView& view) : view_(view) {}

  Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) override {
    if (batch.count == 0) return {};
    const bool small = batch.bytes < small_payload * batch.count;
    const unsigned most_blocks = batch.on_device ? staged_blocks : small ? small_blocks : link_blocks;
    const unsigned per_warp = small ? 32 : device::frames_per_warp(batch.count, most_blocks * block_warps);
    const unsigned per_block = per_warp * block_warps;
    SLUICE_CUDA_TRY(device::launch(match_groups, std::min(most_blocks, (batch.count + per_block - 1) / per_block),
                                   block_threads, 0, static_cast<cudaStream_t>(stream.raw()), batch, view_, per_warp));
    return {};
  }

  const GramView& view() const override { return view_; }

 private:
  GramView view_;
};

}  // namespace

Expected<std::unique_ptr<GpuMatcher>> GpuMatcher::create(device::Gpu& gpu, const GramTable& table) {
  auto memory = gpu.allocate_device(table.bytes());
  if (!memory) return tl::unexpected(memory.error());
  const auto stream = static_cast<cudaStream_t>(gpu.stream(0).raw());
  SLUICE_CUDA_TRY(cudaMemcpyAsync(*memory, table.words().data(), table.bytes(), cudaMemcpyHostToDevice, stream));
  SLUICE_CUDA_TRY(cudaStreamSynchronize(stream));
  return std::make_unique<CudaMatcher>(table.view(*memory));
}

}  // namespace sluice::match
