// The lane as a whole and its collector: receiving, judging, collecting, sealing, computing. lane_forward.cc has the
// forwarder.
#include "engine/lane.h"

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::engine {

Lane::Lane(Parts parts, std::vector<std::unique_ptr<BatchRing>> rings, FlowInbox inbox)
    : parts_(std::move(parts)),
      clocks_(parts_.clocks.empty() ? std::vector{parts_.clock} : parts_.clocks),
      home_(static_cast<std::uint32_t>(std::ranges::find(clocks_, parts_.clock) - clocks_.begin())),
      device_(home_),
      rings_(std::move(rings)),
      ring_(rings_.front().get()),
      inbox_(std::move(inbox)),
      emitter_(parts_.ports, parts_.tx_queue, forwarded_counters_, parts_.host_ports, parts_.tap, parts_.index),
      admission_(parts_.refuses_overdue ? Admission(parts_.deadline_tsc, parts_.cycle_tsc) : Admission()),
      load_(parts_.computes_below),
      pace_(parts_.deadline_tsc, inline_batch) {
  clock().lanes.fetch_add(1);
  if (parts_.turns != nullptr) choice_.emplace(parts_.choice, *parts_.turns);
}

void Lane::set_threads(const Side& collector, const Side& forwarder) {
  collector_ = collector;
  forwarder_ = forwarder;
  applies_at_length_ = parts_.pipeline->applies_at_length();
  keeps_time_ = parts_.pipeline->keeps_time();
  has_departures_ = parts_.pipeline->has_departures();
  emitter_.set_stalls(forwarder.stalls, applies_at_length_);
  emitter_.set_hooks(parts_.pipeline->all<TxHook>());
  emitter_.set_departures(has_departures_);
}

void Lane::spread_over(const std::vector<Lane*>& siblings) {
  std::vector<FlowSpread::Sibling> list(1);
  for (Lane* sibling : siblings) {
    list.push_back({&sibling->inbox_, sibling->collector_.bell});
    sibling->queue_owner_ = this;
  }
  spread_ = std::make_unique<FlowSpread>(std::move(list));
  spread_->show_drops_to(parts_.tap, parts_.index, parts_.port);
}

Lane::Wake Lane::wake() const {
  if (parts_.shares_queue || !parts_.ports[parts_.port]->receives()) {
    return Wake::bell;
  }
  return parts_.ports[parts_.port]->wait_fd(parts_.queue) >= 0 ? Wake::descriptor : Wake::look;
}

unsigned Lane::collect_round() {
  if (const std::uint64_t passed = time_points(); passed != seen_time_points_) {
    time_point(passed - std::exchange(seen_time_points_, passed));
  }
  if (seal_is_due_ && !device_is_behind()) {
    hand_over(*ring_->open());
  }
  return receive();
}

bool Lane::has_backlog() const {
  return !took_all_ && device_computes() && (backlog_frames_ != 0 || rte_rdtsc() < backlog_until_);
}

// Of its own work. The forwarder's counts where it is the same thread.
auto Lane::thread() const {
  return [this] {
    const bool is_one = forwarder_.stalls == collector_.stalls;
    return DeviceChoice::Thread{collector_.stalls->ticks(),
                                collected_counters_.busy.get() + (is_one ? forwarded_counters_.busy.get() : 0)};
  };
}

void Lane::time_point(std::uint64_t cycles) {
  if (choice_) {
    choice_->look(rte_rdtsc(), thread());
  } else {
    load_.time_point(cycles, cost_here());
  }
  choose_device();
  seal_is_due_ = open_count_ != 0;  // collect_round() does it
}

// Of those that are up, the one with the fewest lanes. What the lost one has goes to this core.
void Lane::find_device() {
  const auto is_up = [](const Clock* one) { return one->device_up.load() && one->loss.how() == Loss::none; };
  const auto home = clocks_.begin() + home_;
  auto best = is_up(*home) ? home : clocks_.end();
  if (best != home && is_up(&clock())) return;
  for (auto one = clocks_.begin(); best != home && one != clocks_.end(); ++one) {
    if (is_up(*one) && (best == clocks_.end() || (*one)->lanes.load() < (*best)->lanes.load())) best = one;
  }
  if (best == clocks_.end()) return;
  clock().lanes.fetch_sub(1);
  (*best)->lanes.fetch_add(1);
  device_.store(static_cast<std::uint32_t>(best - clocks_.begin()));
}

// What is collected already is for where the lane was: elements have judged what that can do.
void Lane::choose_device() {
  const std::uint32_t before = device();
  if (clocks_.size() > 1 && (clock().loss.how() != Loss::none || before != home_)) [[unlikely]]
    find_device();
  const bool device_up = clock().device_up.load(std::memory_order_acquire);
  if (choice_) choice_->set_device_up(device_up);
  const bool on_device = device_up && (choice_ ? choice_->on_device() : !load_.low());
  const bool was_on_device = on_device_.load(std::memory_order_relaxed);
  if (on_device && open_count_ != 0 && (!was_on_device || device() != before)) [[unlikely]]
    ring_->open()->is_probe = true;
  if (was_on_device != on_device || device() != before) [[unlikely]] {
    on_device_.store(on_device, std::memory_order_relaxed);
    clock().bell.ring();  // from now on the worker's time points are waited for
  }
}

// What a frame takes this thread if it computes it, too.
std::uint64_t Lane::cost_here() const {
  const std::uint64_t forwarding = forwarder_.stalls == collector_.stalls ? pace_.forwarding_in_all().get() : 0;
  return pace_.computing().get() + forwarding;
}

bool Lane::device_computes() const {
  return on_device_.load(std::memory_order_relaxed) && clock().device_up.load(std::memory_order_relaxed);
}

// The oldest batch has been with the device for longer than the bound has cycles for: another one would only wait
// behind it. The open one goes on filling instead, because a larger one costs the device less per frame. One that is
// back and waits for the forwarder is no reason: the bound has a cycle for that.
bool Lane::device_is_behind() const {
  if (!device_computes()) {
    return false;
  }
  const Batch* const oldest = ring_->oldest();
  if (oldest == nullptr || rte_rdtsc() - oldest->sealed_tsc <= parts_.on_device_tsc) {
    return false;
  }
  const BatchState state = oldest->state.load(std::memory_order_relaxed);
  return state == BatchState::sealed || state == BatchState::in_flight;
}

// What was let in goes on as always, but this core computes it.
void Lane::probe(Batch& batch) {
  const std::uint32_t frames = batch.count;
  batch.is_probe = true;
  hand_over(batch);
  choice_->probed(rte_rdtsc(), computed_ticks_, frames);
}

void Lane::hand_over(Batch& batch) {
  open_count_ = 0;
  seal_is_due_ = false;
  batch.sealed_tsc = batch.began_tsc = rte_rdtsc();
  if (device_computes() && !batch.is_probe) {
    collected_counters_.batches_gpu.add(1);
    collected_counters_.frames_gpu.add(batch.count);
    give_to_device(batch, *ring_, collector_);
  } else {
    const std::uint32_t frames = batch.count;  // the forwarder may be done with the batch before this returns
    ring_->seal(BatchState::in_flight);
    collector_.stalls->look(batch.sealed_tsc);
    const std::uint64_t sealed = batch.sealed_tsc;
    const std::uint64_t spared = compute_here(batch, collector_);
    const std::uint64_t now = rte_rdtsc();
    collector_.stalls->resume(now);
    computed_ticks_ = now - sealed + spared;
    pace_.computing().took(computed_ticks_, frames);
    collected_counters_.batches_cpu.add(1);
    collected_counters_.frames_cpu.add(frames);
  }
  if (forwarder_.bell != collector_.bell) {
    forwarder_.bell->ring();
  }
}

// Or to this core, if nothing of it is for the device.
void Lane::give_to_device(Batch& batch, BatchRing& ring, const Side& side) {
  if (parts_.pipeline->needs_device(batch)) {
    batch.to_device = true;
    batch.device = device();
    ring.seal(BatchState::sealed);
    return;
  }
  ring.seal(BatchState::in_flight);
  side.stalls->look(batch.sealed_tsc);
  compute_here(batch, side);
  side.stalls->resume(rte_rdtsc());
  if (forwarder_.bell != collector_.bell) forwarder_.bell->ring();
}

// Returns the ticks that helpers have spared the thread. What it plans by, it plans as if it were alone: helpers may be
// other lanes' by the next batch.
std::uint64_t Lane::compute_here(Batch& batch, const Side& side) {
  std::uint64_t spared = 0;
  if (parts_.mode == Mode::zero_load) {
    parts_.pipeline->null_result(batch);
  } else if (side.share != nullptr) {
    spared = parts_.pipeline->compute_shared(batch, *side.share);
  } else {
    parts_.pipeline->compute(batch, {0, batch.count});
  }
  batch.to_device = false;
  batch.state.store(BatchState::done, std::memory_order_release);
  return spared;
}

// How many frames the open batch may take at once.
unsigned Lane::burst_capacity() const {
  const std::uint32_t most = pace_.next();
  if (device_computes()) {
    const bool is_probe = choice_ && open_count_ == 0 && choice_->probe_due(rte_rdtsc());
    return is_probe ? std::min<unsigned>(burst_size, most) : burst_size;
  }
  return open_count_ + InlinePace::least < most ? std::min<unsigned>(burst_size, most - open_count_)
                                                : InlinePace::least;
}

void Lane::took(unsigned count, unsigned most) {
  took_all_ = count < most;
  backlog_frames_ -= std::min(backlog_frames_, count);
}

// From the queue, which may be shared, or from what the lane that owns the queue has put aside for this one.
unsigned Lane::receive_burst(Batch& batch, unsigned most, std::uint64_t& now) {
  burst_ = batch.mbuf + batch.count;
  if (parts_.shares_queue) {
    const unsigned count = inbox_.take(burst_, most, now);
    took(count, most);
    describe(batch, count);
    return count;
  }
  unsigned count = parts_.ports[parts_.port]->rx_burst(parts_.queue, burst_, most);
  took(count, most);
  if (count != 0) {
    now = rte_rdtsc();
    collector_.stalls->resume(now);
    now -= parts_.ports[parts_.port]->waited(parts_.queue);
    if (describe(batch, count)) [[unlikely]] {
      count = linearize(count);
      describe(batch, count);
    }
    if (spread_) {
      count = spread_->spread(burst_, count, now, collected_counters_);
      describe(batch, count);
    }
  }
  return count;
}

// Writes down where the burst's frames are and how long, and fetches their headers; whether one came in pieces.
bool Lane::describe(Batch& batch, unsigned count) {
  const rte_mbuf* const* const frames = burst_;
  std::uint64_t* const address = batch.frame + batch.count;
  std::uint16_t* const lengths = batch.length + batch.count;
  std::uint32_t bytes = 0;
  std::uint16_t longest = 0;
  unsigned pieces = 0;
  for (unsigned i = 0; i < count; ++i) {
    const rte_mbuf* const frame = frames[i];
    const void* const data = rte_pktmbuf_mtod(frame, const void*);
    rte_prefetch0(data);
    const std::uint16_t length = rte_pktmbuf_data_len(frame);
    address[i] = reinterpret_cast<std::uint64_t>(data);
    lengths[i] = length;
    longest = std::max(longest, length);
    bytes += length;
    pieces |= frame->nb_segs - 1U;
  }
  burst_bytes_ = bytes;
  burst_longest_ = longest;
  return pieces != 0;
}

// Elements and devices see a frame as one piece of memory; a driver may deliver it as a chain of buffers. Returns how
// many frames are left.
unsigned Lane::linearize(unsigned count) {
  rte_mbuf** frames = burst_;
  unsigned kept = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (frames[i]->nb_segs != 1 && rte_pktmbuf_linearize(frames[i]) != 0) [[unlikely]] {
      collected_counters_.rx_frames.add(1);
      collected_counters_.rx_bytes.add(rte_pktmbuf_pkt_len(frames[i]));
      collected_counters_.drops[in_pieces].add(1);
      show_drops(&frames[i], 1, in_pieces);
      rte_pktmbuf_free(frames[i]);
    } else {
      frames[kept++] = frames[i];
    }
  }
  return kept;
}

