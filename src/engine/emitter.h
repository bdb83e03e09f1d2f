// Where frames go that have passed all elements: transmit bursts per port, drops by reason, punts to the host. One per
// lane thread.
//
// What elements have decided of a batch's rows happens in settle(), in the order of rows. Frames of one batch leave in
// that order, per port; frames that an element makes leave right behind the row that they were made for. A transmit
// burst that the port does not take is offered again a bounded number of times; what remains is dropped as "tx_full",
// never silently. A port that a hook offers once (traits.h, TxHook) is not waited for, and its burst leaves behind
// those of all others.
#pragma once

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/counters.h"
#include "engine/frame_tap.h"
#include "engine/host_port.h"
#include "engine/stall.h"
#include "engine/token_bucket.h"
#include "engine/traits.h"
#include "port/port.h"

namespace sluice::engine {

inline const packet::Reason undecided = packet::register_reason(
    "undecided", "no element of the chain has decided what becomes of it: a fault of the last one");
inline const packet::Reason tx_full = packet::register_reason("tx_full", "the transmit queue stayed full");

class Emitter {
 public:
  static constexpr unsigned tx_burst_size = 64;

  // `tap`: null: nobody ever looks at frames; `lane`: the lane's index, for it.
  Emitter(std::vector<port::Port*> ports, std::uint16_t tx_queue, LaneCounters& counters, const HostPort* host_ports,
          FrameTap* tap = nullptr, std::uint32_t lane = 0);

