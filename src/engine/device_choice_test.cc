// Where a lane goes, in a model of lanes: what comes waits in a queue, the core or the lane's share of the device takes
// it at a rate, and what the queue cannot hold is lost. Time is simulated.
#include "engine/device_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

namespace sluice::engine {
namespace {

using Why = DeviceChoice::Why;

constexpr std::uint64_t second = 1'000'000'000, us = 1'000, step = 10 * us;
constexpr double queue_holds = 4096;
constexpr DeviceChoice::Limits limits{.window = 300 * us,
                                      .device_window = 2400 * us,
                                      .retry = 3 * second,
                                      .longest_retry = 12 * second,
                                      .try_core = second,
                                      .probe = 100'000 * us,
                                      .second = second};

// Rates are millions of frames a second.
struct Machine {
  double core = 1;      // of each lane's core
  double device = 4;    // of all lanes together
  double most = 1000;   // that a lane's thread can give the device
  double probe_as = 1;  // a probe costs as if the core carried so much
};

class Lanes {
 public:
  Lanes(std::size_t count, const Machine& machine, const DeviceChoice::Limits& of = limits) : machine(machine) {
    for (std::size_t l = 0; l < count; ++l) lanes_.push_back(std::make_unique<One>(of, turns_));
  }
  // Each lane is offered so much; what all together carry.
  double run(double offered, double seconds) {
    double carried = 0;
    lost_ = 0;
    const auto steps = static_cast<std::uint64_t>(seconds * second / step);
    for (std::uint64_t s = 0; s < steps; ++s) carried += run_step(offered);
    return carried / seconds / 1e6;
  }
  std::size_t on_device() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(lanes_, [](const auto& lane) { return lane->choice.on_device(); }));
  }
  DeviceChoice& lane(std::size_t l = 0) { return lanes_[l]->choice; }
  std::uint64_t moves() const {
    return std::accumulate(lanes_.begin(), lanes_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& lane) { return sum + lane->choice.view().moves; });
  }
  double lost() const { return lost_; }  // frames, in the last run()

  Machine machine;
  bool stalls = false;  // the machine keeps threads from running in each window

 private:
  struct One {
    One(const DeviceChoice::Limits& of, ChoiceTurns& turns) : choice(of, turns) { choice.set_device_up(true); }
    DeviceChoice choice;
    double queue = 0, part = 0;  // frames; parts of one
  };

  double run_step(double offered) {
    now_ += step;
    const auto on_device_now = static_cast<double>(std::max<std::size_t>(1, on_device()));
    double carried = 0;
    for (auto& lane : lanes_) {
      lane->queue += offered * step / 1e3;
      const bool with_device = lane->choice.on_device();
      const double rate = with_device ? std::min(machine.device / on_device_now, machine.most) : machine.core;
      const double can = rate * step / 1e3 + lane->part;
      const double takes = std::min(std::floor(can), std::floor(lane->queue));
      lane->part = std::min(can - takes, rate * step / 1e3);
      lane->queue -= takes;
      carried += takes;
      const bool empty = lane->queue < 1;
      if (lane->queue > queue_holds) lost_ += lane->queue - queue_holds;
      lane->queue = std::min(lane->queue, queue_holds);
      if (stalls) stalled_ += 1;
      const auto thread = [&] { return DeviceChoice::Thread{stalled_, now_ / 4}; };
      if (with_device && !empty) lane->choice.blocked(now_, thread);
      lane->choice.received(static_cast<std::uint32_t>(takes), empty, now_, thread);
      lane->choice.look(now_, thread);
      if (lane->choice.probe_due(now_)) {
        lane->choice.probed(now_, static_cast<std::uint64_t>(64 * 1e3 / machine.core / machine.probe_as), 64);
      }
    }
    return carried;
  }

  ChoiceTurns turns_;
  std::vector<std::unique_ptr<One>> lanes_;
  std::uint64_t now_ = 7 * second, stalled_ = 0;
  double lost_ = 0;
};

TEST(DeviceChoice, StaysOnACoreThatKeepsUp) {
  Lanes lanes(4, {});
  EXPECT_NEAR(lanes.run(0.9, 1), 3.6, 0.04);
  EXPECT_EQ(lanes.on_device(), 0U);
  EXPECT_EQ(lanes.moves(), 0U);
  EXPECT_EQ(lanes.lost(), 0);
  EXPECT_EQ(lanes.lane().view().why, Why::light);
}

