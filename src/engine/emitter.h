// Where forwarded frames go: transmit bursts per port, drops by reason, punts to the host. One per lane thread.
//
// Frames of one batch leave in the order of the calls, per port. A transmit burst that the port does not take is
// offered again a bounded number of times; what remains is dropped as "tx_full", never silently.
#pragma once

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

#include "engine/away.h"
#include "engine/batch.h"
#include "engine/counters.h"
#include "engine/frame_tap.h"
#include "engine/host_port.h"
#include "engine/token_bucket.h"
#include "port/port.h"

namespace sluice::engine {

inline const packet::Reason tx_full = packet::register_reason("tx_full", "the transmit queue stayed full");

class Emitter {
 public:
  static constexpr unsigned tx_burst_size = 64;

  // `tap`, `lane`: as of Burst.
  Emitter(std::vector<port::Port*> ports, std::uint16_t tx_queue, LaneCounters& counters, const HostPort* host_ports,
          FrameTap* tap = nullptr, std::uint32_t lane = 0);

  void transmit(const Batch& batch, std::uint32_t i, std::uint16_t port) {
    transmit(batch.mbuf[i], batch.length[i], port);
  }
  // `length`: bytes of the frame. Taken from the caller, who has it in cache, rather than from the mbuf.
  void transmit(rte_mbuf* frame, std::uint32_t length, std::uint16_t port) {
    Queue& queue = queues_[port];
    queue.length[queue.count] = length;
    queue.frames[queue.count++] = frame;
    if (queue.count == tx_burst_size) {
      flush(port);
    }
  }
  void drop(const Batch& batch, std::uint32_t i, packet::Reason reason) { drop(batch.mbuf[i], reason); }
  void drop(rte_mbuf* frame, packet::Reason reason) {
    counters_.drops[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->dropped(lane_, rx_port_, frame, reason);
    dropped_[dropped_count_++] = frame;
    if (dropped_count_ == tx_burst_size) {
      free_dropped();
    }
  }
  // To the kernel through the twin of the port that the frame came from; as Burst::punt.
  void punt(const Batch& batch, std::uint32_t i, bool exceptional = false,
            packet::Reason otherwise = packet::no_reason) {
    FrameTap::Claim claim{};
    if (tapped_) [[unlikely]]
      claim = tap_->claim(batch.mbuf[i]);
    const packet::Reason reason = host_ports_[rx_port_].punt(batch.mbuf[i], exceptional);
    if (tapped_) [[unlikely]]
      tap_->punted(claim, batch.mbuf[i], reason == packet::no_reason);
    if (reason != packet::no_reason) {
      drop(batch, i, otherwise != packet::no_reason ? otherwise : reason);
    } else {
      counters_.punted_frames.add(1);
    }
  }
  std::uint16_t rx_port() const { return rx_port_; }
  // Whether the lane may answer another frame by itself now; once for each answer. What a lane sends of its own is held
  // to `answers_per_second`, with `answer_burst` at once after a pause.
  static constexpr std::uint64_t answers_per_second = 1000, answer_burst = 100;
  bool may_answer() { return answers_.take(rte_rdtsc()); }
  // Sends frame `i`, which the function has made its answer (`length` bytes, by the mbuf too), back out of the port
  // that it came from. `reason`: what it answers.
  void answer(const Batch& batch, std::uint32_t i, std::uint32_t length, packet::Reason reason) {
    note_answer(batch, i, reason);
    transmit(batch.mbuf[i], length, rx_port_);
  }
  // The same for an answer that is no frame of a batch: one more than was received.
  void answer_besides(rte_mbuf* made, packet::Reason reason) {
    counters_.injected_frames.add(1);
    counters_.answers[reason].add(1);
    transmit(made, rte_pktmbuf_pkt_len(made), rx_port_);
  }
  // An answer takes the way of the frame whose place it has.
  void note_answer(const Batch& batch, std::uint32_t i, packet::Reason reason) {
    counters_.answers[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->answered(batch.mbuf[i], reason);
  }

  // The lane's side.
  // `at_length`: what is done between two transmissions may take long by itself.
  void set_away(AwayWatch* away, bool at_length) {
    away_ = away;
    at_length_ = at_length;
  }
  void set_rx_port(std::uint16_t port) {
    rx_port_ = port;
    tapped_ = tap_ != nullptr && tap_->on();
  }
  void flush_all();

 private:
  struct Queue {
    unsigned count = 0;
    rte_mbuf* frames[tx_burst_size];
    std::uint32_t length[tx_burst_size];
  };
  void flush(std::uint16_t port);
  void free_dropped();

  std::vector<port::Port*> ports_;
  std::vector<Queue> queues_;
  AwayWatch* away_ = nullptr;  // of the thread that forwards
  bool at_length_ = false;
  LaneCounters& counters_;
  const HostPort* host_ports_;
  FrameTap* const tap_;
  const std::uint32_t lane_;
  bool tapped_ = false;  // somebody looks, as of set_rx_port()
  TokenBucket answers_;
  std::uint16_t tx_queue_;
  std::uint16_t rx_port_ = 0;
  unsigned dropped_count_ = 0;
  rte_mbuf* dropped_[tx_burst_size];
};

}  // namespace sluice::engine
