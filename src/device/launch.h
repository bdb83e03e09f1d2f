// Kernel launches and dynamic shared memory. They compile with nvcc, and against device/simt with the host compiler.
// For .cu and .cuh files only.
//
//     __global__ void scale(float* x, float factor) {
//       SLUICE_DYNAMIC_SHARED(float, tile);      // float* tile, 16-byte aligned, the launch's shared_bytes long
//       ...
//     }
//     cudaError_t e = device::launch(scale, grid, block, shared_bytes, stream, x, 2.0f);
//
// For more than 48 KiB of dynamic shared memory call cudaFuncSetAttribute first, with both compilers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

// Before a loop: nvcc unrolls it (SLUICE_UNROLL) or does not (SLUICE_ROLLED). They do nothing with the host compiler.
#ifdef SLUICE_SIMT
#define SLUICE_UNROLL
#define SLUICE_ROLLED
#define SLUICE_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(::sluice::simt::dynamic_shared())
#else
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_ROLLED _Pragma("unroll 1")
#define SLUICE_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char sluice_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(sluice_dynamic_shared)
#endif

namespace sluice::device {

// Enqueues kernel<<<grid, block, shared_bytes, stream>>>(arguments...). Cost on a GPU: about 2 us of CPU time.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   Arguments&&... arguments) {
#ifdef SLUICE_SIMT
  (void)stream;
  return simt::run_kernel(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
                          [&] { kernel(static_cast<Parameters>(arguments)...); });
#else
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
#endif
}

}  // namespace sluice::device