TEST(DeviceChoice, GoesToADeviceThatCarriesMoreBeforeTheQueueIsFull) {
  Lanes lanes(4, {.core = 1, .device = 40});
  EXPECT_NEAR(lanes.run(2, 1), 8, 0.08);
  EXPECT_EQ(lanes.on_device(), 4U);
  EXPECT_EQ(lanes.moves(), 4U);
  EXPECT_EQ(lanes.lost(), 0);
  EXPECT_EQ(lanes.lane().view().why, Why::device_faster);
  EXPECT_NEAR(static_cast<double>(lanes.lane().view().core_rate), 1e6, 5e4);
}

TEST(DeviceChoice, StaysOnCoresThatCarryMore) {
  Lanes lanes(14, {.core = 25, .device = 300, .most = 21});
  lanes.run(30, 1);  // it learns
  EXPECT_NEAR(lanes.run(30, 0.5), 14 * 25, 3);
  EXPECT_EQ(lanes.on_device(), 0U);
  EXPECT_EQ(lanes.lane().view().why, Why::core_faster);
  // Every try after that is one lane's, and they get rare.
  const std::uint64_t before = lanes.moves();
  EXPECT_GT(lanes.run(30, 20), 0.99 * 14 * 25);
  EXPECT_LE(lanes.moves() - before, 14U * 2 * 5);
}

TEST(DeviceChoice, CarriesMoreThanEitherSideWhereTheDeviceIsTheLimit) {
  Lanes lanes(8, {.core = 1, .device = 4});
  lanes.run(3, 2);  // each lane's share of the device is half of what its core does
  EXPECT_GT(lanes.run(3, 0.5), 8.9);
  EXPECT_EQ(lanes.on_device(), 3U);
  EXPECT_GT(lanes.run(3, 20), 8.9) << "while lanes try it again";
}

TEST(DeviceChoice, KeepsAllOnADeviceWhoseShareIsWorthMore) {
  Lanes lanes(8, {.core = 1, .device = 32});
  EXPECT_NEAR(lanes.run(9, 1), 32, 1);
  EXPECT_NEAR(lanes.run(9, 4), 32, 0.4);
  EXPECT_EQ(lanes.on_device(), 8U);
  EXPECT_EQ(lanes.moves(), 8U);
}

TEST(DeviceChoice, MovesOnceOnARampUpAndOnceDown) {
  Lanes lanes(2, {.core = 1, .device = 8});
  for (double offered = 0.05; offered < 3; offered += 0.05) lanes.run(offered, 0.1);
  EXPECT_EQ(lanes.on_device(), 2U);
  EXPECT_EQ(lanes.moves(), 2U);
  double left_at = 0;
  for (double offered = 3; offered > 0.04; offered -= 0.05) {
    lanes.run(offered, 0.1);
    EXPECT_EQ(lanes.lost(), 0) << offered;
    if (lanes.on_device() == 2) left_at = offered;
  }
  EXPECT_EQ(lanes.on_device(), 0U);
  EXPECT_LE(lanes.moves(), 8U) << "each try of the core is two";
  EXPECT_GT(left_at, 0.5);
  EXPECT_LT(left_at, 0.9);
}

TEST(DeviceChoice, IsCarefulWithALoadThatSwingsBetweenTheTwoLimits) {
  Lanes lanes(2, {.core = 1, .device = 8});
  lanes.run(1.5, 0.1);
  EXPECT_EQ(lanes.moves(), 2U);
  for (int swing = 0; swing < 40; ++swing) {
    lanes.run(0.7, 0.03);
    lanes.run(1.2, 0.03);
  }
  EXPECT_LE(lanes.moves(), 6U);
}

TEST(DeviceChoice, SeesByProbesThatFramesCostTheCoreLess) {
  Lanes lanes(1, {.core = 0.1, .device = 8});
  lanes.run(2, 1);
  ASSERT_EQ(lanes.on_device(), 1U);
  lanes.machine.core = 20;
  lanes.run(2, 2);
  EXPECT_EQ(lanes.on_device(), 0U);
  EXPECT_EQ(lanes.lane().view().why, Why::light);
}

TEST(DeviceChoice, BelievesProbesNoMoreThatWereWrong) {
  Lanes lanes(1, {.core = 0.1, .device = 8, .probe_as = 100});
  lanes.run(2, 1);
  const std::uint64_t before = lanes.moves();
  lanes.run(2, 10);
  EXPECT_LE(lanes.moves() - before, 2U * 3);
  EXPECT_EQ(lanes.on_device(), 1U);
}

