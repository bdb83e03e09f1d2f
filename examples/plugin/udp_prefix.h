// The element "udp_prefix": drops UDP datagrams whose payload begins with given bytes, as those of an attack do.
//
// Settings of [udp_prefix], which a reload changes:
//   port = 123             UDP destination port
//   bytes = "17 00 03 2a"  that the payload begins with, 1 to 8, in hexadecimal
#pragma once

#include <sluice/engine/element.h>
#include <sluice/engine/traits.h>
#include <sluice/engine/view.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "rule.h"

namespace udp_prefix {

// SLUICE_ELEMENT_CUDA: the kernel is compiled in (sluice_element() of the CMake package).
#ifdef SLUICE_ELEMENT_CUDA
inline constexpr bool has_kernel = true;
#else
inline constexpr bool has_kernel = false;
#endif

class UdpPrefix final : public sluice::engine::Element, public sluice::engine::Metrics, public sluice::engine::View {
 public:
  explicit UdpPrefix(const Rule& rule) { put_in_force(rule); }

  // A byte for each frame: whether it matches.
  sluice::engine::Shape shape() const override {
    return {.bytes_per_frame = 1, .payloads = sluice::engine::Payloads::read, .on_device = has_kernel};
  }
  // It keeps nothing on a device, so a lost one may come back.
  bool can_detach() const override { return true; }
  // Without a kernel the lane's core looks at frames when they come; with one, when the lane computes.
  void classify(sluice::engine::Batch& batch, sluice::engine::Span span) override {
    if (!has_kernel) look(batch, span);
  }
  void compute(sluice::engine::Batch& batch, sluice::engine::Span span) override { look(batch, span); }
#ifdef SLUICE_ELEMENT_CUDA
  sluice::Expected<void> launch(sluice::engine::Batch& batch, sluice::device::GpuStream& stream) override;
#endif
  void apply(sluice::engine::Batch& batch, sluice::engine::Span span, sluice::engine::Emitter& out) override;

  sluice::Expected<Change> reload(Element& fresh) override;
  void* find_trait(std::string_view name) override {
    return sluice::engine::offer<sluice::engine::Metrics, sluice::engine::View>(name, this);
  }
  std::vector<sluice::engine::Metric> metrics() const override;
  std::string view() const override;

 private:
  void look(sluice::engine::Batch& batch, sluice::engine::Span span);
  std::uint8_t* verdicts(const sluice::engine::Batch& batch) const {
    return reinterpret_cast<std::uint8_t*>(area(batch));
  }
  void put_in_force(const Rule& rule) {
    rules_.push_back(std::make_unique<const Rule>(rule));
    rule_ = rules_.back().get();
  }

  // All there were: a lane may still look at the one before, and they are small.
  std::vector<std::unique_ptr<const Rule>> rules_;
  std::atomic<const Rule*> rule_{nullptr};
  std::atomic<std::uint64_t> looked_at_{0}, matched_{0};
};

}  // namespace udp_prefix
