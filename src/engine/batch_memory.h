// Memory for batches and jobs, which cores and all GPUs use by the same pointers. It is the engine's own, and a GPU
// only registers it, so that cores can go on in it when the GPU's context is destroyed (device::Gpu::reset()).
//
// Memory comes in chunks of huge pages, where the kernel has them, because a GPU that reads host memory translates
// fewer addresses then. A chunk is registered once, and pieces of it are given out.
//
// Thread-safety: none (the control thread). Cost: start-up only.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::engine {

class BatchMemory {
 public:
  // `gpu`: the one that registers it for all; null: none does. Whoever has it registered must have let go of it before
  // this is destroyed.
  explicit BatchMemory(device::Gpu* gpu) : gpu_(gpu) {}
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  // Zeroed, 64-byte aligned, as long as this lives. What is not registered costs memory only once it is written to.
  Expected<void*> allocate(std::size_t bytes);
  // Registers all of it with that GPU, because nobody has it registered any more.
  Expected<void> register_again(device::Gpu& gpu);

 private:
  struct Chunk {
    std::byte* base;
    std::size_t bytes, used;
  };
  Expected<void> add(std::size_t least);

  device::Gpu* gpu_;
  std::vector<Chunk> chunks_;
};

}  // namespace sluice::engine
