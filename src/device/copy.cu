#include "device/copy.h"
#include "device/cuda_check.h"

namespace sluice::device {

Expected<void> copy(Gpu& gpu, void* to, const void* from, std::size_t bytes) {
  if (gpu.lost()) {
    return make_error("GPU lost: " + gpu.why());
  }
  const auto stream = static_cast<cudaStream_t>(gpu.stream(0).raw());
  SLUICE_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  SLUICE_CUDA_TRY(cudaStreamSynchronize(stream));
  return {};
}

}  // namespace sluice::device
