#include "bench/checked.h"

#include <cstring>
#include <utility>
#include <vector>

#include "function/fused/fusable.h"
#include "function/route/route_batch.h"
#include "function/routing.h"

namespace sluice::cli::bench {

Checked::Checked(std::unique_ptr<engine::Element> inner, bool checking)
    : WrappedElement(std::move(inner)),
      is_router_(this->inner().trait<function::Routing>() != nullptr),
      checking_(checking) {}

void* Checked::find_trait(std::string_view name) {
  return name == function::Fusable::trait_name ? nullptr : WrappedElement::find_trait(name);
}

Expected<void> Checked::launch(engine::Batch& batch, device::GpuStream& stream) {
  if (checking_.load(std::memory_order_relaxed)) {
    clear_answers(batch, 0xA5);
  }
  return WrappedElement::launch(batch, stream);
}

void Checked::compute(engine::Batch& batch, engine::Span span) {
  if (checking_.load(std::memory_order_relaxed)) {
    clear_answers(batch, 0xA5);
  }
  WrappedElement::compute(batch, span);
}

void Checked::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  if (span.first == 0 && checking_.load(std::memory_order_relaxed)) {
    compare(batch);
  }
  WrappedElement::apply(batch, span, out);
}

// So that an answer that the device did not write cannot pass.
void Checked::clear_answers(engine::Batch& batch, int value) const {
  if (!is_router_) {
    std::memset(area(batch), value, batch.count * sizeof(std::uint32_t));
    return;
  }
  const function::RouteArea route(area(batch), batch.capacity);
  std::memset(route.answers6, value, route.header->keys6 * sizeof *route.answers6);
  // A batch of IPv6 frames alone leaves the verdicts of IPv4 as they are.
  if (route.header->keys6 != batch.count) std::memset(route.verdict, value, batch.count * sizeof *route.verdict);
}

void Checked::compare(engine::Batch& batch) {
  const std::size_t bytes = std::size_t{inner().shape().bytes_per_frame} * batch.capacity;
  const std::vector<std::byte> answered(area(batch), area(batch) + bytes);
  clear_answers(batch, 0x5A);
  WrappedElement::compute(batch, {0, batch.count});
  wrong.fetch_add(std::memcmp(answered.data(), area(batch), bytes) != 0 ? 1 : 0);
  checked.fetch_add(batch.count);
}

}  // namespace sluice::cli::bench
