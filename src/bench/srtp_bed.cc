#include "bench/srtp_bed.h"

#include "bench/gpu_only.h"
#include "device/name.h"

namespace sluice::cli::bench {

Expected<SrtpBed> SrtpBed::make(const BenchOptions& options, unsigned streams, std::uint32_t packets) {
  SrtpBed bed;
  if (auto ok = keep(device::Gpu::open(device::gpu_index(options.device).value_or(0), streams), bed.gpu); !ok) {
    return tl::unexpected(ok.error());
  }
  bed.memory.reset(rte_malloc("srtp-packets", bytes(packets), 4096));
  if (bed.memory == nullptr) {
    return make_error("no memory for packets");
  }
  if (auto ok = bed.gpu->register_host(bed.memory.get(), bytes(packets)); !ok) {
    return tl::unexpected(ok.error());
  }
  return bed;
}

Expected<void> wait_for(device::Gpu& gpu, device::GpuStream& stream) {
  device::MarkState state = stream.poll();
  while (state == device::MarkState::pending) {
    state = stream.poll();
  }
  return state == device::MarkState::done ? Expected<void>{} : make_error(gpu.why());
}

}  // namespace sluice::cli::bench
