// For tests of what streams do to each other on a lane and a device in virtual time: streams of a frame a millisecond
// each, due within a millisecond, and a device that carries 900 of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/lane_model_test.h"
#include "engine/stream_admission.h"

namespace sluice::engine::test {

inline constexpr Ns us = 1000, ms = 1000 * us;
inline constexpr Ns cycle = 300 * us;
inline constexpr Ns period = ms;  // of a stream's frames
inline constexpr std::uint32_t frame_bytes = 1000;
inline constexpr std::uint64_t rate = frame_bytes * 8 * 1000;
inline const StreamDemand stream{frame_bytes, std::chrono::milliseconds(1), rate};
// A batch takes 20 us and each frame 1 us: 280 frames a cycle are the most, and 270 what is called B_I.
inline constexpr std::uint64_t capacity = rate * 270 * (ms / us) / (cycle / us);

inline StreamAdmission admission(bool enforced = true, bool counts_bursts = false) {
  const auto timing = plan_timing(std::chrono::milliseconds(1), std::chrono::nanoseconds(cycle), 1);
  return StreamAdmission({.rate = capacity,
                          .bound = timing->bound,
                          .largest_packet = frame_bytes,
                          .cycle = timing->cycle,
                          .counts_bursts = counts_bursts},
                         enforced);
}

// Sends the frames that arrive, in order, and reports each that is late, by its place among them. How many have left.
inline std::size_t send(const std::vector<Ns>& arrivals, const std::function<void(std::size_t)>& late) {
  LaneModel lane;
  lane.cycle = cycle;
  Ns free_at = 0;
  lane.on_device_by_size = [&free_at](std::size_t frames, Ns sealed) {
    free_at = std::max(free_at, sealed) + 20 * us + static_cast<Ns>(frames) * us;
    return free_at - sealed;
  };
  lane.forwarding = [](std::size_t) { return 50 * us; };
  lane.left = [&late](std::size_t one, Ns latency) {
    if (latency > stream.deadline.count()) late(one);
  };
  lane.run(arrivals);
  return lane.frames;
}

}  // namespace sluice::engine::test
