// A CUDA GPU as the engine sees it: streams with completion marks, and host memory that the GPU can reach.
//
// This header includes no CUDA header: the same program runs with and without a driver. Only .cu files include CUDA's
// headers. Tests compile the same .cu files against device/simt, which runs every kernel on a CPU.
//
// The first call sets CUDA_DEVICE_MAX_CONNECTIONS and CUDA_MODULE_LOADING in the environment, unless they are set. Make
// it while the program has one thread.
//
// Errors: control-path calls return Expected. A CUDA error on the packet path makes the GPU "lost": poll() returns
// failed for every pending mark, and every later call fails at once. The engine then computes on the CPU. reset() may
// take the GPU again.
//
// Thread-safety: the control path calls open(), register_host(), has_ended() and reset(), one thread at a time. One
// thread, the device's worker, uses a GpuStream.
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

// The GPUs of this machine. If there is none, an Error says why (no driver, no device).
Expected<std::vector<GpuInfo>> list_gpus();

enum class MarkState { pending, done, failed };

class GpuStream {
 public:
  virtual ~GpuStream() = default;
  // The cudaStream_t, for .cu files. The call makes the stream's GPU the calling thread's current one, so that work can
  // be enqueued.
  virtual void* raw() const = 0;
  // Enqueues a completion mark behind all work enqueued so far; at most `max_marks` may be pending.
  virtual Expected<void> mark() = 0;
  // The state of the oldest pending mark; done and failed remove the mark. If no mark is pending: done. After failed
  // the device no longer touches the work's memory. Cost: about 1 us at most.
  virtual MarkState poll() = 0;
  virtual unsigned pending_marks() const = 0;
  static constexpr unsigned max_marks = 64;
};

// Of a GPU that is lost: what may still happen to the work that it has.
enum class Gone : std::uint8_t {
  answers,  // nothing, or it will end soon
  silent,   // it may go on for ever
  hangs,    // a call of the driver does not return: no other one is made
};

class Gpu {
 public:
  static Expected<std::unique_ptr<Gpu>> open(int index, unsigned streams);
  virtual ~Gpu() = default;

  virtual const GpuInfo& info() const = 0;
  virtual unsigned stream_count() const = 0;
  virtual GpuStream& stream(unsigned i) = 0;
  // Pins existing memory (mbuf pools), so that the GPU can use it by the same pointer. The destructor undoes it.
  virtual Expected<void> register_host(void* base, std::size_t bytes) = 0;
  // Allocates pinned host memory, zeroed. The Gpu's destructor frees it.
  virtual Expected<void*> allocate_host(std::size_t bytes) = 0;
  virtual Expected<DeviceMemory> allocate_device(std::size_t bytes) = 0;
  // True after an error from which the device does not recover but by reset(); why() says which.
  virtual bool lost() const = 0;
  virtual std::string why() const = 0;
  // Makes the GPU lost, for a reason that only the caller sees (a refused launch, a long silence), or for a test. The
  // first reason stays. Any thread.
  // To give memory of a GPU that is `silent` or `hangs` back, the driver would wait for its work. So destructors, that
  // of DeviceMemory too, leave it until the process ends, and open() refuses that GPU until then. It is given back
  // after all if the GPU was `silent` and its work has ended.
  virtual void lose(const std::string& why, Gone how = Gone::answers) = 0;
  // Of a lost GPU: whether all that it was given has ended, asked without waiting. From then on destructors give memory
  // back.
  virtual bool has_ended() = 0;
  // Makes a lost GPU a new one, by destroying this process's CUDA context on it. Behind a fault a driver may give it no
  // new one: then only another process can use the GPU.
  // Streams keep their objects. All else is gone: what allocate_host() gave, what others have created on the GPU, and
  // that host memory is registered, for any GPU. So destroy DeviceMemory, streams and events of this GPU before, stop
  // the thread that uses it, and those of others that use memory which this one has registered. An Error: it has work
  // that did not end (has_ended()), or the driver cannot. The GPU stays lost then, and the call may be repeated. Cost:
  // up to some seconds, for a context and for pinning.
  virtual Expected<void> reset() = 0;
};

}  // namespace sluice::device
