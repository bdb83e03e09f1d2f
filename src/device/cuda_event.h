// A CUDA event that lives as long as its object. It tells whether the work enqueued before it has ended, and when. For
// .cu files only.
//
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
  // `timed`: allows microseconds_since(); then recording costs more.
  Expected<void> create(bool timed = false) {
    SLUICE_CUDA_TRY(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming));
    return {};
  }
  ~Event() {
    if (event_ != nullptr) {
      cudaEventDestroy(event_);
    }
  }
  Expected<void> record(const GpuStream& stream) { return record(static_cast<cudaStream_t>(stream.raw())); }
  Expected<void> record(cudaStream_t stream) {
    SLUICE_CUDA_TRY(cudaEventRecord(event_, stream));
    return {};
  }
  // An event that was never recorded has passed.
  Expected<bool> passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) {
      return false;
    }
    SLUICE_CUDA_TRY(state);
    return true;
  }
  // Both events must be timed and must have passed.
  Expected<double> microseconds_since(const Event& begin) const {
    float milliseconds = 0;
    SLUICE_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin.event_, event_));
    return 1e3 * static_cast<double>(milliseconds);
  }
  // Work that is enqueued on `stream` from now on runs after the event.
  Expected<void> before(const GpuStream& stream) const { return before(static_cast<cudaStream_t>(stream.raw())); }
  Expected<void> before(cudaStream_t stream) const {
    SLUICE_CUDA_TRY(cudaStreamWaitEvent(stream, event_));
    return {};
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace sluice::device
