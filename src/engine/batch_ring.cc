#include "engine/batch_ring.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <utility>

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

Expected<std::unique_ptr<BatchRing>> BatchRing::create(const Shape& shape, const DeviceMemory& memory,
                                                       const DeviceMemory& spare_memory) {
  auto ring = std::make_unique<BatchRing>();
  ring->areas_ = shape.areas;
  ring->slots_ = std::vector<std::atomic<Batch*>>(shape.batches);
  for (std::uint32_t slot = 0; slot < shape.batches; ++slot) {
    auto batch = ring->make_batch(shape, slot);
    if (auto placed = ring->place_arrays(*batch, shape, memory); !placed) return tl::unexpected(placed.error());
    ring->slots_[slot].store(batch.get(), std::memory_order_relaxed);
    ring->batches_.push_back(std::move(batch));
  }
  const std::size_t bytes = ring->bytes_;
  for (std::uint32_t slot = 0; spare_memory && slot < shape.batches; ++slot) {
    auto spare = ring->make_batch(shape, slot);
    if (auto placed = ring->place_arrays(*spare, shape, spare_memory); !placed) return tl::unexpected(placed.error());
    ring->beside_.push_back({spare.get(), false, {}});
    ring->beside_.back().held.reserve(shape.capacity);
    ring->spares_.push_back(std::move(spare));
  }
  ring->bytes_ = bytes;
  return ring;
}

std::unique_ptr<Batch> BatchRing::make_batch(const Shape& shape, std::uint32_t slot) {
  auto batch = std::make_unique<Batch>();
  batch->capacity = shape.capacity;
  batch->lane = shape.lane;
  batch->pass = shape.pass;
  batch->departs = shape.departs;
  batch->slot = slot;
  // A burst is at least one frame, so there are never more segments than frames.
  batch->segment_capacity = shape.capacity;
  // A spare's are to cost no memory until it is used.
  mbufs_.push_back(std::make_unique_for_overwrite<rte_mbuf*[]>(shape.capacity));
  rows_.push_back(std::make_unique_for_overwrite<Row[]>(shape.capacity));
  segments_.push_back(std::make_unique_for_overwrite<Segment[]>(shape.capacity));
  batch->mbuf = mbufs_.back().get();
  batch->row = rows_.back().get();
  batch->segment = segments_.back().get();
  return batch;
}

Expected<void> BatchRing::place_arrays(Batch& batch, const Shape& shape, const DeviceMemory& memory) {
  Expected<void> placed = place(batch.frame, shape.capacity, memory, bytes_);
  placed = placed ? place(batch.length, shape.capacity, memory, bytes_) : placed;
  for (std::size_t e = 0; placed && e < shape.areas.size(); ++e) {
    if (shape.areas[e] == 0) continue;
    placed = place(batch.area.at(e), std::size_t{shape.capacity} * shape.areas[e], memory, bytes_);
  }
  return placed;
}

Batch* BatchRing::open() {
  Batch& batch = at(next_ticket_);
  if (has_open_) {
    return &batch;
  }
  if (in_use() == slots_.size()) {
    return nullptr;
  }
  batch.count = 0;
  batch.segments = 0;
  batch.max_length = 0;
  batch.bytes = 0;
  batch.sent_together = {};
  batch.is_probe = false;
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

Batch* BatchRing::next_sealed(std::uint32_t device) {
  // A batch that the lane computed itself may be released and its slot reused before the worker looks; such a slot
  // carries a newer ticket. A sealed batch stays until the worker or the lane has taken it, so it cannot be overtaken.
  // Another device's stays ahead until its worker or the lane has taken it: while a lane moves to another device, the
  // worker that it leaves may still look here. Of two workers one may set the ticket back: what it then sees again is
  // not sealed any more.
  std::uint64_t ticket = worker_ticket_.load(std::memory_order_relaxed);
  bool is_ahead = true;
  while (ticket != sealed_tickets_.load(std::memory_order_acquire)) {
    Batch& batch = at(ticket);
    const bool is_sealed = batch.state.load(std::memory_order_acquire) == BatchState::sealed && batch.ticket == ticket;
    ++ticket;
    is_ahead = is_ahead && !(is_sealed && batch.device != device);
    if (is_ahead) worker_ticket_.store(ticket, std::memory_order_relaxed);
    if (is_sealed && batch.device == device && take_sealed(batch)) return &batch;
  }
  return nullptr;
}

bool BatchRing::take_sealed(Batch& batch) {
  BatchState state = BatchState::sealed;
  return batch.state.compare_exchange_strong(state, BatchState::in_flight, std::memory_order_acquire,
                                             std::memory_order_relaxed);
}

Batch* BatchRing::put_aside(Batch& batch) {
  const auto spare = std::ranges::find(beside_, false, &Beside::aside);
  if (spare == beside_.end()) return nullptr;
  Batch& fresh = *spare->batch;
  copy(batch, fresh);
  fresh.state.store(BatchState::lost, std::memory_order_relaxed);
  slots_[batch.ticket % slots_.size()].store(&fresh, std::memory_order_release);
  *spare = {&batch, true, std::move(spare->held)};
  ++batches_aside_;
  return &fresh;
}

// Of the areas all: what is where in them is the elements' to know.
void BatchRing::copy(const Batch& from, Batch& to) const {
  to.slot = from.slot;
  to.count = from.count;
  to.expected = from.expected;
  to.segments = from.segments;
  to.max_length = from.max_length;
  to.bytes = from.bytes;
  to.ticket = from.ticket;
  to.began_tsc = from.began_tsc;
  to.sealed_tsc = from.sealed_tsc;
  to.device = from.device;
  to.to_device = from.to_device;
  to.sent_together = from.sent_together;
  to.sent_port = from.sent_port;
  std::copy_n(from.frame, from.count, to.frame);
  std::copy_n(from.length, from.count, to.length);
  std::copy_n(from.mbuf, from.count, to.mbuf);
  std::copy_n(from.row, from.count, to.row);
  std::copy_n(from.segment, from.segments, to.segment);
  for (std::size_t e = 0; e < areas_.size(); ++e) {
    if (areas_[e] != 0) std::copy_n(from.area[e], std::size_t{from.capacity} * areas_[e], to.area[e]);
  }
}

void BatchRing::hold(const Batch& aside, rte_mbuf* frame) {
  const auto of = std::ranges::find(beside_, &aside, &Beside::batch);
  rte_mbuf_refcnt_update(frame, 1);
  of->held.push_back(frame);  // it has capacity for all frames of a batch
  ++frames_aside_;
}

std::uint32_t BatchRing::give_back(Beside& one) {
  const auto held = static_cast<std::uint32_t>(one.held.size());
  rte_pktmbuf_free_bulk(one.held.data(), held);
  one.held.clear();
  one.aside = false;
  --batches_aside_;
  frames_aside_ -= held;
  return held;
}

}  // namespace sluice::engine