  // What became of these rows. A row that still goes on is dropped as `undecided`.
  void settle(const Batch& batch, Span span) {
    const bool has_made = !made_.empty();
    if (has_made) [[unlikely]]
      order_made();
    if (batch.sent_together.count != 0) {
      if (batch.sent_together == span && !has_made) [[likely]]
        return transmit_together(batch);
      write_rows(batch);
    }
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const Row row = batch.row[i];
      if (row.fate == Fate::sent) [[likely]] {
        transmit(batch.mbuf[i], batch.length[i], row.port);
      } else {
        settle_rest(batch, i, row);
      }
      if (has_made) [[unlikely]]
        transmit_made(i);
    }
  }
  // Likewise, of those that do not go on; `live(i)` is notified of each that does.
  template <typename Live>
  void settle_decided(const Batch& batch, Span span, const Live& live) {
    const bool has_made = !made_.empty();
    if (has_made) [[unlikely]]
      order_made();
    write_rows(batch);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const Row row = batch.row[i];
      if (row.fate <= Fate::to_host) {
        live(i);
      } else if (row.fate == Fate::sent) {
        transmit(batch.mbuf[i], batch.length[i], row.port);
      } else {
        settle_rest(batch, i, row);
      }
      if (has_made) [[unlikely]]
        transmit_made(i);
    }
  }
  // `length`: bytes of the frame. Taken from the caller, who has it in cache, rather than from the mbuf.
  void transmit(rte_mbuf* frame, std::uint32_t length, std::uint16_t port) {
    Queue& queue = queues_[port];
    queue.bytes += length;
    queue.frames[queue.count++] = frame;
    if (queue.count == tx_burst_size) {
      flush(port);
    }
  }
  void drop(rte_mbuf* frame, packet::Reason reason) {
    counters_.drops[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->dropped(lane_, rx_port_, frame, reason);
    dropped_[dropped_count_++] = frame;
    if (dropped_count_ == tx_burst_size) {
      free_dropped();
    }
  }
  // Since when the oldest frame waits that is applied or about to leave; 0: none has a deadline.
  std::uint64_t oldest_tsc() const { return oldest_tsc_; }
  // Whether the lane may answer another frame by itself now; once for each answer. What a lane sends of its own is held
  // to `answers_per_second`, with `answer_burst` at once after a pause.
  static constexpr std::uint64_t answers_per_second = 1000, answer_burst = 100;
  bool may_answer() { return answers_.take(rte_rdtsc()); }
  // A frame of the element's own, one more than was received. `made`: whole, in one piece, with its length. For a row
  // of the batch that is applied: it leaves right behind that row, or where the row was if that stays.
  void emit(std::uint32_t i, rte_mbuf* made, std::uint16_t port) {
    counters_.emitted_frames.add(1);
    made_.push_back({i, port, made});
  }
  // For none, as from Timer::idle(): it leaves now.
  void emit(rte_mbuf* made, std::uint16_t port) {
    counters_.emitted_frames.add(1);
    transmit(made, rte_pktmbuf_pkt_len(made), port);
  }
  // An answer to row i, which goes on, besides what becomes of the row; back out of the port that it came in by.
  // `reason`: what it answers.
  void answer_besides(const Batch& batch, std::uint32_t i, rte_mbuf* made, packet::Reason reason) {
    counters_.answers[reason].add(1);
    emit(i, made, batch.row[i].port);
  }
  // Row `i`, which goes on, has been made an answer that takes the frame's way.
  void note_answer(const Batch& batch, std::uint32_t i, packet::Reason reason) {
    counters_.answers[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->answered(batch.mbuf[i], reason);
  }
  // A copy of row `i` as it is now leaves by that port behind the row, cut to `most` bytes (0: whole). False: there was
  // no buffer for it, which the caller counts.
  bool clone(const Batch& batch, std::uint32_t i, std::uint16_t port, std::uint32_t most = 0);
  // The same of a frame in one piece that is no row (TxHook::leave()): the copy leaves now.
  bool clone(const rte_mbuf* frame, std::uint16_t port, std::uint32_t most = 0);

  // The lane's side.
  // `at_length`: what is done between two transmissions may take long by itself.
  void set_stalls(StallWatch* stalls, bool at_length) {
    stalls_ = stalls;
    at_length_ = at_length;
  }
  // `oldest_tsc`: since when the oldest frame waits that has not left yet; 0: none has a deadline.
  void set_rx_port(std::uint16_t port, std::uint64_t oldest_tsc = 0) {
    rx_port_ = port;
    oldest_tsc_ = oldest_tsc;
    tapped_ = tap_ != nullptr && tap_->on();
  }
  // In the order of the chain.
  void set_hooks(std::span<TxHook* const> hooks);
  void flush_all();

 private:
  struct Queue {
    unsigned count = 0;
    std::uint64_t bytes = 0;
    rte_mbuf* frames[tx_burst_size];
    std::vector<TxHook*> hooks;
  };
  struct Made {
    std::uint32_t behind;  // row
    std::uint16_t port;
    rte_mbuf* frame;
  };
  void transmit_together(const Batch& batch);
  static void write_rows(const Batch& batch);
  void settle_rest(const Batch& batch, std::uint32_t i, Row row);
  void order_made();
  void transmit_made(std::uint32_t i);
  void punt(rte_mbuf* frame, Row row);
  void flush(std::uint16_t port);
  void flush_through_hooks(std::uint16_t port);
  TxHook* once(std::uint16_t port) const;
  void send(std::uint16_t port, rte_mbuf** frames, unsigned total, std::uint64_t bytes);
  void free_dropped();

  std::vector<port::Port*> ports_;
  std::vector<Queue> queues_;
  std::vector<std::uint16_t> hooked_;  // ports with hooks
  StallWatch* stalls_ = nullptr;       // of the thread that forwards
  bool at_length_ = false;
  LaneCounters& counters_;
  const HostPort* host_ports_;
  FrameTap* const tap_;
  const std::uint32_t lane_;
  bool tapped_ = false;  // somebody looks, as of set_rx_port()
  TokenBucket answers_;
  std::uint16_t tx_queue_;
  std::uint16_t rx_port_ = 0;
  std::uint64_t oldest_tsc_ = 0;
  // For the rows that are settled next, and how many of them are on their way. Holds a burst's without growing.
  std::vector<Made> made_;
  std::size_t made_sent_ = 0;
  unsigned dropped_count_ = 0;
  rte_mbuf* dropped_[tx_burst_size];
};

}  // namespace sluice::engine
