#include "device/cuda_check.h"
#include "device/fault_kernels.h"
#include "device/launch.h"
#ifdef SLUICE_SIMT
#include "device/simt/fault.h"
#endif

namespace sluice::device {

#ifdef SLUICE_SIMT

Expected<void> launch_faulting(GpuStream& /*stream*/) {
  simt::fail_calls(1, 1, true);  // the mark behind it is set, and does not answer
  return {};
}

Expected<void> launch_endless(GpuStream& /*stream*/) {
  simt::keep_busy(true);
  return {};
}

#else

namespace {

__global__ void fault(volatile unsigned* nowhere) {
  *nowhere = 1;
}

// Until a word that nobody writes is another one.
__global__ void spin(volatile unsigned* word) {
  while (*word == 0) {
  }
}

__device__ unsigned never;

}  // namespace

Expected<void> launch_faulting(GpuStream& stream) {
  auto* const nowhere = reinterpret_cast<volatile unsigned*>(16);
  SLUICE_CUDA_TRY(launch(fault, 1, 1, 0, static_cast<cudaStream_t>(stream.raw()), nowhere));
  return {};
}

Expected<void> launch_endless(GpuStream& stream) {
  const auto on = static_cast<cudaStream_t>(stream.raw());
  void* word = nullptr;
  SLUICE_CUDA_TRY(cudaGetSymbolAddress(&word, never));
  SLUICE_CUDA_TRY(launch(spin, 1, 1, 0, on, static_cast<volatile unsigned*>(word)));
  return {};
}

#endif

}  // namespace sluice::device
