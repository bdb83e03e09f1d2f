// What the benches of SRTP on a GPU without the engine stand on: packets' memory that the GPU addresses, and the GPU.
#pragma once

#include <rte_malloc.h>

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/srtp_packets.h"
#include "device/gpu.h"

namespace sluice::cli::bench {

struct SrtpBed {
  struct Freed {
    void operator()(void* memory) const { rte_free(memory); }
  };
  std::unique_ptr<void, Freed> memory;  // before the GPU, which unpins it first
  std::unique_ptr<device::Gpu> gpu;

  // Of the options' device (auto: the first GPU), with so many CUDA streams and memory for `packets` packets.
  static Expected<SrtpBed> make(const BenchOptions& options, unsigned streams, std::uint32_t packets);
  static constexpr std::uint64_t bytes(std::uint32_t packets) { return std::uint64_t{packets} * SrtpPackets::pitch; }
};

// Until the stream's oldest mark has passed, without sleeping.
Expected<void> wait_for(device::Gpu& gpu, device::GpuStream& stream);

}  // namespace sluice::cli::bench
