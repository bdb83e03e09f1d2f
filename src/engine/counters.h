// Counters of one side of a lane, collector or forwarder. The side's thread writes them, any thread reads them. To add
// is a plain load, add and store. While the lane is quiet they account for every frame:
//     rx + injected + emitted + cloned = tx + consumed + punted + sum(drops) + in flight
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "packet/reason.h"

namespace sluice::engine {

inline constexpr unsigned max_ports = 32;

class Counter {
 public:
  void add(std::uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  // A thread that reads with acquire() what publish() wrote also sees all that the writer wrote before.
  void publish(std::uint64_t n) { value_.store(n, std::memory_order_release); }
  std::uint64_t acquire() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct alignas(64) LaneCounters {
  Counter rx_frames, rx_bytes;
  Counter injected_frames;  // from the host's twin, to be transmitted
  Counter emitted_frames;   // made by elements
  Counter cloned_frames;    // copies made by elements
  Counter consumed_frames;  // taken over by elements
  Counter punted_frames;    // to the host's twin
  std::array<Counter, max_ports> tx_frames, tx_bytes;
  std::array<Counter, packet::max_reasons> drops;
  std::array<Counter, packet::max_reasons> answers;  // answers that elements sent for a reason; in tx, too
  Counter batches_cpu, frames_cpu;                   // computed by the lane's core
  Counter batches_gpu, frames_gpu;
  Counter batches_rescued, frames_rescued;  // computed by the core because the GPU failed
  Counter frames_aside;                     // now: buffers that a GPU which does not answer may still write to
  Counter longest_rescue;                   // ticks, of a batch from its sealing until the core had computed it
  Counter sealed_full;                      // batches handed on before the time point because they were full
  Counter receive_stalls;                   // polls that could not receive because every batch was in use
  Counter empty_polls;                      // polls that found no frame
  Counter misses;                           // frames transmitted after their deadline
  Counter misses_stalled;                   // of these, on time if lane and worker had not been stalled (stall.h)
  Counter measured;                         // frames transmitted and timed
  Counter busy;                             // ticks of the rounds in which the side moved something
};

}  // namespace sluice::engine
