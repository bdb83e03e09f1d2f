// A CUDA GPU as the engine sees it: streams with completion marks, and host memory that the GPU can reach.
//
// This header has no CUDA in it: the program is built once, runs with and without a driver, and everything that
// includes CUDA's headers lives in .cu files. The same .cu files, compiled against device/simt, run every kernel on a
// CPU in tests.
//
// The first call sets CUDA_DEVICE_MAX_CONNECTIONS and CUDA_MODULE_LOADING in the environment, unless they are set: make
// it while the program has one thread. Errors: control-path calls return Expected. A CUDA error on the packet path
// makes the GPU "lost": poll() answers failed for every pending mark and every later call fails at once; the engine
// then computes on the CPU. Thread-safety: open/register_host from the control thread; a GpuStream is used by one
// thread (the device's worker).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/memory.h"

namespace sluice::device {

struct GpuInfo {
  int index = 0;
  std::string name;  // "NVIDIA H200"; the SIMT shim answers "host SIMT shim"
  std::string pci;   // "0000:3b:00.0"
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int numa_node = -1;  // -1: unknown
};

// The GPUs of this machine; an Error that says why when there is none (no driver, no device).
Expected<std::vector<GpuInfo>> list_gpus();

enum class MarkState { pending, done, failed };

class GpuStream {
 public:
  virtual ~GpuStream() = default;
  // The cudaStream_t, for .cu files. Makes the stream's GPU the calling thread's current one, so that work can be
  // enqueued.
  virtual void* raw() const = 0;
  // Enqueues a completion mark behind all work enqueued so far; at most `max_marks` may be pending.
  virtual Expected<void> mark() = 0;
  // State of the oldest pending mark; done and failed remove it. After failed, the device touches the work's memory no
  // more. No mark pending: done. Cost: about 1 us at most.
  virtual MarkState poll() = 0;
  virtual unsigned pending_marks() const = 0;
  static constexpr unsigned max_marks = 64;
};

class Gpu {
 public:
  static Expected<std::unique_ptr<Gpu>> open(int index, unsigned streams);
  virtual ~Gpu() = default;

  virtual const GpuInfo& info() const = 0;
  virtual unsigned stream_count() const = 0;
  virtual GpuStream& stream(unsigned i) = 0;
  // Pins memory that exists (mbuf pools) and makes it addressable by the GPU under the same pointer. Undone at
  // destruction.
  virtual Expected<void> register_host(void* base, std::size_t bytes) = 0;
  // Pinned host memory, zeroed; freed at the Gpu's destruction.
  virtual Expected<void*> allocate_host(std::size_t bytes) = 0;
  virtual Expected<DeviceMemory> allocate_device(std::size_t bytes) = 0;
  // True after an error that the device does not recover from; `why()` says which.
  virtual bool lost() const = 0;
  virtual std::string why() const = 0;
  // Makes it lost, for a reason that only its user sees (a refused launch, a long silence) or for a test. The first
  // reason stays. Any thread.
  virtual void lose(const std::string& why) = 0;
};

}  // namespace sluice::device
