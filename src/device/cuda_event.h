// A CUDA event that lives as long as its object: what has been enqueued, and whether it has ended. For .cu files only.
// Thread-safety: one thread.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"
#include "device/cuda_check.h"
#include "device/gpu.h"

namespace sluice::device {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Expected<void> create() {
    SLUICE_CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    return {};
  }
  ~Event() {
    if (event_ != nullptr) {
      cudaEventDestroy(event_);
    }
  }
  Expected<void> record(const GpuStream& stream) {
    SLUICE_CUDA_TRY(cudaEventRecord(event_, static_cast<cudaStream_t>(stream.raw())));
    return {};
  }
  // For streams that are no GpuStream.
  cudaEvent_t raw() const { return event_; }
  // An event that was never recorded has passed.
  Expected<bool> passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) {
      return false;
    }
    SLUICE_CUDA_TRY(state);
    return true;
  }
  // What is enqueued on `stream` from now on runs after the event.
  Expected<void> before(const GpuStream& stream) const {
    SLUICE_CUDA_TRY(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream.raw()), event_));
    return {};
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace sluice::device
