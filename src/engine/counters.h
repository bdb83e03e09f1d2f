// Counters of one side of a lane: one writer (the side's thread), any number of readers. Adding is a plain load, add
// and store. They conserve frames: rx + injected + emitted + cloned = tx + consumed + punted + sum(drops) + in flight,
// at every moment when the lane is quiet.
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
  // Who sees what publish() wrote with acquire() sees all that its writer wrote before.
  void publish(std::uint64_t n) { value_.store(n, std::memory_order_release); }
  std::uint64_t acquire() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct alignas(64) LaneCounters {
  Counter rx_frames, rx_bytes;
  Counter injected_frames;  // from the host's twin, to be transmitted
  Counter emitted_frames;   // made by elements besides what was received
  Counter cloned_frames;    // copies
  Counter consumed_frames;  // that elements have taken over
  Counter punted_frames;    // to the host's twin
  std::array<Counter, max_ports> tx_frames, tx_bytes;
  std::array<Counter, packet::max_reasons> drops;
  std::array<Counter, packet::max_reasons> answers;  // frames sent back as an element's answer to that; in tx too
  Counter batches_cpu, frames_cpu;                   // computed by the lane's core
  Counter batches_gpu, frames_gpu;
  Counter batches_rescued, frames_rescued;  // computed by the core because the GPU failed
  Counter sealed_full;                      // batches handed on before the time point because they were full
  Counter receive_stalls;                   // polls that could not receive because every batch was in use
  Counter empty_polls;                      // polls that found no frame
  Counter misses;                           // frames transmitted after their deadline
  Counter
      misses_stalled;  // of these: would have been on time if the lane's threads, or the worker, had not been stalled
  Counter measured;    // frames transmitted and timed
  Counter busy;        // time-stamp counter ticks of the side's rounds that moved something
};

}  // namespace sluice::engine
