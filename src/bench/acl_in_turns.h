// The stage "acl" that can be taken out of its chain, and parted from the one kernel, while its engine runs. So what it
// costs is measured in turns of a fraction of a second, on one engine, one table and one set of frames.
//
// A batch has what was in force when its first frame came in, until it is forwarded. Without it the stage does nothing,
// and joins in with nothing. One kernel's batches must have the same parts (function/fused/fused.h), so while
// batches of two kinds are under way each stage launches by itself.
//
// Thread-safety: set() from the control thread while lanes run. Cost: a look at a byte of the batch for each frame.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "function/acl/acl.h"

namespace sluice::cli::bench {

class AclTurns {
 public:
  // Returns when no batch of before is under way, but for a device that is stuck.
  void set(bool present, bool fused);

 private:
  friend class AclInTurns;
  std::atomic<bool> present_{true}, fused_{true};
};

class AclInTurns final : public engine::Stage {
 public:
  AclInTurns(function::Acl::AclOptions options, std::shared_ptr<const AclTurns> turns)
      : acl_(std::move(options)), turns_(std::move(turns)) {}

  std::uint32_t bytes_per_frame() const override { return acl_.bytes_per_frame() + 1; }
  Expected<void> prepare(const engine::LanePlan& plan) override { return acl_.prepare(plan); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return acl_.attach(gpu, plan); }
  void describe(const engine::Batch& batch, std::byte* area, std::uint32_t first) override {
    if (first == 0) mark_of(batch, area) = std::byte{turns_->present_.load(std::memory_order_relaxed)};
    if (has(batch, area)) acl_.describe(batch, area, first);
  }
  Expected<void> launch(const engine::Batch& batch, std::byte* area, device::GpuStream& stream) override {
    return has(batch, area) ? acl_.launch(batch, area, stream) : Expected<void>();
  }
  bool join(const engine::Batch& batch, std::byte* area, function::FusedWork& work) override {
    return turns_->fused_.load(std::memory_order_acquire) && (!has(batch, area) || acl_.join(batch, area, work));
  }
  void compute(const engine::Batch& batch, std::byte* area, std::uint32_t first, std::uint32_t count) override {
    if (has(batch, area)) acl_.compute(batch, area, first, count);
  }
  void stand_in(const engine::Batch& batch, std::byte* area) override {
    if (has(batch, area)) acl_.stand_in(batch, area);
  }
  packet::Reason judge(const engine::Batch& batch, std::byte* area, std::uint32_t i, std::uint64_t tsc) override {
    return has(batch, area) ? acl_.judge(batch, area, i, tsc) : packet::no_reason;
  }
  void judged(const engine::Batch& batch, std::byte* area) override {
    if (has(batch, area)) acl_.judged(batch, area);
  }
  packet::Reason judge_transit(std::uint32_t lane, std::uint8_t* frame, std::uint32_t length,
                               std::uint64_t tsc) override {
    return acl_.judge_transit(lane, frame, length, tsc);
  }
  void stopped() override { acl_.stopped(); }
  bool device_ready() override { return acl_.device_ready(); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return acl_.begin_cycle(stream); }
  std::vector<engine::Figure> figures() const override { return acl_.figures(); }

 private:
  // Behind the area of acl: whether the batch has the stage.
  std::byte& mark_of(const engine::Batch& batch, std::byte* area) const {
    return area[std::size_t{acl_.bytes_per_frame()} * batch.capacity];
  }
  bool has(const engine::Batch& batch, std::byte* area) const { return mark_of(batch, area) != std::byte{0}; }

  function::Acl acl_;
  std::shared_ptr<const AclTurns> turns_;
};

}  // namespace sluice::cli::bench
