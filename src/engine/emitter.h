// Carries out what elements have decided: transmit bursts per port, drops by reason, punts to the host. One per lane
// thread.
//
// settle() takes the rows of a batch in order. So the frames of a batch leave each port in order. A frame that an
// element makes leaves right behind the row that it was made for. A burst that the port does not take is offered again
// a bounded number of times; what remains is dropped as "tx_full". A port that is offered each burst once
// (TxHook::offers_once()) comes last: no other port waits for it.
//
// In a chain with departures (traits.h, Departure) these see all traffic before it leaves: rows, what the host sends,
// frames that elements make, and rows that an element in front of the last one sends or answers. The latter two leave
// behind the rows of their batch then, except for rows that a device still has. Copies leave as they are (Made).
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
inline const packet::Reason departures_full = packet::register_reason(
    "departures_full",
    "elements made more frames than wait at most to be shown to the element that works on what leaves");

// What a frame is that an element makes.
enum class Made : std::uint8_t {
  traffic,   // a packet like any other: where a policy of ipsec protects it, it is sealed
  as_it_is,  // it leaves as it is, and nothing looks at it but hooks of its port, such as a copy for a monitor
};

class Emitter {
 public:
  static constexpr unsigned tx_burst_size = 64;

  // `tap`: null: nobody ever looks at frames; `lane`: the lane's index, for it.
  Emitter(std::vector<port::Port*> ports, std::uint16_t tx_queue, LaneCounters& counters, const HostPort* host_ports,
          FrameTap* tap = nullptr, std::uint32_t lane = 0);

