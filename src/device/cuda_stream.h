// A CUDA stream of an element's own, besides the streams of the Gpu. It lives as long as its object. For .cu files
// only.
//
// Thread-safety: one thread.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"
#include "device/cuda_check.h"

namespace sluice::device {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Creates it on the calling thread's current GPU. It does not wait for the default stream.
  Expected<void> create() {
    SLUICE_CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return {};
  }
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  cudaStream_t raw() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace sluice::device
