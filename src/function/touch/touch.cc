#include "function/touch/touch.h"

#include "device/byte_sum.h"
#include "device/frame_sum.h"
#include "device/gpu.h"
#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"
#include "engine/port_table.h"
#include "function/peers.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_function(
    {"touch", "measuring: the device reads every byte, a verdict comes back",
     [](Settings&, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Function>> {
       return std::make_unique<Touch>(peers_of(ports));
     }});

}  // namespace

void Touch::collect(engine::Burst& burst, engine::BatchWriter& batch) {
  for (unsigned i = 0; i < burst.size(); ++i) {
    batch.append(burst, i, burst.port());
  }
}

Expected<void> Touch::attach(device::Gpu&, const engine::DevicePlan&) {
  return {};
}

Expected<void> Touch::launch(engine::Batch& batch, device::GpuStream& stream) {
  return device::sum_frames(batch.frame, batch.length, batch.verdict, batch.count, stream.raw());
}

void Touch::compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    batch.verdict[i] = device::sum_bytes(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i]);
  }
}

void Touch::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    out.transmit(batch, i, peers_[batch.argument[i]]);
  }
}

}  // namespace sluice::function
