// The function "passive": nothing is forwarded. For chains that only look, at a capture or at a mirrored port:
// chain = ["inspect", "passive"]. Every frame is dropped as "passive" when the stages before it have seen it.
//
// No work for a device: nothing is enqueued. Settings: none.
#pragma once

#include <string>

#include "engine/function.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason passive_seen =
    packet::register_reason("passive", "it was looked at, and nothing is forwarded by this chain");

class Passive final : public engine::Function {
 public:
  bool forwards() const override { return false; }
  Expected<void> attach(device::Gpu& /*gpu*/, const engine::DevicePlan& /*plan*/) override { return {}; }
  void collect(engine::Burst& burst, engine::BatchWriter& writer) override;
  Expected<void> launch(engine::Batch& /*batch*/, device::GpuStream& /*stream*/) override { return {}; }
  void compute(engine::Batch& /*batch*/, std::uint32_t /*first*/, std::uint32_t /*count*/) override {}
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override;
  Expected<std::string> reconfigure(engine::Function& /*fresh*/) override { return std::string(); }
};

}  // namespace sluice::function
