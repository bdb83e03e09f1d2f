// The function "bridge": frames leave unchanged by the peer of the port that they came in by, all of them, whatever
// they hold. Alone it is a wire; behind stages (chain = ["acl", "bridge"]) it is a gateway without addresses.
//
// No work for a device: nothing is enqueued. Settings: none.
#pragma once

#include <string>
#include <vector>

#include "function/peers.h"

namespace sluice::function {

class Bridge final : public PeerFunction {
 public:
  using PeerFunction::PeerFunction;

  Expected<void> attach(device::Gpu& /*gpu*/, const engine::DevicePlan& /*plan*/) override { return {}; }
  Expected<void> launch(engine::Batch& /*batch*/, device::GpuStream& /*stream*/) override { return {}; }
  bool join(const engine::Batch& /*batch*/, CapsuleWork& /*work*/) override { return true; }
  void compute(engine::Batch& /*batch*/, std::uint32_t /*first*/, std::uint32_t /*count*/) override {}
  // Stages before it may have something to change.
  Expected<std::string> reconfigure(engine::Function& /*fresh*/) override { return std::string(); }
};

}  // namespace sluice::function