// The machine was slow for a moment.
TEST(DeviceChoice, TriesACoreSoonThatWasMeasuredTooLow) {
  Lanes lanes(1, {.core = 0.5, .device = 8});
  lanes.run(0.55, 0.1);
  ASSERT_EQ(lanes.on_device(), 1U);
  lanes.machine.core = 1;
  lanes.run(0.55, 1.2);
  EXPECT_EQ(lanes.on_device(), 0U);
  lanes.run(0.55, 20);
  EXPECT_EQ(lanes.moves(), 2U);
}

// Each try that fails is twice as long ahead of the next one.
TEST(DeviceChoice, SeldomTriesACoreThatCannot) {
  Lanes lanes(1, {.core = 0.5, .device = 8});
  lanes.run(0.55, 60);
  EXPECT_EQ(lanes.on_device(), 1U);
  EXPECT_GE(lanes.moves(), 5U);
  EXPECT_LE(lanes.moves(), 19U);
}

TEST(DeviceChoice, TriesTheDeviceAgainWhenItHasBecomeFaster) {
  Lanes lanes(2, {.core = 2, .device = 2});
  lanes.run(3, 1);
  ASSERT_EQ(lanes.on_device(), 0U);
  lanes.machine.device = 20;
  lanes.run(3, 6);
  EXPECT_EQ(lanes.on_device(), 2U);
}

TEST(DeviceChoice, TriesTheDeviceAtOnceWithFramesOfOtherCost) {
  DeviceChoice::Limits patient = limits;
  patient.retry = patient.longest_retry = patient.try_core = 1000 * second;
  Lanes lanes(2, {.core = 2, .device = 2}, patient);
  lanes.run(3, 1);
  ASSERT_EQ(lanes.on_device(), 0U);
  lanes.machine = {.core = 0.5, .device = 20};
  lanes.run(3, 1.5);
  EXPECT_EQ(lanes.on_device(), 2U);
}

TEST(DeviceChoice, IsOnTheCoreWhileTheDeviceIsDown) {
  Lanes lanes(1, {.core = 1, .device = 8});
  lanes.run(3, 0.1);
  ASSERT_EQ(lanes.on_device(), 1U);
  lanes.lane().set_device_up(false);
  EXPECT_FALSE(lanes.lane().on_device());
  EXPECT_EQ(lanes.lane().view().why, Why::device_down);
  lanes.run(3, 1);
  EXPECT_EQ(lanes.on_device(), 0U);
  lanes.lane().set_device_up(true);
  lanes.run(3, 0.1);
  EXPECT_EQ(lanes.on_device(), 1U);
}

TEST(DeviceChoice, OneStallIsNoSaturation) {
  Lanes lanes(1, {.core = 1, .device = 8});
  lanes.run(0.9, 0.1);
  lanes.stalls = true;
  lanes.run(2, 0.0003);
  lanes.stalls = false;
  lanes.run(0.5, 0.1);
  EXPECT_EQ(lanes.moves(), 0U);
}

TEST(DeviceChoice, GoesToTheDeviceOnAMachineThatStallsAllTheTime) {
  Lanes lanes(1, {.core = 1, .device = 8});
  lanes.stalls = true;
  lanes.run(3, 0.1);
  EXPECT_EQ(lanes.on_device(), 1U);
}

TEST(DeviceChoice, ComesBackWhenNothingComesAnyMore) {
  Lanes lanes(1, {.core = 1, .device = 8});
  lanes.run(3, 0.1);
  ASSERT_EQ(lanes.on_device(), 1U);
  lanes.run(0, 0.1);
  EXPECT_EQ(lanes.on_device(), 0U) << "the worker may sleep";
}

TEST(DeviceChoice, WindowsWithoutALookAtTheQueueSayNothing) {
  ChoiceTurns turns;
  DeviceChoice choice(limits, turns);
  choice.set_device_up(true);
  const auto thread = [] { return DeviceChoice::Thread{}; };
  for (std::uint64_t now = second; now < second + 100 * limits.window; now += limits.window)
    choice.blocked(now, thread);
  EXPECT_FALSE(choice.on_device());
  EXPECT_EQ(choice.view().moves, 0U);
  EXPECT_EQ(choice.view().core_rate, 0U);
}

TEST(DeviceChoice, HasATextForEachReason) {
  for (const Why why :
       {Why::begins, Why::light, Why::core_faster, Why::device_faster, Why::tries_device, Why::device_down}) {
    EXPECT_STRNE(DeviceChoice::text(why), "");
  }
}

}  // namespace
}  // namespace sluice::engine
