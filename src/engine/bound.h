// How late a frame can be, and which cycle length a deadline allows.
//
// Theorem 1 of Zhang, Hu and Hua ("A holistic approach to build real-time stream processing system with GPU", 2015):
// when the device finishes the work of a cycle within the cycle (T_S < I), every frame leaves within 3·I + µ. That is
// up to I + µ until the time point at which its batch is sealed, up to I on the device, up to I until the forwarder has
// sent it.
//
// Here a batch may spend up to `overlap` cycles on the device, because its stages (up, kernel, down) overlap those of
// the batches before and after it; the middle term becomes overlap·I:
//     T <= (2 + overlap)·I + µ
// µ is three rounds of the thread that collects: the one in which the frame arrives, the one that receives it, and the
// one in which the time point falls. Holds while no batch is longer on the device than overlap·I and the
// forwarder keeps up (docs/real-time.md has all premises and the proof); the engine counts every batch that is ("cycle
// overruns") and every frame that misses its deadline.
//
// A lane that polls adaptively looks at a port that cannot wake it only every now and then; the longest sleep is added:
//     T <= (2 + overlap)·I + µ + sleep
//
// Of a pipeline of several passes (pipeline.h) a batch of a later pass waits for no time point: it adds overlap·I on
// the device and I until the forwarder has sent it.
//     T <= (2 + overlap + (passes - 1)·(1 + overlap))·I + µ
//
// Where a chain's elements submit jobs (jobs.h), these have a slice J of each cycle: a launch of jobs takes the device
// and its worker no longer than J, and, while there are frames, the next one begins a cycle later at least
// (job_pace.h). So a batch meets overlap + 1 of them at most while it is on the device, and the worker passes a time
// point J late at most:
//     T <= (2 + overlap)·(I + J) + µ, and for each further pass (1 + overlap)·(I + J) more
//
// On the CPU alone there is no cycle, and jobs are done beside the lanes: T <= sleep + the time of one inline batch.
// That time is an estimate unless a profile (profile.h) has measured it, and this bound is one of an idle lane on a
// core of its own, and none of a lane that has more to do.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"
#include "engine/options.h"

namespace sluice::engine {

struct Timing {
  std::chrono::nanoseconds cycle;  // I
  std::chrono::nanoseconds bound;  // worst case of a frame
  std::chrono::nanoseconds deadline;
  unsigned overlap;
  std::chrono::nanoseconds sleep{0};  // of a lane, before it looks at its port again
  bool stagger = false;               // lanes' time points are spread over the cycle (time_points.h)
  std::chrono::nanoseconds jobs{0};   // J; 0: the chain submits none

  // What a batch may take from its sealing until it is handed back.
  constexpr std::chrono::nanoseconds on_device() const { return cycle * overlap + jobs * (overlap + 1); }
};

// J is this part of a cycle.
inline constexpr unsigned jobs_part = 16;

// µ where nothing is known of the elements: 64 frames of 50 ns in each of its three rounds. Elements that do more with
// a frame have another estimate (control/config_sections.h), and a profile says what was measured.
inline constexpr std::chrono::nanoseconds collect_time = std::chrono::microseconds(10);
inline constexpr unsigned rounds_of_collecting = 3;
// Of each round, for what a driver does before an element sees 64 frames: 20 ns for each.
inline constexpr std::chrono::nanoseconds receive_time = std::chrono::nanoseconds(1280);
// µ, from the elements' part of a round.
constexpr std::chrono::nanoseconds collect_time_of(std::chrono::nanoseconds round) {
  return std::max(collect_time, rounds_of_collecting * (receive_time + round));
}
inline std::chrono::nanoseconds collect_time_of(const Options& options) {
  return options.collect.count() == 0 ? collect_time : options.collect;
}
inline constexpr std::chrono::nanoseconds shortest_cycle = std::chrono::microseconds(20);

// Collecting, computing and forwarding inline_batch (lane.h) frames on a core: 195 ns for each.
inline constexpr std::chrono::nanoseconds inline_batch_time = std::chrono::microseconds(50);

// A lane's thread sleeps at first this long, and in a long silence at most longest_lane_sleep(): 500 looks a second
// cost about 1 % of a core, but a sleep is a small part of the deadline whatever that costs.
inline constexpr std::chrono::nanoseconds first_sleep = std::chrono::microseconds(10);
constexpr std::chrono::nanoseconds longest_lane_sleep(std::chrono::nanoseconds deadline) {
  return std::clamp<std::chrono::nanoseconds>(deadline / 4, first_sleep, std::chrono::milliseconds(2));
}

// Of a GPU. cycle = 0: the longest cycle that keeps a tenth of the deadline in reserve. An error when the bound of the
// configuration exceeds its deadline, or the deadline is too short for any cycle: it says what would fit.
Expected<Timing> plan_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds cycle, unsigned overlap,
                             std::chrono::nanoseconds sleep = std::chrono::nanoseconds(0),
                             std::chrono::nanoseconds collect = collect_time, unsigned passes = 1, bool jobs = false);
// The factor of I in that bound, as text: "(2 + 1)", with passes "(2 + 1 + 1*(1 + 1))", with jobs "(2 + 1 + 3/16)".
std::string bound_text(unsigned overlap, unsigned passes, bool jobs = false);
// Of the CPU alone; cycle and overlap are not used, and the cycle is 0.
Expected<Timing> plan_cpu_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds sleep,
                                 std::chrono::nanoseconds batch = inline_batch_time);
// As measured, or as estimated.
inline std::chrono::nanoseconds inline_batch_of(const Options& options) {
  return options.inline_batch.count() == 0 ? inline_batch_time : options.inline_batch;
}
// Whether premises 3 and 4 of docs/real-time.md hold where a thread takes `forwarding` at most for all batches that its
// lanes seal in a cycle: with a thread of their own they are forwarded within I. On the collector's, three times as
// much is, for a frame that arrives may wait for it, then its time point, and then what was sealed there.
constexpr unsigned forwarded_in_a_cycle(bool own_thread) {
  return own_thread ? 1 : 3;
}
constexpr bool forwards_in_time(std::chrono::nanoseconds forwarding, std::chrono::nanoseconds cycle, bool own_thread) {
  return forwarding * forwarded_in_a_cycle(own_thread) <= cycle;
}
// One of the two, before any port is open: which ports can wake a lane is judged by their devices' names.
Expected<Timing> plan_timing(const Options& options, bool on_gpu);

}  // namespace sluice::engine
