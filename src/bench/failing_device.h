// An element that makes the GPU of its chain fail when it is asked to, as GPUs do (device/fault_kernels.h).
//
// Threads: as of engine::Element; fail() from any thread. Cost: a load for each cycle.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/element.h"
#include "engine/traits.h"

namespace sluice::cli::bench {

enum class Failure : std::uint8_t {
  lose,     // it is given up from one moment to the next (Gpu::lose()), and what it has is answered as failed
  fault,    // a kernel writes to an address that is not there
  endless,  // a kernel does not end
};
std::string_view failure_name(Failure failure);
// "lose,fault" -> those, in this order. An Error names the one that is none.
Expected<std::vector<Failure>> parse_failures(const std::string& text);
// Whether this process can use the GPU afterwards, besides the gateway that has lost it: a driver may keep something of
// a fault.
constexpr bool leaves_gpu(Failure failure) {
  return failure == Failure::lose;
}

class FailingDevice final : public engine::Element, public engine::DeviceCycle {
 public:
  // Once: at the device's next cycle.
  void fail(Failure failure) { next_.store(static_cast<int>(failure), std::memory_order_release); }

  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void* find_trait(std::string_view name) override { return engine::offer<engine::DeviceCycle>(name, this); }
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}

 private:
  static constexpr int none = -1;
  std::atomic<int> next_{none};
  device::Gpu* gpu_ = nullptr;
};

}  // namespace sluice::cli::bench
