#include "engine/lane.h"

#include <rte_cycles.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include <algorithm>

namespace sluice::engine {

Lane::Lane(Parts parts, std::unique_ptr<BatchRing> ring)
    : parts_(std::move(parts)),
      ring_(std::move(ring)),
      burst_(counters_, parts_.host_ports),
      emitter_(parts_.ports, parts_.tx_queue, counters_, parts_.host_ports) {}

unsigned Lane::poll() {
  unsigned work = 0;
  if (const std::uint64_t epoch = parts_.clock->epoch.load(std::memory_order_acquire); epoch != seen_epoch_) {
    seen_epoch_ = epoch;
    time_point();
  }
  work += receive();
  work += forward_done();
  if (parts_.drains_injected) {
    work += send_injected();
  }
  counters_.polls.add(1);
  if (work != 0) {
    counters_.busy_polls.add(1);
  }
  return work;
}

// A GPU pays when a cycle holds enough frames; below that the lane's own core is done before a GPU would have started.
// The factor of two between going and coming back keeps a steady load from flapping.
void Lane::time_point() {
  inline_now_ = !parts_.clock->device_up.load(std::memory_order_relaxed) ||
                cycle_frames_ < (inline_now_ ? parts_.cpu_below : parts_.cpu_below / 2);
  cycle_frames_ = 0;
  if (open_count_ != 0) {
    hand_over(*ring_->open());
  }
}

bool Lane::device_computes() {
  return !inline_now_ && parts_.clock->device_up.load(std::memory_order_relaxed);
}

void Lane::hand_over(Batch& batch) {
  open_count_ = 0;
  if (device_computes()) {
    counters_.batches_gpu.add(1);
    counters_.frames_gpu.add(batch.count);
    ring_->seal(BatchState::sealed);
    return;
  }
  ring_->seal(BatchState::in_flight);
  compute_here(batch);
  counters_.batches_cpu.add(1);
  counters_.frames_cpu.add(batch.count);
}

void Lane::compute_here(Batch& batch) {
  if (parts_.mode == Mode::zero_load) {
    parts_.function->stand_in(batch);
  } else {
    parts_.function->compute(batch, 0, batch.count);
  }
  batch.done_tsc = rte_rdtsc();
  batch.state.store(BatchState::done, std::memory_order_release);
}

unsigned Lane::receive() {
  if (!receiving_.load(std::memory_order_relaxed)) {
    if (open_count_ != 0) {
      hand_over(*ring_->open());
    }
    drained_.store(!holds_frames(), std::memory_order_release);
    return 0;
  }
  Batch* batch = ring_->open();
  if (batch == nullptr) {
    counters_.receive_stalls.add(1);
    return 0;
  }
  const unsigned count = parts_.ports[parts_.port]->rx_burst(parts_.queue, burst_.frames(), burst_size);
  if (count != 0) {
    const std::uint64_t now = rte_rdtsc();
    burst_.begin(count, parts_.port);
    for (unsigned i = 0; i < count; ++i) {
      rte_prefetch0(burst_.data(i));
    }
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < count; ++i) {
      bytes += burst_.length(i);
    }
    counters_.rx_frames.add(count);
    counters_.rx_bytes.add(bytes);
    const std::uint32_t before = batch->count;
    BatchWriter writer(*batch);
    parts_.function->collect(burst_, writer);
    burst_.end();
    if (batch->count != before) {
      batch->segment[batch->segments++] = {before, parts_.port, now};
      cycle_frames_ += batch->count - before;
      in_flight_.store(in_flight_.load(std::memory_order_relaxed) + batch->count - before, std::memory_order_relaxed);
    }
    if (parts_.mode == Mode::collector_only) {
      counters_.drops[measured_only].add(batch->count);
      in_flight_.store(0, std::memory_order_relaxed);
      rte_pktmbuf_free_bulk(batch->mbuf, batch->count);
      batch->count = batch->segments = batch->extra_count = 0;
      batch->bytes = 0;
      return count;
    }
    open_count_ = batch->count;
  }
  if (open_count_ != 0) {
    const bool full = batch->capacity - batch->count < burst_size;
    if (device_computes()) {
      if (full) {
        counters_.sealed_full.add(1);
        hand_over(*batch);
      }
    } else if (full || count < burst_size || batch->count >= inline_batch) {
      hand_over(*batch);
    }
  }
  return count;
}

unsigned Lane::forward_done() {
  unsigned batches = 0;
  for (Batch* batch = ring_->oldest(); batch != nullptr; batch = ring_->oldest()) {
    const BatchState state = batch->state.load(std::memory_order_acquire);
    if (state == BatchState::failed) {
      // The device lost it; the frames are still here.
      compute_here(*batch);
      counters_.batches_rescued.add(1);
      counters_.frames_rescued.add(batch->count);
    } else if (state != BatchState::done) {
      break;
    }
    forward(*batch);
    in_flight_.store(in_flight_.load(std::memory_order_relaxed) - batch->count, std::memory_order_relaxed);
    ring_->release();
    ++batches;
  }
  return batches;
}

void Lane::forward(Batch& batch) {
  std::uint32_t timed = 0;  // first segment whose time is not recorded yet
  std::uint32_t waiting = 0;
  for (std::uint32_t s = 0; s < batch.segments; ++s) {
    const Segment& segment = batch.segment[s];
    const bool last = s + 1 == batch.segments;
    const std::uint32_t end = last ? batch.count : batch.segment[s + 1].first;
    emitter_.set_rx_port(segment.rx_port);
    parts_.function->forward(batch, segment.first, end - segment.first, emitter_);
    waiting += end - segment.first;
    if (!last && waiting < Emitter::tx_burst_size) {
      continue;
    }
    emitter_.flush_all();
    const std::uint64_t now = rte_rdtsc();
    std::uint32_t next = end;
    for (std::uint32_t t = s + 1; t-- > timed;) {
      const std::uint32_t frames = next - batch.segment[t].first;
      next = batch.segment[t].first;
      const std::uint64_t latency = now - batch.segment[t].rx_tsc;
      latency_.add(latency, frames);
      if (latency > parts_.deadline_tsc) {
        counters_.misses.add(frames);
      }
    }
    counters_.measured.add(waiting);
    timed = s + 1;
    waiting = 0;
  }
}

unsigned Lane::send_injected() {
  rte_ring* ring = parts_.host_ports[parts_.port].from_host;
  if (ring == nullptr) {
    return 0;
  }
  rte_mbuf* frames[burst_size];
  const unsigned count = rte_ring_sc_dequeue_burst(ring, reinterpret_cast<void**>(frames), burst_size, nullptr);
  if (count != 0) {
    counters_.injected_frames.add(count);
    for (unsigned i = 0; i < count; ++i) {
      emitter_.transmit(frames[i], rte_pktmbuf_pkt_len(frames[i]), parts_.port);
    }
    emitter_.flush_all();
  }
  return count;
}

void Lane::abandon() {
  for (Batch* batch = ring_->oldest(); batch != nullptr; batch = ring_->oldest()) {
    counters_.drops[stopped].add(batch->count);
    rte_pktmbuf_free_bulk(batch->mbuf, batch->count);
    ring_->release();
  }
  if (open_count_ != 0) {
    Batch* batch = ring_->open();
    counters_.drops[stopped].add(open_count_);
    rte_pktmbuf_free_bulk(batch->mbuf, open_count_);
    batch->count = 0;
    open_count_ = 0;
  }
  in_flight_.store(0, std::memory_order_relaxed);
}

}  // namespace sluice::engine
