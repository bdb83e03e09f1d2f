#include "engine/emitter.h"

#include <rte_pause.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace sluice::engine {
namespace {
// How often a full transmit queue is offered the rest again: a few microseconds, far below any deadline.
constexpr unsigned tx_attempts = 64;
}  // namespace

Emitter::Emitter(std::vector<port::Port*> ports, std::uint16_t tx_queue, LaneCounters& counters,
                 const HostPort* host_ports, FrameTap* tap, std::uint32_t lane)
    : ports_(std::move(ports)),
      queues_(ports_.size()),
      counters_(counters),
      host_ports_(host_ports),
      tap_(tap),
      lane_(lane),
      answers_(rte_get_tsc_hz() / answers_per_second, answer_burst),
      tx_queue_(tx_queue) {
  made_.reserve(most_made);
}

// Elements of a pass have made theirs one after the other, each in the order of rows. A stable sort would allocate.
[[gnu::noinline]] void Emitter::order_made() {
  std::ranges::sort(made_, {}, [](const Besides& made) { return std::pair(made.behind, made.order); });
}

[[gnu::noinline]] void Emitter::transmit_made(std::uint32_t i) {
  for (; made_sent_ < made_.size() && made_[made_sent_].behind <= i; ++made_sent_) {
    const Besides& made = made_[made_sent_];
    if (made.departs) {
      depart(made.frame, made.port);
    } else {
      transmit(made.frame, rte_pktmbuf_pkt_len(made.frame), made.port);
    }
  }
  if (made_sent_ < made_.size()) return;
  made_.clear();
  made_sent_ = 0;
}

[[gnu::noinline]] void Emitter::depart(rte_mbuf* frame, std::uint16_t port) {
  if (departing_.size() == most_made) return drop(frame, departures_full);
  departing_.push_back({frame, port});
  departing_count_.set(departing_.size());
}

void Emitter::took_departing(std::size_t count) {
  departing_.erase(departing_.begin(), departing_.begin() + static_cast<std::ptrdiff_t>(count));
  departing_count_.set(departing_.size());
}

namespace {
std::uint64_t bytes_of(const Batch& batch, Span span) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) bytes += batch.length[i];
  return bytes;
}
}  // namespace

void Emitter::write_rows(const Batch& batch) {
  const Span span = batch.sent_together;
  std::fill_n(batch.row + span.first, span.count, Row{Fate::sent, packet::no_reason, batch.sent_port});
}

// A whole burst goes from the batch to the port.
void Emitter::transmit_together(const Batch& batch) {
  const Span span = batch.sent_together;
  const std::uint16_t port = batch.sent_port;
  Queue& queue = queues_[port];
  if (queue.count == 0 && span.count == tx_burst_size && queue.hooks.empty()) [[likely]] {
    send(port, &batch.mbuf[span.first], span.count, bytes_of(batch, span));
    return;
  }
  for (std::uint32_t i = span.first; i < span.end();) {
    const std::uint32_t count = std::min(span.end() - i, tx_burst_size - queue.count);
    std::copy_n(&batch.mbuf[i], count, &queue.frames[queue.count]);
    queue.bytes += bytes_of(batch, {i, count});
    queue.count += count;
    i += count;
    if (queue.count == tx_burst_size) flush(port);
  }
}

[[gnu::noinline]] void Emitter::settle_rest(const Batch& batch, std::uint32_t i, Row row) {
  rte_mbuf* const frame = batch.mbuf[i];
  switch (row.fate) {
    case Fate::own:
    case Fate::to_host:
      punt(frame, row);
      break;
    case Fate::answered:
      note_answer(batch, i, row.reason);
      transmit(frame, batch.length[i], row.port);
      break;
    case Fate::absorbed:
      rte_pktmbuf_free(frame);
      [[fallthrough]];
    case Fate::consumed:
      counters_.consumed_frames.add(1);
      break;
    case Fate::dropped:
      drop(frame, row.reason);
      break;
    case Fate::sent:
    case Fate::goes_on:
    case Fate::later:
      drop(frame, undecided);
      break;
  }
}

// To the kernel, through the twin of the port that the frame came from.
void Emitter::punt(rte_mbuf* frame, Row row) {
  FrameTap::Claim claim{};
  if (tapped_) [[unlikely]]
    claim = tap_->claim(frame);
  const packet::Reason reason = host_ports_[row.port].punt(frame, row.fate == Fate::to_host);
  if (tapped_) [[unlikely]]
    tap_->punted(claim, frame, reason == packet::no_reason);
  if (reason == packet::no_reason) {
    counters_.punted_frames.add(1);
  } else {
    drop(frame, row.reason != packet::no_reason ? row.reason : reason);
  }
}

namespace {
// Null: there is no buffer for it.
rte_mbuf* copy_of(const rte_mbuf* frame, std::uint32_t length) {
  // A copy begins behind the buffer's headroom, of which the frame may have taken a part.
  const std::uint32_t taken = frame->data_off < RTE_PKTMBUF_HEADROOM ? RTE_PKTMBUF_HEADROOM - frame->data_off : 0U;
  const std::uint32_t front = std::min(taken, length - 1);
  rte_mbuf* const copy = rte_pktmbuf_copy(frame, frame->pool, front, length - front);
  if (copy == nullptr) return nullptr;
  std::memcpy(rte_pktmbuf_prepend(copy, static_cast<std::uint16_t>(front)), rte_pktmbuf_mtod(frame, const char*),
              front);
  return copy;
}

std::uint32_t cut(std::uint32_t length, std::uint32_t most) {
  return most == 0 ? length : std::min(most, length);
}
}  // namespace

