// The paper's overload: more streams than the device carries in time, with and without their admission, on a lane and a
// device in virtual time.
#include <gtest/gtest.h>

#include <vector>

#include "engine/lane_model_test.h"
#include "engine/stream_admission.h"

namespace sluice::engine {
namespace {

constexpr Ns us = 1000, ms = 1000 * us;
constexpr Ns cycle = 300 * us;
constexpr unsigned offered = 1500;
constexpr Ns period = ms;  // of a stream's frames
constexpr std::uint32_t frame = 1000;
constexpr StreamDemand stream{frame, std::chrono::milliseconds(1), frame * 8 * 1000};
// A batch takes 20 us and each frame 1 us: 280 frames a cycle are the most, and 270 what is called B_I.
constexpr std::uint64_t capacity = stream.rate * 270 * (ms / us) / (cycle / us);

struct Load {
  unsigned accepted = 0, refused = 0;
  std::size_t frames = 0, late = 0;
  std::vector<std::size_t> late_of;  // by stream
};

// The streams that are accepted send for a second.
Load run(bool enforced) {
  const auto timing = plan_timing(std::chrono::milliseconds(1), std::chrono::nanoseconds(cycle), 1);
  StreamAdmission admission({capacity, timing->bound, frame}, enforced);
  Load load;
  for (unsigned i = 0; i < offered; ++i) {
    ++(admission.add(stream).accepted() ? load.accepted : load.refused);
  }
  load.late_of.resize(load.accepted);
  std::vector<Ns> arrivals;
  for (Ns begin = 0; begin < 1000 * ms; begin += period) {
    for (unsigned i = 0; i < load.accepted; ++i) arrivals.push_back(begin + period * i / load.accepted);
  }
  LaneModel lane;
  lane.cycle = cycle;
  Ns free_at = 0;
  lane.on_device_by_size = [&free_at](std::size_t frames, Ns sealed) {
    free_at = std::max(free_at, sealed) + 20 * us + static_cast<Ns>(frames) * us;
    return free_at - sealed;
  };
  lane.forwarding = [](std::size_t) { return 50 * us; };
  lane.left = [&load](std::size_t one, Ns latency) {
    if (latency > stream.deadline.count()) {
      ++load.late;
      ++load.late_of[one % load.accepted];
    }
  };
  lane.run(arrivals);
  load.frames = lane.frames;
  EXPECT_EQ(load.frames, arrivals.size());
  return load;
}

TEST(StreamOverload, WithoutAdmissionEveryStreamIsLate) {
  const Load load = run(false);
  EXPECT_EQ(load.accepted, offered);
  EXPECT_GT(load.late, load.frames * 98 / 100);
  for (const std::size_t late : load.late_of) EXPECT_GT(late, 900U);
}

TEST(StreamOverload, WithItOnlyTheRefusedSuffer) {
  const Load load = run(true);
  EXPECT_EQ(load.accepted, 900U);
  EXPECT_EQ(load.refused, 600U);
  EXPECT_EQ(load.late, 0U);
}

}  // namespace
}  // namespace sluice::engine
