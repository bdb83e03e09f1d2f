// For tests whose few frames must really go to the GPU: a lane computes on its own core until the first time point,
// and a capture is read long before that.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/burst.h"
#include "engine/stage.h"
#include "packet/builder.h"

namespace sluice::function {

// What is to come before a test's own frames: a burst of them, which AwaitGpu holds up. They are no IP.
inline std::vector<packet::Bytes> leading_frames() {
  return std::vector<packet::Bytes>(engine::burst_size,
                                    packet::PacketBuilder().ethertype(0x88b5).payload(packet::Bytes(46)).build());
}

// A stage that lets everything go on, and the first burst only after the first time point of a GPU, if there is one.
class AwaitGpu : public engine::Stage {
 public:
  Expected<void> attach(device::Gpu& /*gpu*/, const engine::DevicePlan& /*plan*/) override {
    waits_ = true;
    return {};
  }
  void describe(const engine::Batch& /*batch*/, std::byte* /*area*/, std::uint32_t /*first*/) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (waits_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Expected<void> launch(const engine::Batch& /*batch*/, std::byte* /*area*/, device::GpuStream& /*stream*/) override {
    return {};
  }
  bool join(const engine::Batch& /*batch*/, std::byte* /*area*/, CapsuleWork& /*work*/) override { return true; }
  void compute(const engine::Batch& /*batch*/, std::byte* /*area*/, std::uint32_t /*first*/,
               std::uint32_t /*count*/) override {}
  void stand_in(const engine::Batch& /*batch*/, std::byte* /*area*/) override {}
  packet::Reason judge(const engine::Batch& /*batch*/, std::byte* /*area*/, std::uint32_t /*i*/,
                       std::uint64_t /*tsc*/) override {
    return packet::no_reason;
  }
  Expected<void> begin_cycle(device::GpuStream& /*stream*/) override {
    waits_ = false;
    return {};
  }
  Expected<Change> reload(Stage& /*fresh*/) override {
    return Change{"nothing", [] {}};
  }

 private:
  std::atomic<bool> waits_{false};
};

}  // namespace sluice::function
