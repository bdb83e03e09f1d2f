#include <algorithm>
#include <string>

#include "device/cuda_check.h"
#include "device/launch.h"
#include "function/fused/fused.h"
#include "lookup/acl/gpu_classifier_view.cuh"
#include "lookup/gpu_fib_view.cuh"
#include "match/automaton/gram_scan.cuh"
#include "match/automaton/match_spread.cuh"

namespace sluice::function {
namespace {

using match::match_block_threads;
using match::match_block_warps;

// FusedWork without options, as a kernel takes it.
struct Work {
  std::uint32_t count = 0;
  FusedWork::Classify classify;
  FusedWork::Route route;
  FusedWork::Match match;
};

// A kernel's argument: the blocks of y = b do the work of batch b.
template <std::size_t most>
struct Works {
  Work of[most];
};
static_assert(sizeof(Works<most_works>) < 32'000, "what a kernel takes as its argument since Volta");

// A lane's own frame: what has come over the link of it before its turn.
struct Frame {
  match::MatchFrame payload;
  std::uint32_t place = place_not_ip;
  uint4 key4 = {};
  std::uint32_t argument = 0;
  bool has_key6 = false;  // of the route
};

// Writes the frame's rule; whether the frame goes on.
__device__ __forceinline__ bool classify(const FusedWork::Classify& work, const Frame& frame) {
  if (frame.place >= place_malformed) return frame.place == place_not_ip;
  lookup::acl::RuleIndex rule;
  if ((frame.place & place_is_key6) == 0) {
    rule = lookup::acl::classify4(work.view, frame.key4);
    work.rules4[frame.place] = rule;
  } else {
    const std::uint32_t key = frame.place & ~place_is_key6;
    rule = lookup::acl::classify6(work.view, reinterpret_cast<const uint2*>(work.keys6 + key));
    work.rules6[key] = rule;
  }
  return !lookup::acl::denies(work.view, rule, work.deny_others);
}

__device__ __forceinline__ void look_up(const FusedWork::Route& work, const Frame& frame, unsigned i) {
  if (frame.has_key6) {
    const uint4 key = reinterpret_cast<const uint4*>(work.keys6)[frame.argument];
    work.answers6[frame.argument] = lookup::lookup6(work.view6, key);
  } else {
    const bool has_key4 = frame.place < place_is_key6;
    const std::uint32_t address = has_key4 ? __byte_perm(frame.key4.y, 0, 0x0123) : frame.argument;
    work.verdict[i] = lookup::lookup4(work.view4, address);
  }
}

// What lies in host memory takes more than a microsecond to come. So the descriptors of the next group, and its IPv4
// keys, are under way while the frames of this one are read; where these keys are (`place`) is known a group earlier.
template <bool classifies, bool routes, bool matches>
class Groups {
 public:
  __device__ Groups(const Work& work, unsigned per_warp) : work_(work), per_warp_(per_warp) {}

  __device__ bool has(unsigned first) const {
    return threadIdx.x % 32 < per_warp_ && first + threadIdx.x % 32 < work_.count;
  }
  __device__ std::uint32_t place(unsigned first) const {
    if (!classifies || !has(first)) return place_not_ip;
    const unsigned i = first + threadIdx.x % 32;
    return work_.classify.in_order ? i : work_.classify.place[i];
  }
  __device__ Frame fetch(unsigned first, std::uint32_t place) const {
    Frame frame;
    if (!has(first)) return frame;
    const unsigned i = first + threadIdx.x % 32;
    if constexpr (matches) {
      const match::MatchBatch& batch = work_.match.batch;
      frame.payload = {batch.frame[i], batch.span[i], batch.klass[i]};
    }
    if constexpr (classifies) {
      frame.place = place;
      if (place < place_is_key6) frame.key4 = reinterpret_cast<const uint4*>(work_.classify.keys4)[place];
    }
    if constexpr (routes) {
      if (!classifies || place >= place_is_key6) frame.argument = work_.route.argument[i];
      frame.has_key6 = work_.route.is_key6 != nullptr && (work_.route.is_key6[i / 32] >> i % 32 & 1) != 0;
    }
    return frame;
  }

 private:
  const Work& work_;
  const unsigned per_warp_;
};

template <std::size_t most, bool classifies, bool routes, bool matches>
__global__ void __launch_bounds__(match_block_threads)
    fused(const __grid_constant__ Works<most> works, unsigned per_warp) {
  const Work& work = works.of[blockIdx.y];
  const Groups<classifies, routes, matches> groups(work, per_warp);
  const unsigned stride = gridDim.x * match_block_warps * per_warp;
  unsigned first = (blockIdx.x * match_block_warps + threadIdx.x / 32) * per_warp;
  Frame next = groups.fetch(first, groups.place(first));
  std::uint32_t next_place = groups.place(first + stride);
  for (; first < work.count; first += stride) {
    Frame frame = next;
    const auto fetch_next = [&] {
      next = groups.fetch(first + stride, next_place);
      next_place = groups.place(first + 2 * stride);
    };
    bool goes_on = groups.has(first);
    if constexpr (classifies) {
      if (goes_on) goes_on = classify(work.classify, frame);
    }
    if constexpr (routes) {
      if (goes_on) look_up(work.route, frame, first + threadIdx.x % 32);
    }
    if constexpr (matches) {
      __shared__ match::GroupHits block_hits[match_block_warps];
      match::GroupHits& hits = block_hits[threadIdx.x / 32];
      if (!goes_on) frame.payload.span = {0, 0};
      __syncwarp();
      match::match_group(work.match.view, hits, frame.payload, fetch_next);
      if (groups.has(first)) match::store_hits(hits, work.match.batch, first + threadIdx.x % 32);
      __syncwarp();
    } else {
      fetch_next();
    }
  }
}

template <std::size_t most>
using Kernel = void (*)(const Works<most>, unsigned);

template <std::size_t most>
Kernel<most> kernel_of(const FusedWork& work) {
  if (!work.match) return fused<most, true, true, false>;
  if (!work.route) return fused<most, true, false, true>;
  return work.classify ? fused<most, true, true, true> : fused<most, false, true, true>;
}

// The blocks of each batch. Without payloads there is a lane for each frame.
match::MatchSpread spread_of(std::span<const FusedWork> works) {
  const auto each = static_cast<unsigned>(works.size());
  if (works[0].match) {
    match::MatchBatch all = works[0].match->batch;
    all.count = 0;
    all.bytes = 0;
    for (const FusedWork& work : works) {
      all.count += work.match->batch.count;
      all.bytes += work.match->batch.bytes;
    }
    const match::MatchSpread spread = match::spread_of(all);
    return {(spread.blocks + each - 1) / each, spread.per_warp};
  }
  std::uint32_t most = 0;
  for (const FusedWork& work : works) most = std::max(most, work.count);
  return {(most + match_block_threads - 1) / match_block_threads, 32};
}

template <std::size_t most>
Expected<void> launch(std::span<const FusedWork> works, device::GpuStream& stream) {
  const Kernel<most> kernel = kernel_of<most>(works[0]);
  Works<most> flat;
  for (std::size_t b = 0; b < works.size(); ++b) {
    const FusedWork& work = works[b];
    if (work.parts() < 2) return make_error("a fused kernel has at least two parts");
    if (kernel_of<most>(work) != kernel) return make_error("batches of one fused kernel have the same parts");
    flat.of[b] = {work.count, work.classify.value_or(FusedWork::Classify{}), work.route.value_or(FusedWork::Route{}),
                  work.match.value_or(FusedWork::Match{})};
  }
  const match::MatchSpread spread = spread_of(works);
  if (spread.blocks == 0) return {};  // no frames
  const dim3 grid(spread.blocks, static_cast<unsigned>(works.size()));
  SLUICE_CUDA_TRY(device::launch(kernel, grid, match_block_threads, 0, static_cast<cudaStream_t>(stream.raw()), flat,
                                 spread.per_warp));
  return {};
}

}  // namespace

Expected<void> launch_fused(std::span<const FusedWork> works, device::GpuStream& stream) {
  if (works.empty() || works.size() > most_works) {
    return make_error("a fused kernel has 1 to " + std::to_string(most_works) + " batches");
  }
  return works.size() == 1 ? launch<1>(works, stream) : launch<most_works>(works, stream);
}

}  // namespace sluice::function
