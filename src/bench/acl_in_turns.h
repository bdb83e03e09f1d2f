// The element "acl" that can be taken out of its chain, and parted from the one kernel, while its engine runs. So what
// it costs is measured in turns of a fraction of a second, on one engine, one table and one set of frames.
//
// A batch has what was in force when its first frame came in, until it is forwarded. Without it the element does
// nothing, and joins in with nothing. One kernel's batches must have the same parts (function/fused/fused.h), so while
// batches of two kinds are under way each element launches by itself.
//
// Thread-safety: set() from the control thread while lanes run. Cost: a look at a byte of the batch for each frame.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/wrapped_element.h"
#include "function/acl/acl.h"
#include "function/fused/fusable.h"

namespace sluice::cli::bench {

class AclTurns {
 public:
  // Returns when no batch of before is under way, but for a device that is stuck.
  void set(bool present, bool fused);

 private:
  friend class AclInTurns;
  std::atomic<bool> present_{true}, fused_{true};
};

class AclInTurns final : public engine::WrappedElement, public engine::NullDevice, public function::Fusable {
 public:
  AclInTurns(function::Acl::AclOptions options, std::shared_ptr<const AclTurns> turns)
      : WrappedElement(std::make_unique<function::Acl>(std::move(options))),
        acl_(static_cast<function::Acl&>(inner())),
        turns_(std::move(turns)) {}

  engine::Shape shape() const override {
    engine::Shape shape = acl_.shape();
    shape.bytes_per_frame += 1;
    return shape;
  }
  void* find_trait(std::string_view name) override {
    void* const own = engine::offer<engine::NullDevice, function::Fusable>(name, this);
    return own != nullptr ? own : WrappedElement::find_trait(name);
  }
  void classify(engine::Batch& batch, engine::Span span) override {
    if (span.first == 0) mark_of(batch) = std::byte{turns_->present_.load(std::memory_order_relaxed)};
    if (has(batch)) acl_.classify(batch, span);
  }
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override {
    return has(batch) ? acl_.launch(batch, stream) : Expected<void>();
  }
  bool join(const engine::Batch& batch, function::FusedWork& work) override {
    return turns_->fused_.load(std::memory_order_acquire) && (!has(batch) || acl_.join(batch, work));
  }
  void compute(engine::Batch& batch, engine::Span span) override {
    if (has(batch)) acl_.compute(batch, span);
  }
  void null_result(engine::Batch& batch) override {
    if (has(batch)) acl_.null_result(batch);
  }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override {
    if (has(batch)) acl_.apply(batch, span, out);
  }

 private:
  // Behind the area of acl: whether the batch has the element.
  std::byte& mark_of(const engine::Batch& batch) const {
    return area(batch)[std::size_t{acl_.shape().bytes_per_frame} * batch.capacity];
  }
  bool has(const engine::Batch& batch) const { return mark_of(batch) != std::byte{0}; }

  function::Acl& acl_;
  std::shared_ptr<const AclTurns> turns_;
};

}  // namespace sluice::cli::bench
