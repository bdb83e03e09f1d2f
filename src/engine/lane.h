// A lane: one receive queue (or its share of one, flow_spread.h), its collector, its forwarder and its batches. Lanes
// share nothing on the fast path.
//
// Rounds that never wait, called in turn by one thread or each by its own:
//   collect_round()  seal at a time point, receive and collect a burst, compute when this core is the device
//   forward_round()  forward the oldest batch, if it is done, and send what the host injected
//
// On one thread a round forwards one batch, whatever else is done: a time point waits for that one alone (bound.h).
// What came meanwhile is more than a burst, and ages unseen in the receive queue: so the thread collects this backlog
// first (has_backlog()), until nothing is left there, to four bursts at most, or half as many frames as left, and for
// as long as work that has a bound took (traits.h, BoundedWork). Half, so that of what is more than the lane carries
// not more and more is under way; four bursts, so that batches do not become small. A lane that computes itself
// forwards all that is done, and has no backlog: what it collects is done at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/admission.h"
#include "engine/batch_ring.h"
#include "engine/bell.h"
#include "engine/burst.h"
#include "engine/clock.h"
#include "engine/compute_share.h"
#include "engine/device_choice.h"
#include "engine/emitter.h"
#include "engine/flow_spread.h"
#include "engine/frame_tap.h"
#include "engine/histogram.h"
#include "engine/inline_pace.h"
#include "engine/load.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "engine/silence.h"
#include "engine/stall.h"
#include "port/port.h"

