// A batch: frames of one lane that were collected in one cycle, as a structure of arrays, with a ticket.
//
// States:  open (the lane's collector appends) -> sealed (handed to the worker, or computed by the lane itself)
//        -> in_flight (a device works on it) -> done | failed -> applied -> open again, with a new ticket.
// A lane has a ring of batches, indexed by ticket. It releases them in ticket order: always the oldest.
//
// Rows: each frame is a row. Its Row says what is to become of the frame. Elements decide by drop(), punt(), send() and
// so on. Decisions are carried out when the batch has passed all elements of the pass, in the order of rows. Until then
// elements may change a frame in place, and make it longer or shorter at its front and its end (batch_edit.h).
//
// Memory: device-visible arrays lie in pinned host memory, and the device uses the same pointers. Nothing is allocated
// after start. Frames are not copied: `frame[i]` points into the mbuf, whose memory is pinned, too.
//
// Thread-safety: one thread owns a batch at a time; `state` hands it over (release/acquire). Cost: appending a frame
// writes 8+8+2+4 bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "packet/reason.h"

struct rte_mbuf;

namespace sluice::engine {

// failed: the device did none of the work. lost: it may have done part of it.
enum class BatchState : std::uint32_t { free, open, sealed, in_flight, done, failed, lost };

// The frames of one receive burst. They share a receive time.
struct Segment {
  std::uint32_t first;    // index of the burst's first frame in the batch
  std::uint16_t rx_port;  // index of the port that the burst came from
  // The time-stamp counter right after the receive call, minus how long the first frame had waited by then, if the port
  // knows that (port.h, waited()). For a lane that shares a queue: after the receive call of the lane that owns the
  // queue.
  std::uint64_t rx_tsc;
  // How long the lane's threads and the worker had been stalled by then since the start (stall.h), in ticks.
  std::uint64_t lane_stalls, worker_stalls;
};

// Rows [first, first + count).
struct Span {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t end() const { return first + count; }
  bool operator==(const Span&) const = default;
};

// What is to become of a frame.
enum class Fate : std::uint8_t {
  goes_on,
  // For the kernel to forward, or to answer with an error, if all elements that follow let the frame go on. It goes to
  // the twin of its port. Such frames use at most half of the ring to the host (host_port.h).
  to_host,
  // It goes on in the next pass, and no other element looks at it in this one. Behind the last element: in the pass of
  // departures (traits.h, Departure).
  later,
  // Decided: no element looks at the row any more.
  own,  // to the host, by the twin: traffic of the host itself
  dropped,
  sent,      // by the row's port
  answered,  // the frame was changed into an answer to its sender, for `reason`; sent by the row's port
  consumed,  // the element has taken the frame over
  absorbed,  // counted as consumed; the engine frees the frame
};

struct Row {
  Fate fate = Fate::goes_on;
  // dropped: why. to_host: why the frame is dropped if the host cannot take it; no_reason: the cause itself, such as
  // punt_full. answered: what is answered.
  packet::Reason reason = packet::no_reason;
  // While the row goes on: the port that the frame came in by. Once it is sent: the port that it leaves by.
  std::uint16_t port = 0;
};
static_assert(sizeof(Row) == 4);

inline constexpr unsigned most_elements = 16;  // of a pipeline

struct Batch {
  // Device-visible, pinned, `capacity` elements each.
  std::uint64_t* frame = nullptr;   // address of the frame's first byte (the Ethernet header)
  std::uint16_t* length = nullptr;  // bytes of the frame, without FCS
  // The areas of the elements (Element::area()), device-visible, 64-byte aligned.
  std::array<std::byte*, most_elements> area{};
  // Host only.
  rte_mbuf** mbuf = nullptr;
  Row* row = nullptr;
  Segment* segment = nullptr;  // `segment_capacity` elements
  std::uint32_t capacity = 0;
  std::uint32_t segment_capacity = 0;
  std::uint32_t count = 0;     // frames
  std::uint32_t expected = 0;  // rows that may still come from the pass before, while it is filled
  std::uint32_t segments = 0;
  std::uint32_t max_length = 0;  // longest frame
  std::uint64_t bytes = 0;       // sum of lengths
  std::uint64_t ticket = 0;
  std::uint64_t began_tsc = 0;   // when the batch of the first pass with these frames was sealed; for the forwarder
  std::uint64_t sealed_tsc = 0;  // when it was sealed; written by the collector, read by all until it is released
  std::uint32_t lane = 0;        // index of the owning lane
  std::uint32_t pass = 0;        // index of the pass that it is in
  bool departs = false;          // that pass is the one of departures
  std::uint32_t slot = 0;        // index in the ring: (lane, pass, slot) names a batch for per-batch device memory
  std::uint32_t device = 0;      // DevicePlan::device of the device that works on it
  bool to_device = false;        // it went there, and no core has computed it since
  bool is_probe = false;         // a core computes it in all passes, to see what that takes (device_choice.h)
  // Rows that the last element sends by one port, sent_port. Their Rows do not show it (SendRun).
  Span sent_together{};
  std::uint16_t sent_port = 0;
  std::atomic<BatchState> state{BatchState::free};

