// How late a frame can be, and which cycle length a deadline allows.
//
// Theorem 1 of Zhang, Hu and Hua ("A holistic approach to build real-time stream processing system with GPU", 2015):
// when the device finishes the work of a cycle within the cycle (T_S < I), every frame leaves within 3·I + µ: up to I +
// µ until the time point at which its batch is sealed, up to I on the device, up to I until the forwarder has sent it.
//
// Here a batch may spend up to `overlap` cycles on the device, because its stages (up, kernel, down) overlap those of
// the batches before and after it; the middle term becomes overlap·I:
//     T <= (2 + overlap)·I + µ
// µ is the time to collect one receive burst. Holds while no batch is longer on the device than overlap·I; the engine
// counts every batch that is ("cycle overruns") and every frame that misses its deadline.
#pragma once

#include <chrono>

#include "base/error.h"

namespace sluice::engine {

struct Timing {
  std::chrono::nanoseconds cycle;  // I
  std::chrono::nanoseconds bound;  // worst case of a frame
  std::chrono::nanoseconds deadline;
  unsigned overlap;
};

inline constexpr std::chrono::nanoseconds collect_time = std::chrono::microseconds(10);  // µ: 64 frames, generously
inline constexpr std::chrono::nanoseconds shortest_cycle = std::chrono::microseconds(20);

// cycle = 0: the longest cycle that keeps a tenth of the deadline in reserve. An error when the bound of the
// configuration exceeds its deadline, or the deadline is too short for any cycle: it says what would fit.
Expected<Timing> plan_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds cycle, unsigned overlap);

}  // namespace sluice::engine
