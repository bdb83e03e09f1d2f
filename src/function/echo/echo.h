// The element "echo": every byte of every frame goes to the device and comes back into the frame. It measures both
// ways at once: what an element that transforms (srtp, ipsec) can reach at best.
//
// The device XORs every byte after the first echo_unchanged_bytes with `key`, so that bytes that went through it can be
// distinguished from bytes that did not. Verdict: the 32-bit sum of the frame's bytes as received. Frames leave through
// their port's peer.
//
// Frames change in place, so a batch that a GPU lost half-way and that is then computed on the CPU has frames that were
// changed twice; with key 0 that makes no difference. For measuring alone: with a key it changes frames for the host,
// and those that an element in front has decided on, too.
//
// Settings: key = 0 ... 255 (0); path = how the bytes travel on a GPU:
//   copy         up and down by the copy engine, as 2-D copies of runs of frames, with a kernel in between
//   direct       a kernel reads and writes the frames in host memory
//   direct-down  the copy engine brings them up, a kernel writes them back
//   auto         copy for large runs of frames of about one size, direct otherwise (docs/device.md has the
//                measurements)
// (The fourth way, a kernel reads and the copy engine brings back, is not there: it would bring bytes back behind short
// frames that never went up, and direct reads beside engine downloads reach 39 GB/s of 50 at best.) A batch whose
// frames lie too scattered for the copy engine goes by the direct path in any case.
//
// Large batches travel in pieces, so that one piece comes down while the next goes up. Device memory: one staging area
// for each stream, of batch_capacity frames.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "function/peers.h"

namespace sluice::function {

// At the frame's beginning.
inline constexpr int echo_unchanged_bytes = 12;

enum class EchoPath { automatic, copy, direct, direct_down };

class Echo final : public PeerElement, public engine::Recovery {
 public:
  // `peers`: as of peers_of().
  Echo(std::vector<std::uint16_t> peers, std::uint8_t key, EchoPath path, std::uint64_t piece_bytes = 8 << 20);
  ~Echo() override;

  engine::Shape shape() const override {
    return {.bytes_per_frame = sizeof(std::uint32_t),
            .payloads = engine::Payloads::changed,
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
  void lost(engine::Batch& batch) override;
  void* find_trait(std::string_view name) override {
    void* const own = engine::offer<engine::Recovery>(name, this);
    return own != nullptr ? own : PeerElement::find_trait(name);
  }

 private:
  Expected<void> enqueue(engine::Batch& batch, device::GpuStream& stream);

  struct Staging;  // device memory and the second stream of one engine stream

  std::uint8_t key_;
  EchoPath path_;
  std::uint64_t piece_bytes_;
  std::vector<std::vector<std::unique_ptr<Staging>>> staging_;  // by DevicePlan::device
};

}  // namespace sluice::function
