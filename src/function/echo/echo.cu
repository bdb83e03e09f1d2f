#include <algorithm>
#include <array>

#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/cuda_stream.h"
#include "device/frame_copy.h"
#include "device/frame_read.cuh"
#include "device/gpu.h"
#include "device/launch.h"
#include "function/echo/echo.h"

namespace sluice::function {
namespace {

using device::FrameRun;
using device::StagedFrames;

constexpr unsigned block_threads = 256, block_warps = block_threads / 32;
constexpr unsigned direct_blocks = 64;   // fill the link; see docs/device.md
constexpr unsigned staged_blocks = 264;  // device memory to device memory: two for each SM

constexpr unsigned max_pieces = 64;

// Frames of a batch, and where the kernel reads and writes them.
struct Work {
  const std::uint64_t* frame;
  const std::uint16_t* length;
  std::uint32_t* verdict;
  std::uint32_t count;
  StagedFrames from, to;
  unsigned key;  // in each of the four bytes
};

// Stores the unit's bytes, never one beside them.
__device__ __forceinline__ void store_unit(std::uint64_t address, const device::FrameUnit& unit, uint4 bytes) {
  if (unit.whole()) {
    __stcs(reinterpret_cast<uint4*>(address), bytes);
    return;
  }
  const unsigned word[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
  SLUICE_UNROLL
  for (int b = 0; b < 16; ++b)
    if (b >= unit.begin && b < unit.end)
      reinterpret_cast<std::uint8_t*>(address)[b] = static_cast<std::uint8_t>(word[b / 4] >> b % 4 * 8);
}

__global__ void __launch_bounds__(block_threads) echo_frames(Work work, unsigned per_warp) {
  __shared__ unsigned sums[block_warps][32];
  unsigned* const sum = sums[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned stride = gridDim.x * block_warps * per_warp;
  const uint4 key = make_uint4(work.key, work.key, work.key, work.key);
  for (unsigned first = (blockIdx.x * block_warps + threadIdx.x / 32) * per_warp; first < work.count; first += stride) {
    const bool mine = lane < per_warp && first + lane < work.count;
    const std::uint64_t from = mine ? device::frame_place(work.frame, work.from, first + lane) : 0;
    const std::uint64_t to = mine ? device::frame_place(work.frame, work.to, first + lane) : 0;
    const device::FrameGroup group = device::FrameGroup::of(from, mine ? work.length[first + lane] : 0);
    sum[lane] = 0;
    __syncwarp();
    group.read<4>([&](const device::FrameUnit& unit, uint4 bytes) {
      const unsigned line = device::line_sum(device::byte_sum(bytes));
      if (lane % 8 == 0 && line != 0) atomicAdd(&sum[unit.frame], line);
      const std::uint64_t target =
          __shfl_sync(device::every_lane, static_cast<unsigned long long>(to), static_cast<int>(unit.frame));
      if (!unit.any()) return;
      const uint4 changed = unit.offset >= echo_unchanged_bytes
                                ? key
                                : device::bytes_and(key, device::byte_mask(echo_unchanged_bytes - unit.offset, 16));
      store_unit(target + static_cast<std::uint64_t>(static_cast<std::int64_t>(unit.offset)), unit,
                 device::bytes_xor(bytes, changed));
    });
    __syncwarp();
    if (mine) work.verdict[first + lane] = sum[lane];
    __syncwarp();
  }
}

Expected<void> run(const Work& work, unsigned blocks, cudaStream_t stream) {
  const unsigned per_warp = device::frames_per_warp(work.count, blocks * block_warps);
  const unsigned per_block = per_warp * block_warps;
  blocks = std::min(blocks, (work.count + per_block - 1) / per_block);
  SLUICE_CUDA_TRY(device::launch(echo_frames, blocks, block_threads, 0, stream, work, per_warp));
  return {};
}

}  // namespace

struct Echo::Staging {
  device::GpuStream* stream = nullptr;
  device::DeviceMemory memory;
  std::size_t pitch = 0;
  std::uint32_t rows = 0;
  device::Stream down;  // what follows a piece's way up, so that the next piece goes up meanwhile
  device::Event is_up, is_down;
};

Echo::Echo(std::vector<std::uint16_t> peers, std::uint8_t key, EchoPath path, std::uint64_t piece_bytes)
    : PeerElement(std::move(peers)), key_(key), path_(path), piece_bytes_(piece_bytes) {}
Echo::~Echo() = default;

Expected<void> Echo::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (path_ == EchoPath::direct) return {};
  staging_.resize(std::max<std::size_t>(staging_.size(), plan.device + 1));
  for (unsigned s = 0; s < gpu.stream_count(); ++s) {
    auto staging = std::make_unique<Staging>();
    staging->stream = &gpu.stream(s);
    staging->pitch = device::staging_pitch(plan.frame_bytes);
    staging->rows = plan.batch_capacity;
    auto memory = gpu.allocate_device(staging->pitch * staging->rows);
    if (!memory) return tl::unexpected(memory.error());
    staging->memory = std::move(*memory);
    if (auto ok = staging->down.create(); !ok) return ok;
    for (device::Event* event : {&staging->is_up, &staging->is_down}) {
      if (auto ok = event->create(); !ok) return ok;
    }
    staging_[plan.device].push_back(std::move(staging));
  }
  return {};
}

void Echo::detach(std::uint32_t device) {
  if (device < staging_.size()) staging_[device].clear();
}

Expected<void> Echo::launch(engine::Batch& batch, device::GpuStream& stream) {
  if (batch.count == 0) return {};
  auto enqueued = enqueue(batch, stream);
  // What was enqueued before the error may still write to the frames, which the CPU takes over now.
  if (!enqueued) cudaDeviceSynchronize();
  return enqueued;
}

Expected<void> Echo::enqueue(engine::Batch& batch, device::GpuStream& stream) {
  const auto main = static_cast<cudaStream_t>(stream.raw());
  const Work whole{batch.frame, batch.length, verdicts(batch), batch.count, {}, {}, key_ * 0x01010101u};
  if (batch.device >= staging_.size()) return run(whole, direct_blocks, main);
  const auto& all = staging_[batch.device];
  const auto found = std::ranges::find_if(all, [&](const auto& s) { return s->stream == &stream; });
  if (found == all.end()) return run(whole, direct_blocks, main);
  Staging& staging = **found;
  if (device::staging_pitch(batch.max_length) > staging.pitch || batch.count > staging.rows)
    return run(whole, direct_blocks, main);

  std::array<FrameRun, max_pieces> pieces;
  const unsigned count =
      device::find_runs(batch.frame, batch.length, batch.count, pieces.data(), max_pieces, piece_bytes_);
  EchoPath path = path_;
  if (path == EchoPath::automatic) {
    path = device::worth_copying(pieces.data(), count, batch.bytes) ? EchoPath::copy : EchoPath::direct;
  }
  if (count == 0 || path == EchoPath::direct) return run(whole, direct_blocks, main);

  // A piece goes up on the engine's stream and comes down on the second one; with one piece there is nothing to
  // overlap.
  const cudaStream_t down = count == 1 ? main : staging.down.raw();
  auto* const memory = staging.memory.as<std::byte>();
  const bool write_direct = path == EchoPath::direct_down;
  for (unsigned p = 0; p < count; ++p) {
    const FrameRun& piece = pieces[p];
    const StagedFrames staged = device::staged_frames(piece, memory, staging.pitch);
    const Work work{batch.frame + piece.first,
                    batch.length + piece.first,
                    verdicts(batch) + piece.first,
                    piece.count,
                    staged,
                    write_direct ? StagedFrames{} : staged,
                    whole.key};
    if (auto ok = device::copy_up(piece, memory, staging.pitch, main); !ok) return ok;
    if (down != main) {
      if (auto ok = staging.is_up.record(main); !ok) return ok;
      if (auto ok = staging.is_up.before(down); !ok) return ok;
    }
    if (auto ok = run(work, write_direct ? direct_blocks : staged_blocks, down); !ok) return ok;
    if (!write_direct) {
      if (auto ok = device::copy_down(piece, memory, staging.pitch, down); !ok) return ok;
    }
  }
  if (down == main) return {};
  if (auto ok = staging.is_down.record(down); !ok) return ok;
  return staging.is_down.before(main);
}

}  // namespace sluice::function
