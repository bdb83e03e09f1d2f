#include "engine/batch_ring.h"

#include <algorithm>

namespace sluice::engine {
namespace {

template <typename T>
Expected<void> place(T*& array, std::size_t elements, const DeviceMemory& memory, std::size_t& total) {
  const std::size_t bytes = (elements * sizeof(T) + 63) / 64 * 64;
  auto base = memory(bytes);
  if (!base) {
    return tl::unexpected(base.error());
  }
  array = static_cast<T*>(*base);
  total += bytes;
  return {};
}

}  // namespace

Expected<std::unique_ptr<BatchRing>> BatchRing::create(const Shape& shape, const DeviceMemory& memory) {
  auto ring = std::make_unique<BatchRing>();
  for (std::uint32_t slot = 0; slot < shape.batches; ++slot) {
    auto batch = std::make_unique<Batch>();
    batch->capacity = shape.capacity;
    batch->lane = shape.lane;
    batch->pass = shape.pass;
    batch->departs = shape.departs;
    batch->slot = slot;
    // A burst is at least one frame, so there are never more segments than frames.
    batch->segment_capacity = shape.capacity;
    ring->mbufs_.push_back(std::make_unique<rte_mbuf*[]>(shape.capacity));
    ring->rows_.push_back(std::make_unique<Row[]>(shape.capacity));
    ring->segments_.push_back(std::make_unique<Segment[]>(shape.capacity));
    batch->mbuf = ring->mbufs_.back().get();
    batch->row = ring->rows_.back().get();
    batch->segment = ring->segments_.back().get();
    Expected<void> placed = place(batch->frame, shape.capacity, memory, ring->bytes_);
    placed = placed ? place(batch->length, shape.capacity, memory, ring->bytes_) : placed;
    for (std::size_t e = 0; placed && e < shape.areas.size(); ++e) {
      if (shape.areas[e] == 0) continue;
      placed = place(batch->area.at(e), std::size_t{shape.capacity} * shape.areas[e], memory, ring->bytes_);
    }
    if (!placed) {
      return tl::unexpected(placed.error());
    }
    ring->batches_.push_back(std::move(batch));
  }
  return ring;
}

Batch* BatchRing::open() {
  Batch& batch = at(next_ticket_);
  if (has_open_) {
    return &batch;
  }
  if (in_use() == batches_.size()) {
    return nullptr;
  }
  batch.count = 0;
  batch.segments = 0;
  batch.max_length = 0;
  batch.bytes = 0;
  batch.sent_together = {};
  batch.ticket = next_ticket_;
  batch.state.store(BatchState::open, std::memory_order_relaxed);
  has_open_ = true;
  return &batch;
}

void BatchRing::seal(BatchState state) {
  Batch& batch = at(next_ticket_);
  batch.state.store(state, std::memory_order_release);
  ++next_ticket_;
  has_open_ = false;
  sealed_tickets_.store(next_ticket_, std::memory_order_release);
}

Batch* BatchRing::oldest() {
  const std::uint64_t oldest = oldest_ticket_.load(std::memory_order_relaxed);
  return oldest == sealed_tickets_.load(std::memory_order_acquire) ? nullptr : &at(oldest);
}

void BatchRing::release() {
  const std::uint64_t oldest = oldest_ticket_.load(std::memory_order_relaxed);
  at(oldest).state.store(BatchState::free, std::memory_order_relaxed);
  oldest_ticket_.store(oldest + 1, std::memory_order_release);
}

Batch* BatchRing::next_sealed() {
  // A batch that the lane computed itself may be released and its slot reused before the worker looks; such a slot
  // carries a newer ticket. A sealed batch stays until the worker has acted on it, so it cannot be overtaken.
  while (worker_ticket_ != sealed_tickets_.load(std::memory_order_acquire)) {
    Batch& batch = at(worker_ticket_);
    if (batch.state.load(std::memory_order_acquire) == BatchState::sealed && batch.ticket == worker_ticket_) {
      ++worker_ticket_;
      return &batch;
    }
    ++worker_ticket_;
  }
  return nullptr;
}

}  // namespace sluice::engine
