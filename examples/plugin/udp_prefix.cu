// The element's work on a GPU: a thread for each frame, which lies in host memory that the GPU reaches.
#include <sluice/device/cuda_check.h>
#include <sluice/device/gpu.h>
#include <sluice/device/launch.h>

#include "udp_prefix.h"

namespace udp_prefix {
namespace {

constexpr unsigned block_threads = 256;

__global__ void match_frames(Rule rule, const std::uint64_t* frame, const std::uint16_t* length, std::uint8_t* verdict,
                             std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * block_threads + threadIdx.x;
  if (i < count) verdict[i] = matches(rule, reinterpret_cast<const std::uint8_t*>(frame[i]), length[i]) ? 1 : 0;
}

}  // namespace

// Rows that are not live are looked at, too; apply() passes them over.
sluice::Expected<void> UdpPrefix::launch(sluice::engine::Batch& batch, sluice::device::GpuStream& stream) {
  if (batch.count == 0) return {};
  const unsigned blocks = (batch.count + block_threads - 1) / block_threads;
  SLUICE_CUDA_TRY(sluice::device::launch(match_frames, blocks, block_threads, 0,
                                         static_cast<cudaStream_t>(stream.raw()), *rule_.load(), batch.frame,
                                         batch.length, verdicts(batch), batch.count));
  return {};
}

}  // namespace udp_prefix
