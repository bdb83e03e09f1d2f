// The element "touch": every byte of every frame is read on the device, a verdict comes back. It measures the way up:
// what an element that only looks (route, acl, inspect) can reach at best.
//
// Verdict: the 32-bit sum of the frame's bytes. Frames leave unchanged through their port's peer.
// Verdicts are stored 4 bytes a frame, coalesced. CPU: the same sum by packed adds.
//
// Settings: path = how the bytes travel to a GPU:
//   copy    the copy engine brings them up, as 2-D copies of runs of frames; a kernel reads device memory
//   direct  a kernel reads the frames in host memory; eight lanes read a 128-byte line (device/frame_read.cuh)
//   auto    copy for large runs of frames of about one size, which uses the link's packets better; direct otherwise
// A batch whose frames lie too scattered for the copy engine goes by the direct path in any case. Device memory for
// copy and auto: one staging area for each stream, of batch_capacity frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/memory.h"
#include "function/peers.h"

namespace sluice::function {

enum class TouchPath { automatic, copy, direct };

class Touch final : public PeerElement {
 public:
  // `peers`: as of peers_of().
  explicit Touch(std::vector<std::uint16_t> peers, TouchPath path = TouchPath::automatic)
      : PeerElement(std::move(peers)), path_(path) {}

  engine::Shape shape() const override {
    return {.bytes_per_frame = sizeof(std::uint32_t),
            .payloads = engine::Payloads::read,
            .on_device = true,
            .ends_chain = true};
  }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override;
  bool can_detach() const override { return true; }
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  // Of each row of the batch.
  std::uint32_t* verdicts(const engine::Batch& batch) const { return reinterpret_cast<std::uint32_t*>(area(batch)); }

 private:
  struct Staging {  // of one engine stream
    const device::GpuStream* stream;
    device::DeviceMemory memory;
  };
  TouchPath path_;
  std::size_t pitch_ = 0;
  std::uint32_t rows_ = 0;
  std::vector<std::vector<Staging>> staging_;  // by DevicePlan::device
};

}  // namespace sluice::function
