// Around an element under test: while it is asked to check, it compares the device's verdicts with what compute() makes
// of the same batch, for an element whose compute() leaves frames alone and whose verdicts it knows: touch and route.
//
// Thread-safety: check() and the counts from any thread. Cost while it does not check: a virtual call and a load more
// for each call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/wrapped_element.h"

namespace sluice::cli::bench {

class Checked final : public engine::WrappedElement {
 public:
  explicit Checked(std::unique_ptr<engine::Element> inner, bool checking = true);
  void check(bool on) { checking_.store(on); }
  std::atomic<std::uint64_t> checked{0};  // frames
  std::atomic<std::uint64_t> wrong{0};    // batches

  // Never a part of the fused kernel: what this launches is what is compared.
  void* find_trait(std::string_view name) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;

 private:
  void clear_answers(engine::Batch& batch, int value) const;
  void compare(engine::Batch& batch);
  const bool is_router_;
  std::atomic<bool> checking_;
};

}  // namespace sluice::cli::bench
