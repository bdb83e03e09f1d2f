// CUDA's error codes as Error values. For .cu files only.
//
//     SLUICE_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));  // returns the Error
//     if (auto ok = SLUICE_CUDA_CHECK(call); !ok) ...                                // Expected<void>, to look at
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/error.h"

namespace sluice::device {

// "cudaMalloc(&p, bytes) failed: out of memory (cudaErrorMemoryAllocation) at gpu.cu:42". Clears the runtime's last
// error.
inline Expected<void> cuda_check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) [[likely]]
    return {};
  cudaGetLastError();
  const std::string path = file;
  return make_error(std::string(call) + " failed: " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) +
                    ") at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(line));
}

}  // namespace sluice::device

#define SLUICE_CUDA_CHECK(call) ::sluice::device::cuda_check((call), #call, __FILE__, __LINE__)
#define SLUICE_CUDA_TRY(call)                                                      \
  do {                                                                             \
    if (auto sluice_checked = SLUICE_CUDA_CHECK(call); !sluice_checked)            \
      return ::tl::unexpected<::sluice::Error>(std::move(sluice_checked.error())); \
  } while (false)
