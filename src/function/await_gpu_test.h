// For tests whose few frames must really go to the GPU: a lane computes on its own core until the first time point,
// and a capture is read long before that.
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/burst.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "packet/builder.h"

namespace sluice::function {

// What is to come before a test's own frames: a burst of them, which AwaitGpu holds up. They are no IP.
inline std::vector<packet::Bytes> leading_frames() {
  return std::vector<packet::Bytes>(engine::burst_size,
                                    packet::PacketBuilder().ethertype(0x88b5).payload(packet::Bytes(46)).build());
}

// An element that lets everything go on, and the first burst only after the first time point of a GPU, if there is one.
class AwaitGpu : public engine::Element, public engine::DeviceCycle {
 public:
  Expected<void> attach(device::Gpu& /*gpu*/, const engine::DevicePlan& /*plan*/) override {
    waits_ = true;
    return {};
  }
  void* find_trait(std::string_view name) override { return engine::offer<engine::DeviceCycle>(name, this); }
  void classify(engine::Batch& /*batch*/, engine::Span /*span*/) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (waits_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  Expected<void> begin_cycle(std::uint32_t /*device*/, device::GpuStream& /*stream*/) override {
    waits_ = false;
    return {};
  }
  Expected<Change> reload(Element& /*fresh*/) override { return Change{}; }

 private:
  std::atomic<bool> waits_{false};
};

}  // namespace sluice::function