// Whether a burst of that time of arrival can leave before its deadline. A port that does not know it says "just now",
// and its frames are never refused, not even when the thread was stalled between receiving and judging them.
bool Lane::in_time(std::uint64_t rx_tsc) const {
  const port::Port& port = *parts_.ports[parts_.port];
  std::uint64_t age = port.waited(parts_.queue);
  if (parts_.shares_queue) {
    const std::uint64_t now = rte_rdtsc();
    age = now > rx_tsc ? now - rx_tsc : 0;  // another core's counter said when
  }
  return admission_.in_time(age, device_computes());
}

void Lane::show_drops(rte_mbuf* const* frames, unsigned count, packet::Reason reason) {
  if (!tapped()) [[likely]]
    return;
  for (unsigned i = 0; i < count; ++i) parts_.tap->dropped(parts_.index, parts_.port, frames[i], reason);
}

void Lane::refuse(unsigned count) {
  show_drops(burst_, count, overdue);
  collected_counters_.rx_frames.add(count);
  collected_counters_.rx_bytes.add(burst_bytes_);
  collected_counters_.drops[overdue].add(count);
  rte_pktmbuf_free_bulk(burst_, count);
}

// What describe() has written becomes rows.
void Lane::append(Batch& batch, unsigned count) const {
  std::fill_n(batch.row + batch.count, count, Row{.port = parts_.port});
  batch.count += count;
  batch.bytes += burst_bytes_;
  batch.max_length = std::max<std::uint32_t>(batch.max_length, burst_longest_);
}

