// The streams of `bench media`: makes what a memory replay port hands out RTP of many streams, each time anew, and
// passes it on to the function under test. So no packet comes twice, though the frames do: each has its stream's next
// sequence number, and as payload what the stage srtp has made of the one before, which is as random as any.
//
// protects: every frame comes in clear and leaves protected. Both: a frame that left protected comes in as it left, to
// another UDP port, where a stream with the same key unprotects it; every second packet is one and every second the
// other, at every load. (What is unprotected cannot be all that comes: somebody must protect it first, and a core is no
// match for a GPU.)
//
// Each lane has streams of its own, in turn. UDP checksums are there and right, or absent (`checksums`): a right one is
// the one that the stage has left, less the tag, so the source does not read payloads.
//
// check(): each frame that leaves is opened on its lane's core by a Channel of the other direction and intel-ipsec-mb,
// or, where it was unprotected, compared as it is. Compared are lengths, checksums and every byte of the payload
// against the frame that went in.
//
// Threads: as of engine::Function; check() before lanes run. Cost, in `collecting` of the lane: estimated, 15 ns a
// frame; the line with a frame's tag is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crypto/cpu.h"
#include "engine/function.h"
#include "function/srtp/media_stream.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {

struct RtpStreams {
  unsigned lanes = 1;
  unsigned frames = 16384;  // of each lane
  unsigned streams = 1000;  // in all; a lane has at least one
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  bool both = false;
  bool checksums = true;

  // What the stage's table must have.
  std::vector<function::MediaStreamSettings> settings() const;
  std::uint32_t keys() const;
  std::uint32_t overhead() const { return srtp::facts(suite).rtp_tag_length; }
};

class MediaSource final : public engine::Function {
 public:
  // `frames_return`: they come back as they went in, for nothing is done to them (collector-only mode).
  MediaSource(std::unique_ptr<engine::Function> inner, const RtpStreams& streams, bool frames_return = false);
  ~MediaSource() override;

  // Of a port whose frames these are.
  Expected<void> check(port::ReplayPort& port);
  std::atomic<std::uint64_t> checked{0};  // that left, and
  std::atomic<std::uint64_t> opened{0};   // of these, those that came unprotected out of the stage
  std::atomic<std::uint64_t> opened_by_libsrtp{0};
  // Why libsrtp opens none; empty: it does.
  std::string why_no_libsrtp() const;
  // What is wrong with the first that was not right; empty: all were.
  std::string wrong() const;

  engine::BatchLayout layout() const override { return inner_->layout(); }
  Expected<void> prepare() override { return inner_->prepare(); }
  Expected<void> prepare_lanes(const engine::LanePlan& plan) override { return inner_->prepare_lanes(plan); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  void collect(engine::Burst& burst, engine::BatchWriter& writer) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override {
    return inner_->launch(batch, stream);
  }
  engine::Together launches_together() const override { return inner_->launches_together(); }
  Expected<void> launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) override {
    return inner_->launch_together(batches, stream);
  }
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override {
    inner_->compute(batch, first, count);
  }
  bool recomputable() const override { return inner_->recomputable(); }
  void lost(engine::Batch& batch) override { inner_->lost(batch); }
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override {
    inner_->forward(batch, first, count, out);
  }
  void stand_in(engine::Batch& batch) override { inner_->stand_in(batch); }
  bool device_ready() override { return inner_->device_ready(); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  void stopped() override { inner_->stopped(); }
  std::vector<engine::Figure> figures() const override { return inner_->figures(); }

 private:
  struct Lane;
  struct Checker;

  void renew(Lane& lane, std::uint32_t lane_index, rte_mbuf* frame);
  void begin(Lane& lane, std::uint32_t lane_index, std::uint32_t index, rte_mbuf* frame);
  void cut_tag(std::uint8_t* frame, std::uint32_t length) const;
  void next_packet(Lane& lane, std::uint32_t index, std::uint8_t* frame) const;

  std::unique_ptr<engine::Function> inner_;
  const RtpStreams streams_;
  const bool frames_return_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Checker> checker_;
};

}  // namespace sluice::cli::bench