  // The lane's side: carries out what elements have decided of these rows. A row that still goes on is dropped as
  // `undecided`.
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
  // The same for a pass that is not the last: `goes_on(fate)` says which rows are not settled; live(i) is called for
  // them.
  template <typename GoesOn, typename Live>
  void settle_decided(const Batch& batch, Span span, const GoesOn& goes_on, const Live& live) {
    const bool has_made = !made_.empty();
    if (has_made) [[unlikely]]
      order_made();
    write_rows(batch);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const Row row = batch.row[i];
      if (goes_on(row.fate)) {
        live(i);
      } else if (rows_depart_ && (row.fate == Fate::sent || row.fate == Fate::answered)) [[unlikely]] {
        if (row.fate == Fate::answered) note_answer(batch, i, row.reason);
        depart(batch.mbuf[i], row.port);
      } else if (row.fate == Fate::sent) {
        transmit(batch.mbuf[i], batch.length[i], row.port);
      } else {
        settle_rest(batch, i, row);
      }
      if (has_made) [[unlikely]]
        transmit_made(i);
    }
  }
  // `length`: bytes of the frame, which the caller has in cache; the mbuf's may not be.
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
  // When the oldest frame that is applied or about to leave was received, by the time-stamp counter; 0: no frame has a
  // deadline.
  std::uint64_t oldest_tsc() const { return oldest_tsc_; }
  // Whether the lane may send another answer of its own, such as an ICMP error; call it once for each answer. A lane
  // sends at most `answers_per_second`, and `answer_burst` at once after a pause.
  static constexpr std::uint64_t answers_per_second = 1000, answer_burst = 100;
  bool may_answer() { return answers_.take(rte_rdtsc()); }
  // Sends a frame that the element has made for row `i` of the span that is applied. The frame leaves right behind that
  // row, or in its place if the row does not leave. `made`: complete, in one segment, with its length set; the call
  // takes it over, and cannot fail. A row may have several frames, which leave in the order of the calls.
  // Bound: for one span, all elements of the pass together have room for most_made frames, copies (clone()) included:
  // eight for each row of a full burst. No frame beyond that is lost, but the call allocates memory, which the packet
  // path must not do.
  static constexpr std::size_t most_made = std::size_t{8} * tx_burst_size;
  // `what`: whether departures see it, where there are any. There at most `most_made` wait at a time; those beyond are
  // dropped as `departures_full`.
  void emit(std::uint32_t i, rte_mbuf* made, std::uint16_t port, Made what = Made::traffic) {
    counters_.emitted_frames.add(1);
    add_made(i, made, port, what);
  }
  // The same for no row, as from Timer::idle(). The frame leaves now, or as soon as departures have seen it, and there
  // is no bound but theirs.
  void emit(rte_mbuf* made, std::uint16_t port, Made what = Made::traffic) {
    counters_.emitted_frames.add(1);
    if (has_departures_ && what == Made::traffic) [[unlikely]]
      return depart(made, port);
    transmit(made, rte_pktmbuf_pkt_len(made), port);
  }
  // Sends an answer to row `i` out of the port that the row came in by. The row itself goes on. `reason`: what is
  // answered.
  void answer_besides(const Batch& batch, std::uint32_t i, rte_mbuf* made, packet::Reason reason) {
    counters_.answers[reason].add(1);
    emit(i, made, batch.row[i].port);
  }
  // Counts an answer: the element has changed the frame of row `i` into it, and the row goes on.
  void note_answer(const Batch& batch, std::uint32_t i, packet::Reason reason) {
    counters_.answers[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->answered(batch.mbuf[i], reason);
  }
  // Sends a copy of row `i` as it is now by `port`, right behind the row, cut to `most` bytes (0: whole). It leaves as
  // it is (Made::as_it_is). False: there is no buffer for it; the caller counts that.
  bool clone(const Batch& batch, std::uint32_t i, std::uint16_t port, std::uint32_t most = 0);
  // The same for a frame in one segment that is no row (TxHook::leave()). The copy leaves now.
  bool clone(const rte_mbuf* frame, std::uint16_t port, std::uint32_t most = 0);

  // Whether the port is for copies: each burst is offered to it once (TxHook::offers_once()).
  bool is_for_copies(std::uint16_t port) const { return once(port) != nullptr; }

  // Writes down for each row what SendRun has kept for all of a span.
  static void write_rows(Batch& batch) {
    write_rows(static_cast<const Batch&>(batch));
    batch.sent_together = {};
  }

  // The lane's side.
  // `at_length`: work between two transmissions may take long by itself (Shape::applies_at_length).
  void set_stalls(StallWatch* stalls, bool at_length) {
    stalls_ = stalls;
    at_length_ = at_length;
  }
  // `oldest_tsc`: when the oldest frame that has not left yet was received; 0: no frame has a deadline.
  void set_rx_port(std::uint16_t port, std::uint64_t oldest_tsc = 0) {
    rx_port_ = port;
    oldest_tsc_ = oldest_tsc;
    tapped_ = tap_ != nullptr && tap_->on();
  }
  void set_departures(bool there) {
    has_departures_ = there;
    if (there) departing_.reserve(most_made);
  }
  // Of the rows that are settled next: an element in front of the last one has decided, and departures have not seen
  // it.
  void set_rows_depart(bool depart) { rows_depart_ = depart; }
  // What departures have not seen yet: in order, and how many. The number is exact for the forwarding thread, and any
  // thread may ask.
  struct Departing {
    rte_mbuf* frame;
    std::uint16_t port;
  };
  std::span<const Departing> departing() const { return departing_; }
  std::uint64_t departing_count() const { return departing_count_.get(); }
  // The first `count` of them are the caller's.
  void took_departing(std::size_t count);
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
  struct Besides {
    std::uint32_t behind;  // row
    std::uint32_t order;   // of the calls
    std::uint16_t port;
    bool departs;
    rte_mbuf* frame;
  };
  void add_made(std::uint32_t i, rte_mbuf* made, std::uint16_t port, Made what) {
    made_.push_back(
        {i, static_cast<std::uint32_t>(made_.size()), port, has_departures_ && what == Made::traffic, made});
  }
  void depart(rte_mbuf* frame, std::uint16_t port);
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
  // For the rows that are settled next, and how many of them are on their way.
  std::vector<Besides> made_;
  std::size_t made_sent_ = 0;
  bool has_departures_ = false, rows_depart_ = false;
  std::vector<Departing> departing_;
  Counter departing_count_;
  unsigned dropped_count_ = 0;
  rte_mbuf* dropped_[tx_burst_size];
};

}  // namespace sluice::engine
