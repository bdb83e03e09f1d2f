// A batch: the frames of one lane collected in one cycle, as a structure of arrays, with a ticket.
//
// Life:  open (the lane's collector appends) -> sealed (handed to the worker, or computed by the lane itself)
//        -> in_flight (a device works on it) -> done | failed -> forwarded -> open again, with a new ticket.
// A lane owns `batches` of them in a ring indexed by ticket, so releasing them in ticket order is taking the oldest.
//
// Memory: every device-visible array lies in pinned host memory that the device addresses by the same pointer. Nothing
// is allocated after start. Frames are never copied: `frame[i]` points into the mbuf, which is pinned too.
//
// Thread-safety: one owner at a time; `state` hands over (release/acquire). Cost: appending a frame writes 8+8+2+4
// bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

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
  // How long the lane's threads and the worker had been away (away.h) by then, in ticks.
  std::uint64_t lane_away, worker_away;
};

struct Batch {
  // Device-visible, pinned, `capacity` elements each.
  std::uint64_t* frame = nullptr;     // address of the frame's first byte (the Ethernet header)
  std::uint16_t* length = nullptr;    // bytes of the frame, without FCS
  std::uint32_t* argument = nullptr;  // chosen by the function's collect()
  std::uint32_t* verdict = nullptr;   // written by the device; its meaning is the function's
  std::byte* extra = nullptr;         // the function's own area: BatchLayout::extra_bytes_per_frame * capacity bytes,
                                      // 64-byte aligned, laid out by the function
  // Host only.
  rte_mbuf** mbuf = nullptr;
  Segment* segment = nullptr;  // `segment_capacity` elements
  std::uint32_t capacity = 0;
  std::uint32_t segment_capacity = 0;
  std::uint32_t count = 0;  // frames
  std::uint32_t segments = 0;
  std::uint32_t extra_count = 0;  // the function's own use (for instance: IPv6 keys in `extra`); 0 when opened
  std::uint32_t max_length = 0;   // longest frame
  std::uint64_t bytes = 0;        // sum of lengths
  std::uint64_t ticket = 0;
  std::uint64_t sealed_tsc = 0;  // written by the collector; read by the worker, and until it is released by the others
  std::uint32_t lane = 0;        // index of the owning lane
  std::uint32_t slot = 0;        // index in the lane's ring: (lane, slot) names a batch for per-batch device memory
  std::atomic<BatchState> state{BatchState::free};
};

}  // namespace sluice::engine
