// An element around another one, which gets every call and offers every trait: for elements that watch or change a part
// of what another does, as tests and benches have them. One that derives from it overrides what it is for.
#pragma once

#include <memory>

#include "engine/element.h"
#include "engine/traits.h"

namespace sluice::engine {

class WrappedElement : public Element, public Wrapper {
 public:
  explicit WrappedElement(std::unique_ptr<Element> inner) : inner_(std::move(inner)) {}
  Element& inner() const final { return *inner_; }

  Shape shape() const override { return inner_->shape(); }
  Expected<void> prepare(const Plan& plan) override { return inner_->prepare(plan); }
  Expected<void> attach(device::Gpu& gpu, const DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  void detach(std::uint32_t device) override { inner_->detach(device); }
  bool can_detach() const override { return inner_->can_detach(); }
  void classify(Batch& batch, Span span) override { inner_->classify(batch, span); }
  Expected<void> launch(Batch& batch, device::GpuStream& stream) override { return inner_->launch(batch, stream); }
  void compute(Batch& batch, Span span) override { inner_->compute(batch, span); }
  void apply(Batch& batch, Span span, Emitter& out) override { inner_->apply(batch, span, out); }
  // `fresh`: an element of the inner one's type, or one around such.
  Expected<Change> reload(Element& fresh) override {
    Wrapper* const wrapper = fresh.trait<Wrapper>();
    return inner_->reload(wrapper != nullptr ? wrapper->inner() : fresh);
  }
  void* find_trait(std::string_view name) override {
    void* const own = offer<Wrapper>(name, static_cast<Wrapper*>(this));
    return own != nullptr ? own : inner_->find_trait(name);
  }

 private:
  std::unique_ptr<Element> inner_;
};

}  // namespace sluice::engine
