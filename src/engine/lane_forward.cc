// The lane's forwarder, on one thread: what the device has done leaves in ticket order, what it has not done is
// computed here, and what the host injected is sent.
#include <rte_cycles.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "engine/lane.h"

namespace sluice::engine {
namespace {
// Of what comes while a batch is forwarded.
constexpr std::uint32_t least_backlog = 4 * burst_size;
}  // namespace

unsigned Lane::forward_round() {
  if (has_aside_) [[unlikely]]
    look_aside();
  unsigned work = forward_done();
  if (emitter_.departing_count() != 0) [[unlikely]] {
    while (const unsigned more = forward_later()) work += more;  // the rows of its batch come first
    work += send_departing();
  }
  if (parts_.drains_injected) {
    work += send_injected();
  }
  if (work == 0 && keeps_time_ && !forwarder_holds_frames()) {
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
  emitter_.set_rx_port(parts_.port);
  parts_.pipeline->idle(parts_.index, now, emitter_);
  emitter_.flush_all();
  forwarder_.stalls->resume(rte_rdtsc());
}

// With a device one batch of the first pass, else all that is done: a core that computes has nothing to collect
// meanwhile. What the passes behind it take counts for the frames of the first: all of them were there.
unsigned Lane::forward_done() {
  std::uint64_t began = rte_rdtsc();
  bounded_ticks_ = 0;
  unsigned batches = forward_later();  // frees batches for what the first pass hands on
  do {
    Batch* const batch = next_done(0);
    const std::uint32_t frames = batch == nullptr ? 0 : batch->count;
    if (batch == nullptr || !forward_or_hand_on(*batch)) {
      if (batches != 0) later_ticks_ += rte_rdtsc() - began;
      break;
    }
    batches += 1 + forward_later();
    const std::uint64_t now = rte_rdtsc();
    const std::uint64_t took = now - began + std::exchange(later_ticks_, 0);
    const std::uint64_t bounded = std::min(std::exchange(bounded_ticks_, 0), took);
    pace_.forwarding().took(took - bounded, frames);
    pace_.forwarding_in_all().took(took, frames);
    if (forwarder_.stalls == collector_.stalls) {
      backlog_frames_ = std::max(least_backlog, frames / 2);
      backlog_until_ = now + bounded;
    }
    began = now;
  } while (!device_computes());
  return batches;
}

// False: nothing was done, because the next pass has no capacity.
bool Lane::forward_or_hand_on(Batch& batch) {
  if (batch.pass + 1 < rings_.size()) return forward_into_next(batch);
  forward(batch);
  bounded_ticks_ += parts_.pipeline->bounded_ticks(batch);
  release(batch);
  return true;
}

// The oldest batch of the pass, if its results are there.
Batch* Lane::next_done(unsigned pass) {
  Batch* const batch = rings_[pass]->oldest();
  if (batch == nullptr) return nullptr;
  const BatchState state = batch->state.load(std::memory_order_acquire);
  if (state == BatchState::failed || state == BatchState::lost) {
    rescue(*batch);
  } else if (state != BatchState::done) {
    return batch->to_device && is_given_up(*batch) ? take_back(*batch) : nullptr;
  } else if (std::exchange(batch->to_device, false) && parts_.mode == Mode::full) {
    parts_.pipeline->compute_rest(*batch);
  }
  return batch;
}

// What is done of the passes behind the first, the last ones first.
unsigned Lane::forward_later() {
  unsigned batches = 0;
  for (unsigned pass = static_cast<unsigned>(rings_.size()); --pass != 0;) {
    for (Batch* batch = next_done(pass); batch != nullptr && forward_or_hand_on(*batch); batch = next_done(pass)) {
      ++batches;
    }
  }
  return batches;
}

// The last of its frames has left.
void Lane::release(Batch& batch) {
  admission_.took(rte_rdtsc() - batch.began_tsc);
  forwarded_.add(batch.count);
  rings_[batch.pass]->release();
}

// What elements decide of these rows, those that are for departures included.
void Lane::apply(Batch& batch, Span span) {
  if (applies_at_length_) forwarder_.stalls->look(rte_rdtsc());
  if (!has_departures_ || !parts_.pipeline->decides(batch.pass)) [[likely]] {
    parts_.pipeline->apply(batch, span, emitter_);
  } else {
    // A segment is of one burst.
    std::array<std::uint16_t, most_classified> came_by;
    for (Span part{span.first, 0}; part.first < span.end(); part = {part.end(), 0}) {
      part.count = std::min<std::uint32_t>(span.end() - part.first, most_classified);
      for (std::uint32_t i = 0; i < part.count; ++i) came_by[i] = batch.row[part.first + i].port;
      parts_.pipeline->apply(batch, part, emitter_);
      Emitter::write_rows(batch);
      parts_.pipeline->choose(batch, part, came_by.data(), emitter_);
    }
  }
  if (applies_at_length_) forwarder_.stalls->resume(rte_rdtsc());
}

void Lane::copy_row(const Batch& batch, std::uint32_t i, Batch& next) {
  const std::uint32_t at = next.count++;
  next.mbuf[at] = batch.mbuf[i];
  next.frame[at] = batch.frame[i];
  next.length[at] = batch.length[i];
  next.row[at] = batch.row[i];
  if (next.row[at].fate == Fate::later) next.row[at].fate = Fate::goes_on;
  next.bytes += batch.length[i];
  next.max_length = std::max<std::uint32_t>(next.max_length, batch.length[i]);
}

// Rows [before, count) are a burst, as `segment` says.
void Lane::begin_segment(Batch& next, std::uint32_t before, const Segment& segment) {
  if (next.count == before) return;
  next.segment[next.segments] = segment;
  next.segment[next.segments++].first = before;
  parts_.pipeline->classify(next, {before, next.count - before});
}

// The same for departures, where elements may add rows.
void Lane::begin_departing(Batch& next, std::uint32_t before, const Segment& segment) {
  std::uint32_t known = next.count;
  begin_segment(next, before, segment);
  while (next.count != known) {
    const Span added{known, next.count - known};
    known = next.count;
    departing_.add(added.count);
    forwarded_counters_.emitted_frames.add(added.count);
    parts_.pipeline->classify(next, added);
  }
}

// Applies the batch; what still goes on is a batch of the next pass. False: there is no capacity for that one yet.
bool Lane::forward_into_next(Batch& batch) {
  BatchRing& ring = *rings_[batch.pass + 1];
  Batch* const next = ring.open();
  if (next == nullptr) return false;
  const bool decides = parts_.pipeline->decides(batch.pass);
  std::uint32_t decided = 0;
  for (std::uint32_t s = 0; s < batch.segments; ++s) {
    const Segment& segment = batch.segment[s];
    const std::uint32_t end = s + 1 == batch.segments ? batch.count : batch.segment[s + 1].first;
    const Span span{segment.first, end - segment.first};
    const std::uint32_t before = next->count;
    emitter_.set_rx_port(segment.rx_port, segment.rx_tsc);
    apply(batch, span);
    emitter_.set_rows_depart(has_departures_ && !decides);
    emitter_.settle_decided(
        batch, span, [&](Fate fate) { return decides ? fate == Fate::later : fate <= Fate::later; },
        [&](std::uint32_t i) { copy_row(batch, i, *next); });
    emitter_.set_rows_depart(false);
    const std::uint32_t handed_on = next->count - before;
    next->expected = batch.count - end;
    if (next->departs) {
      begin_departing(*next, before, segment);
    } else {
      begin_segment(*next, before, segment);
    }
    emitter_.flush_all();  // what was decided, and what elements have made besides
    if (const std::uint32_t left = span.count - handed_on; left != 0) {
      decided += left;
      count_latency(segment, left, rte_rdtsc());
    }
  }
  bounded_ticks_ += parts_.pipeline->bounded_ticks(batch);
  forwarded_counters_.measured.add(decided);
  forwarded_.add(decided);
  next->began_tsc = batch.began_tsc;
  next->is_probe = batch.is_probe;
  if (next->count != 0) {
    hand_on(*next);
  } else {
    admission_.took(rte_rdtsc() - batch.began_tsc);
  }
  rings_[batch.pass]->release();
  return true;
}

// A batch of a pass behind the first waits for no time point.
void Lane::hand_on(Batch& batch) {
  batch.sealed_tsc = rte_rdtsc();
  const std::uint32_t frames = batch.count;
  if (device_computes() && !batch.is_probe) {
    forwarded_counters_.batches_gpu.add(1);
    forwarded_counters_.frames_gpu.add(frames);
    give_to_device(batch, *rings_[batch.pass], forwarder_);
    if (batch.to_device) clock().bell.ring();
    return;
  }
  rings_[batch.pass]->seal(BatchState::in_flight);
  forwarder_.stalls->look(batch.sealed_tsc);
  const std::uint64_t spared = compute_here(batch, forwarder_);
  const std::uint64_t now = rte_rdtsc();
  forwarder_.stalls->resume(now);
  if (batch.is_probe && choice_) choice_->probed_later(now - batch.sealed_tsc + spared, frames);
  forwarded_counters_.batches_cpu.add(1);
  forwarded_counters_.frames_cpu.add(frames);
}

// The device did not do it; the frames are still here.
void Lane::rescue(Batch& batch) {
  if (batch.state.load(std::memory_order_relaxed) == BatchState::lost) {
    parts_.pipeline->lost(batch);
  }
  forwarder_.stalls->look(rte_rdtsc());
  compute_here(batch, forwarder_);
  forwarder_.stalls->resume(rte_rdtsc());
  const std::uint64_t waited = rte_rdtsc() - batch.sealed_tsc;
  if (waited > forwarded_counters_.longest_rescue.get()) forwarded_counters_.longest_rescue.set(waited);
  std::atomic<std::uint64_t>& longest = clocks_[batch.device]->longest_rescue;
  for (std::uint64_t was = longest.load(); waited > was && !longest.compare_exchange_weak(was, waited);) {
  }
  // Not those that lost() has dropped.
  std::uint32_t rescued = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) rescued += batch.row[i].fate != Fate::dropped ? 1 : 0;
  forwarded_counters_.batches_rescued.add(1);
  forwarded_counters_.frames_rescued.add(rescued);
}

// Whether its device answers for the batch no more. A worker that hangs in a call of its driver cannot say so itself:
// its lanes see that it has not looked at its clock. Until then it is asked rarely, for the sake of its cache line.
bool Lane::is_given_up(const Batch& batch) {
  Clock& clock = *clocks_[batch.device];
  if (clock.takes_back.load(std::memory_order_acquire)) return true;
  // Its worker may not look for this lane's batches any more.
  const bool is_lost = clock.loss.how() != Loss::none, pauses = clock.pauses.load(std::memory_order_relaxed);
  if (is_lost || pauses || batch.device != device()) {
    if (batch.state.load(std::memory_order_relaxed) == BatchState::sealed) return true;
    if (is_lost || pauses) return false;
  }
  const std::uint64_t limit = clock.longest_call.load(std::memory_order_relaxed) / 2;
  const std::uint64_t now = rte_rdtsc();
  if (limit == 0 || now < batch.sealed_tsc + limit) return false;
  if (const std::uint64_t looked = clock.looked_tsc.get(); looked != worker_looked_) {
    worker_looked_ = looked;
    worker_silence_.heard(now, limit / steps_of_silence);
    return false;
  }
  if (worker_silence_.look(now) <= limit) return false;
  clock.loss.report(Loss::hung);
  clock.device_up.store(false);
  clock.takes_back.store(true);
  return true;
}

// What the worker had not taken yet is done here as it is. What is on the device is put aside, with the frames that the
// device may still write to; null: there is no spare, and the batch waits.
Batch* Lane::take_back(Batch& batch) {
  if (BatchRing::take_sealed(batch)) {
    batch.state.store(BatchState::failed, std::memory_order_relaxed);
    rescue(batch);
    return &batch;
  }
  if (!clocks_[batch.device]->takes_back.load(std::memory_order_acquire)) return nullptr;  // the worker was faster
  BatchRing& ring = *rings_[batch.pass];
  Batch* const fresh = ring.put_aside(batch);
  if (fresh == nullptr) return nullptr;
  const std::uint32_t aside = ring.frames_aside();
  parts_.pipeline->lost(*fresh, true);
  for (std::uint32_t i = 0; i < fresh->count; ++i) {
    if (fresh->row[i].fate == Fate::dropped && fresh->row[i].reason == device_lost) ring.hold(batch, fresh->mbuf[i]);
  }
  clocks_[batch.device]->frames_aside.fetch_add(ring.frames_aside() - aside);
  has_aside_ = true;
  fresh->state.store(BatchState::failed, std::memory_order_relaxed);
  rescue(*fresh);
  return fresh;
}

void Lane::look_aside() {
  std::uint64_t frames = 0;
  has_aside_ = false;
  for (const auto& ring : rings_) {
    ring->look_aside(
        [this](const Batch& batch, std::uint32_t held) { clocks_[batch.device]->frames_aside.fetch_sub(held); });
    frames += ring->frames_aside();
    has_aside_ |= ring->batches_aside() != 0;
  }
  forwarded_counters_.frames_aside.set(frames);
}

void Lane::forward(Batch& batch) {
  std::uint32_t timed = 0;  // first segment whose time is not recorded yet
  std::uint32_t waiting = 0;
  for (std::uint32_t s = 0; s < batch.segments; ++s) {
    const Segment& segment = batch.segment[s];
    const bool last = s + 1 == batch.segments;
    const std::uint32_t end = last ? batch.count : batch.segment[s + 1].first;
    const Span span{segment.first, end - segment.first};
    emitter_.set_rx_port(segment.rx_port, batch.segment[timed].rx_tsc);
    apply(batch, span);
    emitter_.settle(batch, span);
    waiting += span.count;
    if (!last && waiting < Emitter::tx_burst_size) {
      continue;
    }
    emitter_.flush_all();
    const std::uint64_t now = rte_rdtsc();
    forwarder_.stalls->look(now);
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
    // The longer of the two stalls, not their sum: they may have been at the same time.
    const std::uint64_t stalled = std::max(StallWatch::since(segment.lane_stalls, stall_ticks(now)),
                                           StallWatch::since(segment.worker_stalls, clock().stalls.ticks_until(now)));
    if (latency - std::min(stalled, latency) <= parts_.deadline_tsc) {
      forwarded_counters_.misses_stalled.add(frames);
    }
  }
}

unsigned Lane::send_injected() {
  rte_ring* ring = parts_.host_ports[parts_.port].from_host;
  if (ring == nullptr) {
    return 0;
  }
  if (has_departures_) return send_injected_by_departures(ring);
  rte_mbuf* frames[burst_size];
  const unsigned count = rte_ring_sc_dequeue_burst(ring, reinterpret_cast<void**>(frames), burst_size, nullptr);
  if (count != 0) {
    forwarded_counters_.injected_frames.add(count);
    emitter_.set_rx_port(parts_.port);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t length = rte_pktmbuf_pkt_len(frames[i]);
      const auto* const data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
      const packet::Reason reason = parts_.pipeline->judge_from_host(parts_.index, data, length);
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

// Frames that are rows of no batch yet, as departures look at them.
struct Lane::Loose {
  rte_mbuf* frame[burst_size];
  std::uint64_t address[burst_size];
  std::uint16_t length[burst_size], came_by[burst_size];
  Row row[burst_size];

  const std::uint8_t* set(unsigned i, rte_mbuf* one, std::uint16_t port) {
    const auto* const data = rte_pktmbuf_mtod(one, const std::uint8_t*);
    frame[i] = one;
    address[i] = reinterpret_cast<std::uint64_t>(data);
    length[i] = static_cast<std::uint16_t>(rte_pktmbuf_pkt_len(one));
    came_by[i] = no_port;
    row[i] = {Fate::sent, packet::no_reason, port};
    return data;
  }
};

// Those that are chosen are a batch of the pass of departures, `next`; all others leave.
void Lane::choose_loose(Loose& loose, unsigned count, Batch& next) {
  Batch burst;
  burst.frame = loose.address;
  burst.length = loose.length;
  burst.mbuf = loose.frame;
  burst.row = loose.row;
  burst.capacity = burst.count = count;
  burst.lane = parts_.index;
  burst.pass = next.pass - 1;
  parts_.pipeline->choose(burst, {0, count}, loose.came_by, emitter_);
  const std::uint64_t now = rte_rdtsc();
  emitter_.settle_decided(
      burst, {0, count}, [](Fate fate) { return fate == Fate::later; },
      [&](std::uint32_t i) { copy_row(burst, i, next); });
  emitter_.flush_all();
  if (next.count == 0) return;
  departing_.add(next.count);
  next.expected = 0;
  begin_departing(next, 0, {0, parts_.port, now, stall_ticks(now), clock().stalls.ticks_until(now)});
  next.began_tsc = now;
  hand_on(next);
}

// The same where they may leave by the pass of departures. While its batches are all in use the frames wait.
unsigned Lane::send_injected_by_departures(rte_ring* ring) {
  Batch* const next = rings_.back()->open();
  if (next == nullptr) return 0;
  rte_mbuf* frames[burst_size];
  const unsigned count = rte_ring_sc_dequeue_burst(ring, reinterpret_cast<void**>(frames), burst_size, nullptr);
  if (count == 0) return 0;
  forwarded_counters_.injected_frames.add(count);
  emitter_.set_rx_port(parts_.port);
  Loose loose;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint8_t* const data = loose.set(i, frames[i], parts_.port);
    const packet::Reason reason = parts_.pipeline->judge_from_host(parts_.index, data, loose.length[i]);
    if (reason != packet::no_reason) [[unlikely]]
      loose.row[i] = {Fate::dropped, reason, parts_.port};
  }
  choose_loose(loose, count, *next);
  return count;
}

// What elements have made, and what was decided in front of the last element. Likewise.
unsigned Lane::send_departing() {
  Batch* const next = rings_.back()->open();
  if (next == nullptr) return 0;
  const std::span<const Emitter::Departing> all = emitter_.departing();
  const auto count = static_cast<unsigned>(std::min<std::size_t>(all.size(), burst_size));
  emitter_.set_rx_port(parts_.port);
  Loose loose;
  for (unsigned i = 0; i < count; ++i) loose.set(i, all[i].frame, all[i].port);
  emitter_.took_departing(count);
  choose_loose(loose, count, *next);
  return count;
}

}  // namespace sluice::engine
