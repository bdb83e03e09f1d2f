// A lane: one receive queue, its collector, its forwarder and its batches. Lanes share nothing on the fast path.
//
// poll() does a little of everything and never waits: seal at a time point, receive and collect a burst, compute when
// this core is the device, forward what is done in ticket order, send what the host injected. One thread calls it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/batch_ring.h"
#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"
#include "engine/function.h"
#include "engine/histogram.h"
#include "engine/options.h"
#include "port/port.h"

namespace sluice::engine {

inline const packet::Reason measured_only =
    packet::register_reason("measured_only", "collector-only mode measures receiving and sends nothing");
inline const packet::Reason stopped = packet::register_reason("stopped", "still in a queue when the gateway stopped");

// Frames that a lane computes itself at a time, so that the CPU device works in cache.
inline constexpr std::uint32_t inline_batch = 256;

// How far the worker has come; written by the worker, read by lanes.
struct alignas(64) Clock {
  std::atomic<std::uint64_t> epoch{0};  // number of the last time point
  std::atomic<bool> device_up{false};   // a GPU takes batches
};

class Lane {
 public:
  struct Parts {
    std::uint32_t index;
    std::uint16_t port;
    std::uint16_t queue;
    std::vector<port::Port*> ports;
    std::uint16_t tx_queue;
    const HostPort* host_ports;
    bool drains_injected;  // this lane sends what the host injects for its port
    Function* function;
    const Clock* clock;
    Mode mode;
    std::uint32_t cpu_below;  // frames per cycle
    std::uint64_t deadline_tsc;
  };
  Lane(Parts parts, std::unique_ptr<BatchRing> ring);

  // Returns how many frames and batches it moved; 0: nothing to do.
  unsigned poll();
  // No more receiving; what is in flight goes on until drained() (any thread may ask).
  void stop_receiving() { receiving_.store(false, std::memory_order_relaxed); }
  bool drained() const { return drained_.load(std::memory_order_acquire); }
  bool holds_frames() const { return ring_->in_use() != 0 || open_count_ != 0; }
  // Frames collected and not yet forwarded; exact while the lane is quiet.
  std::uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  BatchRing& ring() { return *ring_; }
  const Parts& parts() const { return parts_; }
  const LaneCounters& counters() const { return counters_; }
  const Histogram& latency() const { return latency_; }
  // Frees what a stopped lane still holds, each counted as "stopped".
  void abandon();

 private:
  bool device_computes();
  void time_point();
  unsigned receive();
  void hand_over(Batch& batch);
  void compute_here(Batch& batch);
  unsigned forward_done();
  void forward(Batch& batch);
  unsigned send_injected();

  Parts parts_;
  std::unique_ptr<BatchRing> ring_;
  LaneCounters counters_;
  Histogram latency_;
  Burst burst_;
  Emitter emitter_;
  std::atomic<bool> receiving_{true};
  std::atomic<bool> drained_{false};
  std::atomic<std::uint64_t> in_flight_{0};
  std::uint64_t seen_epoch_ = 0;
  std::uint64_t cycle_frames_ = 0;
  std::uint32_t open_count_ = 0;
  bool inline_now_ = true;
};

}  // namespace sluice::engine
