// Around the function of a gateway that is calibrated: brings media into the frames (media_traffic.h), and takes the
// time of each inline batch and its bytes. The time is from the first frame's collecting until the last one's
// forwarding, less what the media took. It also takes what collecting and forwarding take by themselves.
//
// Thread-safety: as of engine::Function; batches() any thread. Cost: the time-stamp counter three times a burst, and
// three times a batch.
#pragma once

#include <rte_cycles.h>

#include <memory>
#include <utility>
#include <vector>

#include "cli/calibrate/media_traffic.h"
#include "engine/away.h"
#include "engine/function.h"
#include "engine/histogram.h"

namespace sluice::cli {

class TimedFunction final : public engine::Function {
 public:
  TimedFunction(std::unique_ptr<engine::Function> inner, MediaTraffic traffic)
      : inner_(std::move(inner)), traffic_(std::move(traffic)) {}

  // Of all lanes: ticks of inline batches, and bytes of batches, whatever computed them; and ticks of collecting a
  // burst, and of forwarding a batch but for its last burst's transmit. A burst that took longer than the gap by which
  // the engine tells that a thread was kept from its work (engine/away.h) is the machine's, and left out.
  struct Batches {
    engine::HistogramSnapshot times, bytes, rounds, forwardings;
  };
  Batches batches() const;
  bool brings_media() const { return !traffic_.empty(); }
  double mean_packet() const { return traffic_.mean_packet(); }  // of media

  engine::BatchLayout layout() const override { return inner_->layout(); }
  bool forwards() const override { return inner_->forwards(); }
  Expected<void> prepare() override { return inner_->prepare(); }
  Expected<void> prepare_lanes(const engine::LanePlan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  void collect(engine::Burst& burst, engine::BatchWriter& batch) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override {
    return inner_->launch(batch, stream);
  }
  engine::Together launches_together() const override { return inner_->launches_together(); }
  Expected<void> launch_together(std::span<engine::Batch* const> batches, device::GpuStream& stream) override {
    return inner_->launch_together(batches, stream);
  }
  bool join(const engine::Batch& batch, function::CapsuleWork& work) override { return inner_->join(batch, work); }
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override {
    inner_->compute(batch, first, count);
  }
  bool recomputable() const override { return inner_->recomputable(); }
  void lost(engine::Batch& batch) override { inner_->lost(batch); }
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override;
  bool forwards_at_length() const override { return inner_->forwards_at_length(); }
  std::uint64_t budgeted_ticks(const engine::Batch& batch) const override { return inner_->budgeted_ticks(batch); }
  void stopped() override { inner_->stopped(); }
  void stand_in(engine::Batch& batch) override { inner_->stand_in(batch); }
  bool device_ready() override { return inner_->device_ready(); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  std::vector<engine::Figure> figures() const override { return inner_->figures(); }
  engine::Tables* tables() override { return inner_->tables(); }
  function::Routing* routing() override { return inner_->routing(); }
  const engine::CountedRules* counted_rules() const override { return inner_->counted_rules(); }
  std::uint16_t egress(const engine::Batch& batch, std::uint32_t i) const override { return inner_->egress(batch, i); }
  std::uint16_t egress_of_transit(const std::uint8_t* frame, std::uint32_t length) const override {
    return inner_->egress_of_transit(frame, length);
  }
  engine::NamedSets* named_sets() override { return inner_->named_sets(); }
  function::MediaStreams* media_streams() override { return inner_->media_streams(); }

 private:
  struct alignas(64) Lane {
    std::uint64_t begin = 0;
    engine::Histogram rounds;
    // The forwarder's.
    alignas(64) std::uint64_t forwarding = 0;
    engine::Histogram times, bytes, forwardings;
  };
  std::unique_ptr<engine::Function> inner_;
  MediaTraffic traffic_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  const std::uint64_t longest_round_ = rte_get_tsc_hz() * engine::away_gap_us / 1'000'000;
};

}  // namespace sluice::cli
