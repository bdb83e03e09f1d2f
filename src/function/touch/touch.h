// The function "touch": every byte of every frame is read on the device, a verdict comes back. It measures the way up:
// what a function that only looks (route, acl, inspect) can reach at best.
//
// Verdict: the 32-bit sum of the frame's bytes. Frames leave unchanged through their port's peer.
// GPU: a kernel reads the frames in host memory directly; eight lanes read a 128-byte line (device/frame_read.cuh).
// Verdicts are stored 4 bytes a frame, coalesced. CPU: the same sum by packed adds. Settings: none.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/function.h"

namespace sluice::function {

class Touch final : public engine::Function {
 public:
  // `peers`: for each port the index of the port that its frames leave through.
  explicit Touch(std::vector<std::uint16_t> peers) : peers_(std::move(peers)) {}

  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void collect(engine::Burst& burst, engine::BatchWriter& batch) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override;
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override;

 private:
  std::vector<std::uint16_t> peers_;
};

}  // namespace sluice::function