void Lane::collect(Batch& batch, unsigned count, std::uint64_t now) {
  collected_counters_.rx_frames.add(count);
  collected_counters_.rx_bytes.add(burst_bytes_);
  const std::uint32_t before = batch.count;
  append(batch, count);
  parts_.pipeline->classify(batch, {before, count});
  batch.segment[batch.segments++] = {before, parts_.port, now, stall_ticks(now), clock().stalls.ticks_until(now)};
  collected_.add(count);
  if (parts_.mode == Mode::collector_only) {
    count_without_sending(batch);
  }
  open_count_ = batch.count;
}

// What an element has taken over is the element's to free.
bool Lane::count_if_consumed(const Batch& batch, std::uint32_t i) {
  if (!batch.is_consumed(i)) return false;
  if (batch.row[i].fate == Fate::absorbed) rte_pktmbuf_free(batch.mbuf[i]);
  collected_counters_.consumed_frames.add(1);
  return true;
}

void Lane::count_without_sending(Batch& batch) {
  std::uint32_t ours = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (count_if_consumed(batch, i)) continue;
    const packet::Reason reason = batch.row[i].fate == Fate::dropped ? batch.row[i].reason : measured_only;
    collected_counters_.drops[reason].add(1);
    show_drops(&batch.mbuf[i], 1, reason);
    batch.mbuf[ours++] = batch.mbuf[i];
  }
  rte_pktmbuf_free_bulk(batch.mbuf, ours);
  forwarded_.add(batch.count);
  batch.count = batch.segments = 0;
  batch.bytes = 0;
}

