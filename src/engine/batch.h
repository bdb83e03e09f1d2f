// A batch: the frames of one lane collected in one cycle, as a structure of arrays, with a ticket.
//
// Life:  open (the lane's collector appends) -> sealed (handed to the worker, or computed by the lane itself)
//        -> in_flight (a device works on it) -> done | failed -> applied -> open again, with a new ticket.
// A lane owns some of them in a ring indexed by ticket, so releasing them in ticket order is taking the oldest.
//
// Rows: a frame is a row. Its Row says what is to become of it. Elements decide by go_on(), drop(), punt() and so on;
// what they say happens when the batch has passed all elements of the pass, in the order of rows. A frame may be
// changed in place, grown and shrunk at its front and its end meanwhile (batch_edit.h).
//
// Memory: every device-visible array lies in pinned host memory that the device addresses by the same pointer. Nothing
// is allocated after start. Frames are never copied: `frame[i]` points into the mbuf, which is pinned too.
//
// Thread-safety: one owner at a time; `state` hands over (release/acquire). Cost: appending a frame writes 8+8+2+4
// bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "packet/reason.h"

struct rte_mbuf;

namespace sluice::engine {

// failed: no device has worked on it; lost: one may have done part of the work.
enum class BatchState : std::uint32_t { free, open, sealed, in_flight, done, failed, lost };

// Frames of one receive burst: they share their receive time.
struct Segment {
  std::uint32_t first;    // index of the burst's first frame in the batch
  std::uint16_t rx_port;  // index of the port that the burst came from
  // Time-stamp counter right after the receive burst, less what its first frame had waited where the port knows that
  // (port.h, waited()); of a lane that shares a queue: after the burst of the lane that owns it.
  std::uint64_t rx_tsc;
  // How long the lane's threads and the worker had been stalled (stall.h) by then, in ticks.
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
  // The kernel's, by the twin of its port, if all elements that follow let it go on: it forwards the frame, or answers
  // it with an error. Such frames never take the last of that way.
  to_host,
  // Decided: no element looks at it any more.
  own,  // the host's own traffic
  dropped,
  sent,      // by the row's port
  answered,  // made an answer to its sender, for `reason`; sent by the row's port
  consumed,  // the element has taken the frame over
  absorbed,  // counted as consumed; the engine frees the frame
};

struct Row {
  Fate fate = Fate::goes_on;
  // Why it is dropped; of a frame for the host: why it is dropped where the host cannot have it, no_reason: for what
  // stands in the way; of an answer: what it answers.
  packet::Reason reason = packet::no_reason;
  // While it goes on the port that the frame came in by; once it is sent the one that it leaves by.
  std::uint16_t port = 0;
};
static_assert(sizeof(Row) == 4);

inline constexpr unsigned most_elements = 16;  // of a pipeline

struct Batch {
  // Device-visible, pinned, `capacity` elements each.
  std::uint64_t* frame = nullptr;   // address of the frame's first byte (the Ethernet header)
  std::uint16_t* length = nullptr;  // bytes of the frame, without FCS
  // Of each element (Element::area()), device-visible, 64-byte aligned.
  std::array<std::byte*, most_elements> area{};
  // Host only.
  rte_mbuf** mbuf = nullptr;
  Row* row = nullptr;
  Segment* segment = nullptr;  // `segment_capacity` elements
  std::uint32_t capacity = 0;
  std::uint32_t segment_capacity = 0;
  std::uint32_t count = 0;  // frames
  std::uint32_t segments = 0;
  std::uint32_t max_length = 0;  // longest frame
  std::uint64_t bytes = 0;       // sum of lengths
  std::uint64_t ticket = 0;
  std::uint64_t began_tsc = 0;   // when its frames' batch of the first pass was sealed; the forwarder's
  std::uint64_t sealed_tsc = 0;  // written by the collector; read by the worker, and until it is released by the others
  std::uint32_t lane = 0;        // index of the owning lane
  std::uint32_t pass = 0;        // of the pipeline, that it is in
  std::uint32_t slot = 0;        // index in the ring: (lane, pass, slot) names a batch for per-batch device memory
  std::uint32_t device = 0;      // DevicePlan::device of the one that works on it
  // Rows that the last element sends by one port, all of them; their Row does not say so (SendRun).
  Span sent_together{};
  std::uint16_t sent_port = 0;
  std::atomic<BatchState> state{BatchState::free};

  std::uint8_t* data(std::uint32_t i) const { return reinterpret_cast<std::uint8_t*>(frame[i]); }

  // Whether an element has to do with row i: it goes on, to where the last element says or to the host.
  bool is_live(std::uint32_t i) const { return row[i].fate <= Fate::to_host; }
  bool goes_on(std::uint32_t i) const { return row[i].fate == Fate::goes_on; }

  void drop(std::uint32_t i, packet::Reason reason) {
    row[i].fate = Fate::dropped;
    row[i].reason = reason;
  }
  // The host's own traffic.
  void punt(std::uint32_t i) { row[i].fate = Fate::own; }
  void to_host(std::uint32_t i, packet::Reason otherwise = packet::no_reason) {
    row[i].fate = Fate::to_host;
    row[i].reason = otherwise;
  }
  void send(std::uint32_t i, std::uint16_t port) { row[i] = {Fate::sent, packet::no_reason, port}; }
  // The frame has been made an answer, whose length is set: back out of the port that it came in by.
  void answer(std::uint32_t i, packet::Reason reason) {
    row[i].fate = Fate::answered;
    row[i].reason = reason;
  }
  // The element takes the frame over, and frees it, or emits it later (Emitter::emit()).
  rte_mbuf* consume(std::uint32_t i) {
    row[i].fate = Fate::consumed;
    return mbuf[i];
  }
  // The element has what it wanted of the frame. Its bytes stay until the batch has passed all elements: device work of
  // a later one may be on them.
  void absorb(std::uint32_t i) { row[i].fate = Fate::absorbed; }
  bool is_consumed(std::uint32_t i) const { return row[i].fate >= Fate::consumed; }
};

// Sends the rows of a span one after the other, as the last element of a pipeline does. While all leave by one port
// nothing is written for a row. Each row is reported once, in order: send() or other(). finish() comes last.
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
  // Something else becomes of row i.
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
