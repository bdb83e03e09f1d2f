// Passes everything on to the function under test and, while it is told to check, compares the device's verdicts with
// what compute() makes of the same batch, for a function whose compute() leaves frames alone.
//
// Thread-safety: check() and the counts from any thread. Cost while it does not check: a virtual call and a load more
// for each call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/function.h"

namespace sluice::cli::bench {

class Checked : public engine::Function {
 public:
  explicit Checked(std::unique_ptr<engine::Function> inner, bool checking = true)
      : inner_(std::move(inner)), checking_(checking) {}
  void check(bool on) { checking_.store(on); }
  engine::Function& inner() { return *inner_; }
  std::atomic<std::uint64_t> checked{0};  // frames
  std::atomic<std::uint64_t> wrong{0};    // batches

  engine::BatchLayout layout() const override { return inner_->layout(); }
  Expected<void> prepare() override { return inner_->prepare(); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  bool recomputable() const override { return inner_->recomputable(); }
  void lost(engine::Batch& batch) override { inner_->lost(batch); }
  void collect(engine::Burst& burst, engine::BatchWriter& batch) override { inner_->collect(burst, batch); }
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) override;
  void stand_in(engine::Batch& batch) override { inner_->stand_in(batch); }
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) override;

 private:
  void clear_answers(engine::Batch& batch, int value);
  void compare(engine::Batch& batch);
  std::unique_ptr<engine::Function> inner_;
  std::atomic<bool> checking_;
};

}  // namespace sluice::cli::bench