  std::uint8_t* data(std::uint32_t i) const { return reinterpret_cast<std::uint8_t*>(frame[i]); }

  // Whether elements look at row i: it goes on, or is for the host to forward.
  bool is_live(std::uint32_t i) const { return row[i].fate <= Fate::to_host; }
  bool goes_on(std::uint32_t i) const { return row[i].fate == Fate::goes_on; }

  void drop(std::uint32_t i, packet::Reason reason) {
    row[i].fate = Fate::dropped;
    row[i].reason = reason;
  }
  void go_on_later(std::uint32_t i) { row[i].fate = Fate::later; }
  // Gives the frame to the host: it is the host's own traffic.
  void punt(std::uint32_t i) { row[i].fate = Fate::own; }
  void to_host(std::uint32_t i, packet::Reason otherwise = packet::no_reason) {
    row[i].fate = Fate::to_host;
    row[i].reason = otherwise;
  }
  void send(std::uint32_t i, std::uint16_t port) { row[i] = {Fate::sent, packet::no_reason, port}; }
  // The element has changed the frame into an answer, and has set its length: it is sent back by the port that it came
  // in by. `reason`: what is answered.
  void answer(std::uint32_t i, packet::Reason reason) {
    row[i].fate = Fate::answered;
    row[i].reason = reason;
  }
  // The element takes the frame over: it frees it, or emits it later (Emitter::emit()).
  rte_mbuf* consume(std::uint32_t i) {
    row[i].fate = Fate::consumed;
    return mbuf[i];
  }
  // The element has what it wanted of the frame. Its bytes stay until the batch has passed all elements: device work of
  // a later one may be on them.
  void absorb(std::uint32_t i) { row[i].fate = Fate::absorbed; }
  bool is_consumed(std::uint32_t i) const { return row[i].fate >= Fate::consumed; }
};

// For the last element of a pipeline, which sends the rows of a span. As long as all leave by one port, nothing is
// written per row. Call send() or other() once for each row, in order, and finish() at the end.
class SendRun {
 public:
  SendRun(Batch& batch, Span span) : batch_(batch), span_(span) { batch_.sent_together = {}; }

  void send(std::uint32_t i, std::uint16_t port) {
    if (i == span_.first) port_ = port;
    if (together_ && port == port_) [[likely]]
      return;
    other(i);
    batch_.send(i, port);
  }
  // Row i is not sent: the caller has decided otherwise.
  void other(std::uint32_t i) {
    if (!together_) return;
    together_ = false;
    for (std::uint32_t before = span_.first; before < i; ++before) batch_.send(before, port_);
  }
  void finish() {
    if (!together_) return;
    batch_.sent_together = span_;
    batch_.sent_port = port_;
  }

 private:
  Batch& batch_;
  const Span span_;
  std::uint16_t port_ = 0;
  bool together_ = true;
};

}  // namespace sluice::engine