unsigned Lane::receive() {
  // A lane that shares a queue goes on until its owner puts nothing more aside.
  const bool receiving = parts_.shares_queue
                             ? receiving_.load(std::memory_order_relaxed) || !queue_owner_->drained() || !inbox_.empty()
                             : receiving_.load(std::memory_order_relaxed);
  if (!receiving) {
    if (open_count_ != 0) {
      hand_over(*ring_->open());
    }
    drained_.store(!collector_holds_frames() && !forwarder_holds_frames(), std::memory_order_release);
    took_all_ = true;
    return 0;
  }
  Batch* batch = ring_->open();
  if (batch == nullptr) {
    collected_counters_.receive_stalls.add(1);
    took_all_ = true;  // that it can
    if (choice_) {
      choice_->blocked(rte_rdtsc(), thread());
      choose_device();
    }
    return 0;
  }
  std::uint64_t now = 0;
  const unsigned most = burst_capacity();
  const unsigned count = receive_burst(*batch, most, now);
  std::uint32_t load = 0, let_in = 0;
  if (tapped()) [[unlikely]]
    parts_.tap->received(parts_.index, parts_.port, {burst_, count}, now);
  if (count == 0) {
    collected_counters_.empty_polls.add(1);
  } else if (!in_time(now)) [[unlikely]] {
    refuse(count);
    load = count;
    if (choice_) choice_->refused();
  } else {
    collect(*batch, count, now);
    load = let_in = count;
  }
  if (choice_) {
    // By when the lane looks, not by when frames came: a backlog, as behind a stall, is carried as fast as can be.
    choice_->received(let_in, took_all_, let_in == 0 ? 0 : rte_rdtsc(), thread());
  } else {
    load_.received(load, took_all_, now, cost_here());
  }
  choose_device();
  if (open_count_ != 0) {
    const bool full = batch->capacity - batch->count < burst_size;
    if (device_computes()) {
      if (batch->is_probe) [[unlikely]] {
        hand_over(*batch);
      } else if (choice_ && let_in != 0 && batch->count == let_in && choice_->probe_due(now)) [[unlikely]] {
        probe(*batch);
      } else if (full) {
        collected_counters_.sealed_full.add(1);
        hand_over(*batch);
      }
    } else if (full || count < most || batch->count >= pace_.next()) {
      hand_over(*batch);
      pace_.begin();
    }
  }
  return count;
}

