// The lane's forwarder, on one thread: what the device has done leaves in ticket order, what it has not done is
// computed here, and what the host injected is sent.
#include <rte_cycles.h>
#include <rte_ring.h>

#include <algorithm>

#include "engine/lane.h"

namespace sluice::engine {
namespace {
// Of what comes while a batch is forwarded.
constexpr std::uint32_t least_owed = 4 * burst_size;
}  // namespace

unsigned Lane::forward_round() {
  unsigned work = forward_done();
  if (parts_.drains_injected) {
    work += send_injected();
  }
  if (work == 0 && keeps_time_ && ring_->in_use() == 0) {
    let_time_pass();
  }
  return work;
}

void Lane::let_time_pass() {
  const std::uint64_t now = rte_rdtsc();
  if (now - idled_tsc_ < idle_tsc_) {
    return;
  }
  idled_tsc_ = now;
  parts_.function->idle(parts_.index, now);
  forwarder_.away->resume(rte_rdtsc());
}

// With a device one batch, else all that is done: a core that computes has nothing to collect meanwhile.
unsigned Lane::forward_done() {
  unsigned batches = 0;
  do {
    Batch* const batch = ring_->oldest();
    if (batch == nullptr) break;
    const BatchState state = batch->state.load(std::memory_order_acquire);
    if (state == BatchState::failed || state == BatchState::lost) {
      rescue(*batch);
    } else if (state != BatchState::done) {
      break;
    }
    const std::uint32_t frames = batch->count;
    const std::uint64_t began = rte_rdtsc();
    forward(*batch);
    const std::uint64_t now = rte_rdtsc();
    const std::uint64_t budgeted = std::min(parts_.function->budgeted_ticks(*batch), now - began);
    pace_.forwarding().took(now - began - budgeted, frames);
    pace_.forwarding_in_all().took(now - began, frames);
    admission_.took(now - batch->sealed_tsc);
    forwarded_.add(frames);
    ring_->release();
    ++batches;
    if (forwarder_.away == collector_.away) {
      owed_frames_ = std::max(least_owed, frames / 2);
      owed_until_ = now + budgeted;
    }
  } while (!device_computes());
  return batches;
}

// The device did not do it; the frames are still here.
void Lane::rescue(Batch& batch) {
  if (batch.state.load(std::memory_order_relaxed) == BatchState::lost) {
    parts_.function->lost(batch);
    if (!parts_.function->recomputable()) {
      forwarded_counters_.drops[device_lost].add(batch.count);
      show_drops(batch.mbuf, batch.count, device_lost);
      forwarded_.add(batch.count);
      rte_pktmbuf_free_bulk(batch.mbuf, batch.count);
      batch.count = batch.segments = 0;
      return;
    }
  }
  forwarder_.away->look(rte_rdtsc());
  compute_here(batch);
  forwarder_.away->resume(rte_rdtsc());
  forwarded_counters_.batches_rescued.add(1);
  forwarded_counters_.frames_rescued.add(batch.count);
}

void Lane::forward(Batch& batch) {
  std::uint32_t timed = 0;  // first segment whose time is not recorded yet
  std::uint32_t waiting = 0;
  for (std::uint32_t s = 0; s < batch.segments; ++s) {
    const Segment& segment = batch.segment[s];
    const bool last = s + 1 == batch.segments;
    const std::uint32_t end = last ? batch.count : batch.segment[s + 1].first;
    emitter_.set_rx_port(segment.rx_port);
    if (forwards_at_length_) forwarder_.away->look(rte_rdtsc());
    parts_.function->forward(batch, segment.first, end - segment.first, emitter_);
    if (forwards_at_length_) forwarder_.away->resume(rte_rdtsc());
    waiting += end - segment.first;
    if (!last && waiting < Emitter::tx_burst_size) {
      continue;
    }
    emitter_.flush_all();
    const std::uint64_t now = rte_rdtsc();
    forwarder_.away->look(now);
    std::uint32_t next = end;
    for (std::uint32_t t = s + 1; t-- > timed;) {
      const std::uint32_t frames = next - batch.segment[t].first;
      next = batch.segment[t].first;
      count_latency(batch.segment[t], frames, now);
    }
    forwarded_counters_.measured.add(waiting);
    timed = s + 1;
    waiting = 0;
  }
}

void Lane::count_latency(const Segment& segment, std::uint32_t frames, std::uint64_t now) {
  const std::uint64_t latency = now - segment.rx_tsc;
  latency_.add(latency, frames);
  if (latency > parts_.deadline_tsc) [[unlikely]] {
    forwarded_counters_.misses.add(frames);
    // The longer of the two absences, not their sum: they may have been at the same time.
    const std::uint64_t away = std::max(AwayWatch::since(segment.lane_away, away_ticks(now)),
                                        AwayWatch::since(segment.worker_away, parts_.clock->away.ticks_until(now)));
    if (latency - std::min(away, latency) <= parts_.deadline_tsc) {
      forwarded_counters_.misses_away.add(frames);
    }
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
    forwarded_counters_.injected_frames.add(count);
    emitter_.set_rx_port(parts_.port);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t length = rte_pktmbuf_pkt_len(frames[i]);
      const auto* const data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
      const packet::Reason reason = parts_.function->judge_from_host(parts_.index, data, length);
      if (reason != packet::no_reason) [[unlikely]] {
        emitter_.drop(frames[i], reason);
      } else {
        emitter_.transmit(frames[i], length, parts_.port);
      }
    }
    emitter_.flush_all();
  }
  return count;
}

}  // namespace sluice::engine