bool Emitter::clone(const Batch& batch, std::uint32_t i, std::uint16_t port, std::uint32_t most) {
  rte_mbuf* const copy = copy_of(batch.mbuf[i], cut(batch.length[i], most));
  if (copy == nullptr) return false;
  counters_.cloned_frames.add(1);
  add_made(i, copy, port, Made::as_it_is);
  return true;
}

bool Emitter::clone(const rte_mbuf* frame, std::uint16_t port, std::uint32_t most) {
  const std::uint32_t length = cut(rte_pktmbuf_pkt_len(frame), most);
  rte_mbuf* const copy = copy_of(frame, length);
  if (copy == nullptr) return false;
  counters_.cloned_frames.add(1);
  transmit(copy, length, port);
  return true;
}

void Emitter::set_hooks(std::span<TxHook* const> hooks) {
  hooked_.clear();
  for (std::uint16_t port = 0; port < queues_.size(); ++port) {
    Queue& queue = queues_[port];
    queue.hooks.clear();
    for (auto hook = hooks.rbegin(); hook != hooks.rend(); ++hook) {
      if ((*hook)->hooks(port)) queue.hooks.push_back(*hook);
    }
    if (!queue.hooks.empty()) hooked_.push_back(port);
  }
}

void Emitter::flush(std::uint16_t port) {
  Queue& queue = queues_[port];
  if (!queue.hooks.empty()) [[unlikely]]
    return flush_through_hooks(port);
  send(port, queue.frames, std::exchange(queue.count, 0), std::exchange(queue.bytes, 0));
}

// A hook may transmit by any port, this one too.
void Emitter::flush_through_hooks(std::uint16_t port) {
  Queue& queue = queues_[port];
  std::array<rte_mbuf*, tx_burst_size> frames;
  unsigned count = std::exchange(queue.count, 0);
  queue.bytes = 0;
  std::copy_n(queue.frames, count, frames.begin());
  for (TxHook* const hook : queue.hooks) count = hook->leave(lane_, port, frames.data(), count, *this);
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) bytes += rte_pktmbuf_pkt_len(frames[i]);
  if (count != 0) send(port, frames.data(), count, bytes);
}

// Who says that this port is offered each burst once; null: it is waited for.
TxHook* Emitter::once(std::uint16_t port) const {
  for (TxHook* const hook : queues_[port].hooks) {
    if (hook->offers_once(port)) [[unlikely]]
      return hook;
  }
  return nullptr;
}

void Emitter::send(std::uint16_t port, rte_mbuf** frames, unsigned total, std::uint64_t bytes) {
  TxHook* const hook = once(port);
  const unsigned attempts = hook != nullptr ? 1 : tx_attempts;
  unsigned sent = 0;
  std::optional<FrameTap::Sending> tapping;
  if (tapped_) [[unlikely]]
    tapping.emplace().begin(*tap_, lane_, port, {frames, total});
  stalls_->look(rte_rdtsc(), at_length_);
  for (unsigned attempt = 0; sent < total && attempt < attempts; ++attempt) {
    const unsigned accepted =
        ports_[port]->tx_burst(tx_queue_, frames + sent, static_cast<std::uint16_t>(total - sent));
    sent += accepted;
    if (accepted == 0) {
      rte_pause();
    }
  }
  if (tapping) [[unlikely]]
    tapping->end(sent);
  stalls_->resume(rte_rdtsc());  // what the driver takes is no stall
  if (sent < total) [[unlikely]] {
    const packet::Reason reason = hook != nullptr ? hook->not_taken(lane_, port, total - sent) : packet::no_reason;
    for (unsigned i = sent; i < total; ++i) {
      bytes -= rte_pktmbuf_pkt_len(frames[i]);
      drop(frames[i], reason != packet::no_reason ? reason : tx_full);
    }
  }
  counters_.tx_frames[port].add(sent);
  counters_.tx_bytes[port].add(bytes);
}

void Emitter::free_dropped() {
  rte_pktmbuf_free_bulk(dropped_, dropped_count_);
  dropped_count_ = 0;
}

// Ports behind hooks first, because what leaves by them may leave by others in the end, which may have hooks, too.
// Those that are offered once last: no other frame waits for them.
void Emitter::flush_all() {
  bool again = !hooked_.empty();
  for (unsigned round = 0; again && round < queues_.size(); ++round) {
    again = false;
    for (const std::uint16_t port : hooked_) {
      if (queues_[port].count == 0 || once(port) != nullptr) continue;
      again = true;
      flush(port);
    }
  }
  for (std::uint16_t port = 0; port < queues_.size(); ++port) {
    if (queues_[port].count != 0 && once(port) == nullptr) flush(port);
  }
  bool more = false;
  for (const std::uint16_t port : hooked_) {
    if (queues_[port].count == 0) continue;
    flush(port);
    more = true;
  }
  for (std::uint16_t port = 0; more && port < queues_.size(); ++port) {
    if (queues_[port].count != 0) flush(port);  // what a hook has made of those
  }
  if (dropped_count_ != 0) {
    free_dropped();
  }
}

}  // namespace sluice::engine