std::uint64_t Lane::stall_ticks(std::uint64_t until) const {
  const std::uint64_t collector = collector_.stalls->ticks_until(until);
  return forwarder_.stalls == collector_.stalls ? collector : collector + forwarder_.stalls->ticks_until(until);
}

void Lane::abandon() {
  look_aside();
  const auto give_up = [this](rte_mbuf** frames, unsigned count) {
    collected_counters_.drops[stopped].add(count);
    show_drops(frames, count, stopped);
    rte_pktmbuf_free_bulk(frames, count);
  };
  const auto give_up_rows = [&](const Batch& batch, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!count_if_consumed(batch, i)) give_up(&batch.mbuf[i], 1);
    }
  };
  for (const auto& ring : rings_) {
    for (Batch* batch = ring->oldest(); batch != nullptr; batch = ring->oldest()) {
      left_on_device_ |= batch->to_device && batch->state.load() == BatchState::in_flight;
      give_up_rows(*batch, batch->count);
      ring->release();
    }
  }
  if (open_count_ != 0) {
    Batch* batch = ring_->open();
    give_up_rows(*batch, open_count_);
    batch->count = 0;
    open_count_ = 0;
  }
  for (const Emitter::Departing& one : emitter_.departing()) {
    rte_mbuf* frame = one.frame;
    give_up(&frame, 1);
  }
  emitter_.took_departing(emitter_.departing().size());
  std::uint64_t rx_tsc = 0;
  std::array<rte_mbuf*, burst_size> waiting;
  while (inbox_ && !inbox_.empty()) {
    const unsigned count = inbox_.take(waiting.data(), burst_size, rx_tsc);
    collected_counters_.rx_frames.add(count);
    for (unsigned i = 0; i < count; ++i) {
      collected_counters_.rx_bytes.add(rte_pktmbuf_data_len(waiting[i]));
    }
    give_up(waiting.data(), count);
  }
  forwarded_.set(collected_.get() + departing_.get());
}

}  // namespace sluice::engine
