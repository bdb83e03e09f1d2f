#include <limits>
#include <utility>

#include "device/cuda_check.h"
#include "device/device_table.h"
#include "device/launch.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/gram_scan.cuh"
#include "match/automaton/match_spread.cuh"

namespace sluice::match {
namespace {

// Each warp takes groups of `per_warp` frames, and fetches the next group's descriptors while it reads the frames of
// this one.
__global__ void __launch_bounds__(match_block_threads)
    match_groups(MatchBatch batch, GramView view, unsigned per_warp) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned stride = gridDim.x * match_block_warps * per_warp;
  unsigned first = (blockIdx.x * match_block_warps + threadIdx.x / 32) * per_warp;
  const auto fetch = [&](unsigned from) {
    const unsigned i = from + lane;
    return lane < per_warp && i < batch.count ? MatchFrame{batch.frame[i], batch.span[i], batch.klass[i]}
                                              : MatchFrame{};
  };
  MatchFrame next = fetch(first);
  for (; first < batch.count; first += stride) {
    const MatchFrame frame = next;
    match_group(view, hits, frame, [&] { next = fetch(first + stride); });
    if (lane < per_warp && first + lane < batch.count) store_hits(hits, batch, first + lane);
    __syncwarp();
  }
}

__global__ void __launch_bounds__(match_block_threads)
    mark_every_key(MatchBatch batch, GramView view, unsigned per_warp, std::uint32_t* seen, std::uint32_t words) {
  __shared__ GroupHits block_hits[match_block_warps];
  GroupHits& hits = block_hits[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned stride = gridDim.x * match_block_warps * per_warp;
  for (unsigned first = (blockIdx.x * match_block_warps + threadIdx.x / 32) * per_warp; first < batch.count;
       first += stride) {
    const unsigned i = first + lane;
    const MatchFrame frame =
        lane < per_warp && i < batch.count ? MatchFrame{batch.frame[i], batch.span[i], batch.klass[i]} : MatchFrame{};
    match_group(
        view, hits, frame, [] {}, EveryKey{seen + std::size_t{first} * words, words});
    __syncwarp();
  }
}

class CudaMatcher final : public device::DeviceTable<GpuMatcher, GramTable> {
 public:
  CudaMatcher(device::Gpu& gpu, std::size_t max_sync_bytes, bool whole)
      : DeviceTable(gpu, max_sync_bytes, std::numeric_limits<std::size_t>::max()), gpu_(gpu), whole_(whole) {}

  Expected<void> create(GramTable table, std::shared_ptr<const void> of) {
    return DeviceTable::create_copy(taken(std::move(table)), std::move(of));
  }

  Expected<std::unique_ptr<Prepared>> prepare(GramTable table) override {
    return DeviceTable::prepare_copy(taken(std::move(table)));
  }

  Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) override {
    if (batch.count == 0) return {};
    const MatchSpread spread = spread_of(batch);
    SLUICE_CUDA_TRY(device::launch(match_groups, spread.blocks, match_block_threads, 0,
                                   static_cast<cudaStream_t>(stream.raw()), batch, view(), spread.per_warp));
    return {};
  }

  Expected<std::vector<std::uint32_t>> every_key(const MatchBatch& batch, std::size_t keys,
                                                 device::GpuStream& stream) override {
    std::vector<std::uint32_t> seen(batch.count * key_words(keys));
    if (seen.empty()) return seen;
    const std::size_t bytes = seen.size() * sizeof seen[0];
    if (bytes > seen_.bytes()) {
      auto memory = gpu_.allocate_device(bytes);
      if (!memory) return tl::unexpected(memory.error());
      seen_ = std::move(*memory);
    }
    auto* const on_device = seen_.as<std::uint32_t>();
    const auto raw = static_cast<cudaStream_t>(stream.raw());
    const MatchSpread spread = spread_of(batch);
    GramView all = view();
    all.whole = true;
    SLUICE_CUDA_TRY(cudaMemsetAsync(on_device, 0, bytes, raw));
    SLUICE_CUDA_TRY(device::launch(mark_every_key, spread.blocks, match_block_threads, 0, raw, batch, all,
                                   spread.per_warp, on_device, static_cast<std::uint32_t>(key_words(keys))));
    SLUICE_CUDA_TRY(cudaMemcpyAsync(seen.data(), on_device, bytes, cudaMemcpyDeviceToHost, raw));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(raw));
    return seen;
  }

  GramView view() const override {
    GramView view = layout().view(words());
    view.whole = whole_;
    return view;
  }

 private:
  static Table taken(GramTable table) {
    std::vector<std::uint32_t> words = table.take_words();
    return {std::move(words), std::move(table)};
  }

  device::Gpu& gpu_;
  const bool whole_;
  device::DeviceMemory seen_;  // every_key()'s
};

}  // namespace

Expected<std::unique_ptr<GpuMatcher>> GpuMatcher::create(device::Gpu& gpu, GramTable table, std::size_t max_sync_bytes,
                                                         bool whole, std::shared_ptr<const void> of) {
  auto matcher = std::make_unique<CudaMatcher>(gpu, max_sync_bytes, whole);
  if (auto ok = matcher->create(std::move(table), std::move(of)); !ok) return tl::unexpected(ok.error());
  return matcher;
}

}  // namespace sluice::match
