#include <limits>
#include <utility>

#include "device/cuda_check.h"
#include "device/launch.h"
#include "device/table_exchange.h"
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

class CudaMatcher final : public GpuMatcher {
 public:
  CudaMatcher(device::Gpu& gpu, std::size_t max_sync_bytes, bool whole)
      : exchange_(gpu, max_sync_bytes, std::numeric_limits<std::size_t>::max()), whole_(whole) {}

  Expected<void> create(GramTable table) { return exchange_.create(taken(std::move(table))); }

  Expected<std::unique_ptr<Built>> build(GramTable table) override {
    auto prepared = exchange_.prepare(taken(std::move(table)));
    if (!prepared) return tl::unexpected(prepared.error());
    return std::make_unique<BuiltTable>(std::move(*prepared));
  }
  void commit(std::unique_ptr<Built> built) override {
    exchange_.commit(std::move(static_cast<BuiltTable&>(*built).prepared));
  }
  Expected<void> sync(device::GpuStream& stream) override { return exchange_.sync(stream); }
  bool up_to_date() const override { return exchange_.up_to_date(); }
  std::uint64_t generation() const override { return exchange_.generation(); }

  Expected<void> match(const MatchBatch& batch, device::GpuStream& stream) override {
    if (batch.count == 0) return {};
    const MatchSpread spread = spread_of(batch);
    SLUICE_CUDA_TRY(device::launch(match_groups, spread.blocks, match_block_threads, 0,
                                   static_cast<cudaStream_t>(stream.raw()), batch, view(), spread.per_warp));
    return {};
  }

  GramView view() const override {
    GramView view = exchange_.layout().view(exchange_.words());
    view.whole = whole_;
    return view;
  }
  std::size_t device_bytes() const override { return exchange_.device_bytes(); }

 private:
  using Exchange = device::TableExchange<GramTable>;

  struct BuiltTable final : Built {
    explicit BuiltTable(Exchange::Prepared table) : prepared(std::move(table)) {}
    Exchange::Prepared prepared;
  };

  static Exchange::Table taken(GramTable table) {
    std::vector<std::uint32_t> words = table.take_words();
    return {std::move(words), std::move(table)};
  }

  Exchange exchange_;
  const bool whole_;
};

}  // namespace

Expected<std::unique_ptr<GpuMatcher>> GpuMatcher::create(device::Gpu& gpu, GramTable table, std::size_t max_sync_bytes,
                                                         bool whole) {
  auto matcher = std::make_unique<CudaMatcher>(gpu, max_sync_bytes, whole);
  if (auto ok = matcher->create(std::move(table)); !ok) return tl::unexpected(ok.error());
  return matcher;
}

}  // namespace sluice::match