namespace sluice::engine {

inline const packet::Reason measured_only = packet::register_reason(
    "measured_only", "collector-only mode measures receiving and sends nothing", packet::DroppedBy::purpose);
inline const packet::Reason in_pieces =
    packet::register_reason("in_pieces", "the frame came in several buffers and does not fit into one");
inline const packet::Reason overdue =
    packet::register_reason("overdue", "the frame had waited so long that it could not have left before its deadline");
inline const packet::Reason stopped =
    packet::register_reason("stopped", "still in a queue when the gateway stopped", packet::DroppedBy::purpose);

// The most frames that a lane computes itself at a time (inline_pace.h).
inline constexpr std::uint32_t inline_batch = 256;

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
    Pipeline* pipeline;
    Clock* clock;  // of the lane's device, at first
    Mode mode;
    LoadWatch::Limits computes_below;
    std::uint64_t deadline_tsc;
    std::uint64_t cycle_tsc;      // 0: none
    std::uint64_t on_device_tsc;  // that a batch may spend on the device (bound.h, Timing::on_device())
    bool refuses_overdue;         // admission.h
    bool shares_queue;        // receives from inbox() instead of the queue: `queue` belongs to another lane of the port
    FrameTap* tap = nullptr;  // null: nobody ever looks at frames
    // Of all devices, `clock` among them, by index; empty: that one alone. When its device is lost, the lane's batches
    // go to another one that is up, until its own is again.
    std::vector<Clock*> clocks = {};
    // The lane may choose between its core and its device (device_choice.h), in the place of computes_below. `turns`:
    // of all lanes; null: it may not.
    DeviceChoice::Limits choice = {};
    ChoiceTurns* turns = nullptr;
  };
  // `rings`: one for each pass of the pipeline.
  Lane(Parts parts, std::vector<std::unique_ptr<BatchRing>> rings, FlowInbox inbox = {});

  // Before the lane runs. The threads that call its rounds; the same one when forwarder and collector share a core.
  struct Side {
    StallWatch* stalls;
    Bell* bell;
    ComputeShare* share = nullptr;  // with helpers; null: the thread computes alone
  };
  void set_threads(const Side& collector, const Side& forwarder);
  // What this lane's queue delivers goes to these lanes too, which share the queue.
  void spread_over(const std::vector<Lane*>& siblings);

  // The worker's: so many of its time points are over, of which the collector's next round hears.
  void pass_time_points(std::uint64_t count) { time_points_.fetch_add(count, std::memory_order_release); }
  std::uint64_t time_points() const { return time_points_.load(std::memory_order_acquire); }
  // Return how many frames and batches they moved; 0: nothing to do.
  unsigned collect_round();
  unsigned forward_round();
  // Whether another collect_round() comes before the next forward_round(), on a thread that calls both.
  bool has_backlog() const;
  // What the last round took, when it moved something: the round's own thread counts it.
  void spent_collecting(std::uint64_t ticks) { collected_counters_.busy.add(ticks); }
  void spent_forwarding(std::uint64_t ticks) { forwarded_counters_.busy.add(ticks); }
  // No more receiving; what is in flight goes on until drained() (any thread may ask).
  void stop_receiving() { receiving_.store(false, std::memory_order_relaxed); }
  bool drained() const { return drained_.load(std::memory_order_acquire); }
  // Frames that wait for a time point: from the collector's thread.
  bool collector_holds_frames() const { return open_count_ != 0; }
  // Frames that wait for a device or the forwarder. Any thread.
  bool forwarder_holds_frames() const {
    for (const auto& ring : rings_) {
      if (ring->in_use() != 0) return true;
    }
    return emitter_.departing_count() != 0;
  }
  // Index of the device that serves the lane. Any thread; the collector changes it.
  std::uint32_t device() const { return device_.load(std::memory_order_relaxed); }
  // Whether the lane's batches go to the device at present, so that it needs time points. Any thread.
  bool on_device() const { return on_device_.load(std::memory_order_relaxed); }
  // Whether it may choose, and what it has chosen. Any thread.
  bool chooses() const { return choice_.has_value(); }
  DeviceChoice::View choice() const { return choice_->view(); }
  // What wakes a sleeping collector: a file descriptor of the port (>= 0), the bell, or nothing but a look.
  enum class Wake { descriptor, bell, look };
  Wake wake() const;
  // Frames collected and not yet forwarded; exact while the lane is quiet.
  std::uint64_t in_flight() const {
    const std::uint64_t out = forwarded_.get();
    const std::uint64_t in = collected_.get() + departing_.get() + emitter_.departing_count();
    return in > out ? in - out : 0;
  }

  BatchRing& ring(unsigned pass = 0) { return *rings_[pass]; }
  const Parts& parts() const { return parts_; }
  // One writer each; what happened is their sum.
  const LaneCounters& collector_counters() const { return collected_counters_; }
  const LaneCounters& forwarder_counters() const { return forwarded_counters_; }
  const Histogram& latency() const { return latency_; }
  // Frees what a stopped lane still holds, each counted as "stopped".
  void abandon();
  // Whether a device may still write to batches, or to frames, of a lane that has stopped.
  bool has_aside() const {
    for (const auto& ring : rings_) {
      if (ring->batches_aside() != 0) return true;
    }
    return left_on_device_;
  }

 private:
  Clock& clock() const { return *clocks_[device()]; }
  void find_device();
  bool device_computes() const;
  std::uint64_t cost_here() const;
  void time_point(std::uint64_t cycles);
  void choose_device();
  auto thread() const;
  void probe(Batch& batch);
  unsigned receive();
  void took(unsigned count, unsigned most);
  unsigned burst_capacity() const;
  unsigned receive_burst(Batch& batch, unsigned most, std::uint64_t& now);
  void collect(Batch& batch, unsigned count, std::uint64_t now);
  bool count_if_consumed(const Batch& batch, std::uint32_t i);
  void count_without_sending(Batch& batch);
  bool in_time(std::uint64_t rx_tsc) const;
  bool tapped() const { return parts_.tap != nullptr && parts_.tap->on(); }
  void show_drops(rte_mbuf* const* frames, unsigned count, packet::Reason reason);
  void refuse(unsigned count);
  bool describe(Batch& batch, unsigned count);
  unsigned linearize(unsigned count);
  void append(Batch& batch, unsigned count) const;
  bool device_is_behind() const;
  void hand_over(Batch& batch);
  void hand_on(Batch& batch);
  void give_to_device(Batch& batch, BatchRing& ring, const Side& side);
  std::uint64_t compute_here(Batch& batch, const Side& side);
  void rescue(Batch& batch);
  Batch* take_back(Batch& batch);
  bool is_given_up(const Batch& batch);
  void look_aside();
  unsigned forward_done();
  Batch* next_done(unsigned pass);
  unsigned forward_later();
  bool forward_or_hand_on(Batch& batch);
  bool forward_into_next(Batch& batch);
  void forward(Batch& batch);
  void release(Batch& batch);
  void count_latency(const Segment& segment, std::uint32_t frames, std::uint64_t now);
  std::uint64_t stall_ticks(std::uint64_t until) const;
  unsigned send_injected();
  unsigned send_injected_by_departures(rte_ring* ring);
  unsigned send_departing();
  struct Loose;
  void choose_loose(Loose& loose, unsigned count, Batch& next);
  void apply(Batch& batch, Span span);
  static void copy_row(const Batch& batch, std::uint32_t i, Batch& next);
  void begin_segment(Batch& next, std::uint32_t before, const Segment& segment);
  void begin_departing(Batch& next, std::uint32_t before, const Segment& segment);
  void let_time_pass();

  Parts parts_;
  std::vector<Clock*> clocks_;
  const std::uint32_t home_;  // the device that it was dealt to
  std::atomic<std::uint32_t> device_;
  std::vector<std::unique_ptr<BatchRing>> rings_;
  BatchRing* const ring_;  // of the first pass
  FlowInbox inbox_;
  std::unique_ptr<FlowSpread> spread_;
  const Lane* queue_owner_ = nullptr;
  Side collector_{};
  Side forwarder_{};
  LaneCounters collected_counters_, forwarded_counters_;
  // Frames that entered batches, those of the host and of elements that entered the pass of departures, and frames that
  // left batches.
  Counter collected_, departing_, forwarded_;
  Histogram latency_;
  // What was received last: in the open batch, right behind its rows, and none of them until append().
  rte_mbuf** burst_ = nullptr;
  std::uint64_t burst_bytes_ = 0;
  std::uint16_t burst_longest_ = 0;
  bool applies_at_length_ = false, keeps_time_ = false, has_departures_ = false;  // of the pipeline
  // Between two calls of its idle(), and when the last one was; the forwarder's.
  const std::uint64_t idle_tsc_ = rte_get_tsc_hz() * least_idle.count() / 1000;
  std::uint64_t idled_tsc_ = 0;
  // The forwarder's, since a batch of the first pass was forwarded: work that has a bound (traits.h, BoundedWork), and
  // all that the passes behind it took.
  std::uint64_t bounded_ticks_ = 0, later_ticks_ = 0;
  // The forwarder's: whether the worker is heard of, while a batch is away for long.
  SilenceWatch worker_silence_;
  std::uint64_t worker_looked_ = 0;
  bool has_aside_ = false;       // batches of the lane are put aside
  bool left_on_device_ = false;  // when the lane was abandoned
  Emitter emitter_;
  Admission admission_;
  LoadWatch load_;
  std::optional<DeviceChoice> choice_;
  InlinePace pace_;
  alignas(64) std::atomic<std::uint64_t> time_points_{0};  // the worker's
  alignas(64) std::atomic<bool> receiving_{true};
  std::atomic<bool> drained_{false};
  std::atomic<bool> on_device_{false};
  std::uint64_t seen_time_points_ = 0;
  std::uint32_t open_count_ = 0;
  std::uint64_t computed_ticks_ = 0;  // by the collector, of its last batch
  bool seal_is_due_ = false;          // a time point has passed that did not seal
  bool took_all_ = true;              // the last burst left nothing in the queue
  // What forwarding on the collector's thread has left it to collect: so many frames, and until then.
  std::uint32_t backlog_frames_ = 0;
  std::uint64_t backlog_until_ = 0;
};

}  // namespace sluice::engine
