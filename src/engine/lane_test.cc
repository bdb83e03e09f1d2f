// A lane and its batches: when it seals, which device computes, and what becomes of frames that a device, or the end,
// leaves behind.
#include "engine/lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/lane_thread.h"
#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

TEST_F(LaneTest, SealsAtATimePoint) {
  make({});
  time_point();
  ASSERT_TRUE(lane_->on_device());
  arrive(10);
  collect();
  EXPECT_EQ(sealed(), nullptr);
  EXPECT_TRUE(lane_->collector_holds_frames());
  time_point();
  Batch* const batch = sealed();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->count, 10U);
  EXPECT_FALSE(lane_->collector_holds_frames());
  EXPECT_TRUE(lane_->forwarder_holds_frames());
  EXPECT_EQ(lane_->forward_round(), 0U);
  finish(*batch);
  EXPECT_EQ(lane_->forward_round(), 1U);
  EXPECT_EQ(take_out(), 10U);
  EXPECT_EQ(collected().frames_gpu.get(), 10U);
  time_point();
  EXPECT_EQ(lane_->ring().in_use(), 0U) << "nothing was open";
}

// Needs the device for batches of more than ten frames.
class Undemanding : public PeerElement, public DeviceDemand {
 public:
  using PeerElement::PeerElement;
  void* find_trait(std::string_view name) override {
    void* const own = offer<DeviceDemand>(name, this);
    return own != nullptr ? own : PeerElement::find_trait(name);
  }
  bool needs_device(const Batch& batch) const override { return batch.count > 10; }
};

class DeviceDemandTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override { return pipeline_of(std::make_unique<WatchedElement>(modest_)); }
  Undemanding modest_{PortTable({{.name = "0", .mac = {}, .peer = 1}, {.name = "1", .mac = {}, .peer = 0}})};
};

TEST_F(DeviceDemandTest, ABatchWithNothingForTheDeviceIsDoneAtOnceAndInOrder) {
  make({});
  time_point();
  ASSERT_TRUE(lane_->on_device());
  for (const unsigned count : {20U, 5U}) {
    arrive(count);
    collect();
    time_point();
  }
  Batch* const large = sealed();
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->count, 20U);
  EXPECT_EQ(sealed(), nullptr) << "the second one is not for the device";
  EXPECT_EQ(forward(), 0U) << "and waits for the first";
  finish(*large);
  EXPECT_EQ(forward(), 2U);
  EXPECT_EQ(take_out(), 25U);
  EXPECT_EQ(modest_.wrong_answers.load(), 0U);
  EXPECT_EQ(collected().frames_gpu.get(), 25U);
}

TEST_F(LaneTest, SealsWhenThereIsNoCapacityForABurst) {
  make({.capacity = 160});
  time_point();
  arrive(300);
  collect();
  for (const unsigned count : {128, 128}) {
    Batch* const batch = sealed();
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->count, count);
  }
  EXPECT_EQ(sealed(), nullptr);
  EXPECT_EQ(collected().sealed_full.get(), 2U);
  EXPECT_EQ(lane_->in_flight(), 300U);
}

TEST_F(LaneTest, ATimePointDoesNotSealWhileTheDeviceIsBehind) {
  make({.overlap = 2, .capacity = 512});
  time_point();
  cycle(1);
  arrive(10);
  time_point();  // seals nothing: they came behind it
  time_point();
  Batch* const first = sealed();
  ASSERT_NE(first, nullptr);
  // Older than a cycle, of the two that it may take.
  grow_older(*first, 1.5);
  arrive(20);
  collect();
  time_point();
  Batch* const second = sealed();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->count, 20U);
  // Older than two: the open batch goes on filling.
  grow_older(*first, 1);
  for (int cycle = 0; cycle < 3; ++cycle) {
    arrive(30);
    collect();
    time_point();
    EXPECT_EQ(sealed(), nullptr);
  }
  // As soon as the oldest batch is a young one, without another time point.
  finish(*first);
  EXPECT_EQ(lane_->forward_round(), 1U);
  collect();
  Batch* const third = sealed();
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third->count, 90U);
  EXPECT_TRUE(lane_->on_device());
  finish(*second);
  finish(*third);
  EXPECT_EQ(forward(), 2U);
  EXPECT_EQ(take_out(), 121U);
}

// The bound has a cycle for the forwarder, which on a thread of its own may still be at the oldest batch.
TEST_F(LaneTest, ATimePointSealsWhileTheForwarderIsBehind) {
  make({.capacity = 512});
  time_point();
  arrive(10);
  collect();
  time_point();
  Batch* const first = sealed();
  ASSERT_NE(first, nullptr);
  grow_older(*first, 1.5);
  finish(*first);
  arrive(20);
  collect();
  time_point();
  Batch* const second = sealed();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->count, 20U);
  finish(*second);
  EXPECT_EQ(forward(), 2U);
}

// However many an older one has held up: a time point is seen between two.
TEST_F(LaneTest, ARoundForwardsOneBatch) {
  make({});
  time_point();
  Batch* batches[3];
  for (Batch*& batch : batches) {
    arrive(10);
    collect();
    time_point();
    batch = sealed();
    ASSERT_NE(batch, nullptr);
  }
  for (const int done : {2, 1, 0}) {
    EXPECT_EQ(lane_->forward_round(), 0U) << "an older one is not done";
    finish(*batches[done]);
  }
  arrive(10);
  collect();
  EXPECT_EQ(lane_->forward_round(), 1U);
  EXPECT_EQ(take_out(), 10U);
  lane_->pass_time_points(1);
  EXPECT_EQ(sealed(), nullptr);
  lane_->collect_round();
  EXPECT_NE(sealed(), nullptr) << "with two that are back";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(lane_->forward_round(), 1U);
    EXPECT_EQ(take_out(), 10U);
  }
  EXPECT_EQ(lane_->forward_round(), 0U);
}

// As the lane's thread does: collect_round() again while it has a backlog.
class BacklogTest : public LaneTest {
 protected:
  unsigned collect_the_backlog() {
    unsigned frames = lane_->collect_round();
    while (lane_->has_backlog()) frames += lane_->collect_round();
    return frames;
  }
  // A batch of so many frames is back from the device.
  void bring_back_a_batch(unsigned frames) {
    arrive(frames);
    collect();
    time_point();
    Batch* const batch = sealed();
    ASSERT_NE(batch, nullptr);
    finish(*batch);
  }
  // One is forwarded, whose budget takes its time, and 600 more frames arrive meanwhile.
  void forward_a_batch(unsigned frames, std::uint64_t bounded_ticks_per_frame) {
    time_point();
    ASSERT_NO_FATAL_FAILURE(bring_back_a_batch(frames));
    arrive(600);
    peer_.forwarding_ticks_per_frame = bounded_ticks_per_frame;
    EXPECT_EQ(lane_->forward_round(), 1U);
    peer_.forwarding_ticks_per_frame = 0;
    EXPECT_EQ(take_out(), frames);
  }
  void TearDown() override {
    lane_->abandon();
    forget_what_waits();
    LaneTest::TearDown();
  }
};

// Half of what was forwarded, in bursts, and at least four; more where a budget took its time, as long as there is any.
TEST_F(BacklogTest, WhatCameWhileABatchWasForwardedIsCollectedBeforeTheNext) {
  struct Case {
    unsigned forwarded;
    std::uint64_t bounded_ticks_per_frame;
    unsigned collected;
  };
  const std::uint64_t much = rte_get_tsc_hz() / 250;  // half a second together
  for (const Case& one : {Case{100, 0, 256}, Case{800, 0, 448}, Case{128, much, 600}}) {
    SCOPED_TRACE(one.forwarded);
    make({.capacity = 1024});
    forward_a_batch(one.forwarded, one.bounded_ticks_per_frame);
    EXPECT_EQ(collect_the_backlog(), one.collected);
    if (one.collected < 600) {
      EXPECT_EQ(collect_the_backlog(), burst_size) << "once";
    }
    lane_->abandon();
    forget_what_waits();
  }
}

// The lane's thread does so: the backlog behind a batch is collected before the next one leaves.
TEST_F(BacklogTest, AThreadCollectsItsBacklogBeforeItForwardsTheNextBatch) {
  const auto port = open("watched", "replay,mix=64,frames=64");
  ASSERT_TRUE(port);
  std::uint64_t sent = 0;
  std::atomic<std::uint64_t> collected_by_then{0};
  port->replay()->observe([&](const rte_mbuf*) {
    if (++sent == 101) collected_by_then = collected().rx_frames.get();
  });
  make({.capacity = 1024}, nullptr, port.get());
  time_point();
  for (int b = 0; b < 2; ++b) ASSERT_NO_FATAL_FAILURE(bring_back_a_batch(100));
  arrive(600);
  LaneThread thread(-1, true, {}, std::chrono::milliseconds(1));
  lane_->set_threads(thread.side(), thread.side());
  thread.collects(lane_.get());
  thread.forwards(lane_.get());
  thread.start();
  for (int tries = 0; tries < 5000 && collected_by_then.load() == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  thread.stop();
  lane_->set_threads({&stalls_, &bell_}, {&stalls_, &bell_});
  EXPECT_EQ(collected_by_then.load(), 200U + burst_size + 256U);
  left_ = arrived_;
}

// The other thread's work is no reason to collect more at a time.
TEST_F(BacklogTest, AForwarderOfItsOwnLeavesNoBacklog) {
  make({.capacity = 1024});
  StallWatch stalls;
  Bell bell;
  lane_->set_threads({&stalls_, &bell_}, {&stalls, &bell});
  forward_a_batch(800, 0);
  EXPECT_EQ(collect_the_backlog(), burst_size);
  lane_->set_threads({&stalls_, &bell_}, {&stalls_, &bell_});
}

TEST_F(BacklogTest, ThereIsNoBacklogWhereTheDeviceIsGoneOrABatchIsMissing) {
  make({.batches = 2, .capacity = 1024});
  forward_a_batch(800, 0);
  clock_.device_up.store(false);
  EXPECT_EQ(collect_the_backlog(), burst_size);
  lane_->abandon();
  forget_what_waits();
  clock_.device_up.store(true);
  make({.batches = 2, .capacity = 128});
  forward_a_batch(120, 0);
  EXPECT_EQ(collect_the_backlog(), 256U);
  EXPECT_EQ(collect_the_backlog(), 0U) << "both batches are sealed";
}

// What it collects it computes at once, and that is to be forwarded first: all of it.
TEST_F(LaneTest, ALaneThatComputesItselfHasNoBacklogAndForwardsAll) {
  make({.cpu_below = 100'000, .capacity = 1024});
  arrive(600);
  collect();
  arrive(300);
  const std::uint64_t batches = collected().batches_cpu.get();
  EXPECT_GT(batches, 1U);
  EXPECT_EQ(lane_->forward_round(), batches);
  EXPECT_EQ(lane_->collect_round(), burst_size);
  EXPECT_FALSE(lane_->has_backlog());
}

TEST_F(LaneTest, AFullBatchIsSealedThoughTheDeviceIsBehind) {
  make({.capacity = 128});
  time_point();
  arrive(10);
  collect();
  time_point();
  Batch* const first = sealed();
  ASSERT_NE(first, nullptr);
  grow_older(*first, 5);
  arrive(128);
  collect();
  Batch* const second = sealed();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->count, 128U);
}

TEST_F(LaneTest, ALowLoadGoesToTheCoreAndAHighOneToTheDevice) {
  make({.cpu_below = 256});
  arrive(10);
  collect();
  EXPECT_EQ(lane_->forward_round(), 1U) << "computed at once";
  cycle(245);
  EXPECT_FALSE(lane_->on_device());
  EXPECT_EQ(collected().frames_cpu.get(), 255U);
  cycle(256);
  EXPECT_TRUE(lane_->on_device());
  cycle(128);
  EXPECT_TRUE(lane_->on_device());
  EXPECT_EQ(collected().frames_gpu.get(), 128U);
  cycle(127);
  EXPECT_FALSE(lane_->on_device());
  EXPECT_EQ(collected().frames_gpu.get(), 255U) << "the cycle's batch was the device's still";
  cycle(255);
  EXPECT_EQ(collected().frames_gpu.get(), 255U);
  EXPECT_EQ(collected().frames_cpu.get(), 766U);
  EXPECT_EQ(take_out(), 1021U);
}

TEST_F(LaneTest, TheCoresBatchesDoNotOvertakeTheDevices) {
  make({.cpu_below = 256});
  cycle(256);
  arrive(100);
  collect();
  time_point();
  ASSERT_FALSE(lane_->on_device());
  Batch* const batch = sealed();
  ASSERT_NE(batch, nullptr);
  arrive(5);
  collect();
  EXPECT_EQ(collected().batches_cpu.get(), 2U);
  EXPECT_EQ(lane_->forward_round(), 0U);
  finish(*batch);
  EXPECT_EQ(lane_->forward_round(), 2U) << "a core computes now: nothing is to be seen in between";
  EXPECT_EQ(take_out(), 361U);
}

// The worker sleeps through time points while nothing goes to the device; a lane's load is still that of one cycle.
TEST_F(LaneTest, ALowLoadStaysOnTheCoreWhereTheWorkerSleeps) {
  make({.cpu_below = 256});
  for (int sleep = 0; sleep < 5; ++sleep) {
    arrive(1000);
    collect();
    time_points(70);
    EXPECT_FALSE(lane_->on_device());
    forward();
    EXPECT_EQ(take_out(), 1000U);
  }
  EXPECT_EQ(collected().frames_gpu.get(), 0U);
}

TEST_F(LaneTest, AnIdleLaneLeavesTheDeviceAtOnce) {
  make({.cpu_below = 256});
  cycle(256);
  ASSERT_TRUE(lane_->on_device());
  time_points(100);  // slept through
  EXPECT_FALSE(lane_->on_device());
}

TEST_F(LaneTest, ALaneThatWasNotRunKeepsItsDevice) {
  make({.cpu_below = 256});
  cycle(256);
  cycle(256);
  ASSERT_TRUE(lane_->on_device());
  arrive(500);
  time_points(6);
  EXPECT_TRUE(lane_->on_device());
  time_point();
  EXPECT_TRUE(lane_->on_device());
  EXPECT_EQ(collected().frames_cpu.get(), 256U) << "the first cycle";
  EXPECT_EQ(collected().frames_gpu.get(), 756U);
  time_point();
  EXPECT_FALSE(lane_->on_device());
}

TEST_F(LaneTest, ALaneWithoutAFreeBatchStallsAndKeepsItsDevice) {
  make({.cpu_below = 256, .batches = 2, .capacity = 128});
  cycle(256);
  ASSERT_TRUE(lane_->on_device());
  arrive(356);
  collect();
  Batch* const first = sealed();
  Batch* const second = sealed();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(lane_->in_flight(), 256U);
  std::uint64_t stalls = collected().receive_stalls.get();
  EXPECT_GT(stalls, 0U);
  for (int cycle = 0; cycle < 5; ++cycle) {
    time_point();
    EXPECT_TRUE(lane_->on_device());
    EXPECT_EQ(collected().receive_stalls.get(), ++stalls);
  }
  finish(*first);
  finish(*second);
  EXPECT_EQ(forward(), 2U);
  collect();
  EXPECT_TRUE(lane_->on_device());
  EXPECT_EQ(collected().receive_stalls.get(), stalls);
  EXPECT_EQ(collected().frames_gpu.get(), 356U);
  time_point();
  EXPECT_FALSE(lane_->on_device()) << "a cycle with the 100 frames that had waited, and no more of them";
}

TEST_F(LaneTest, WithoutADeviceTheCoreComputes) {
  make({});
  time_point();
  arrive(10);
  collect();
  clock_.device_up.store(false);
  arrive(10);
  collect();
  EXPECT_FALSE(lane_->on_device());
  EXPECT_EQ(sealed(), nullptr);
  EXPECT_EQ(lane_->forward_round(), 1U);
  EXPECT_EQ(take_out(), 20U);
  EXPECT_EQ(collected().frames_cpu.get(), 20U);
}

TEST_F(LaneTest, WhatTheDeviceDidNotDoIsRescuedOrDropped) {
  make({});
  time_point();
  struct Case {
    BatchState state;
    bool changes_frames;
    unsigned left, rescued, lost, reported;
  };
  for (const Case& one : {Case{BatchState::failed, false, 10, 10, 0, 0}, Case{BatchState::lost, false, 10, 20, 0, 1},
                          Case{BatchState::failed, true, 10, 30, 0, 1}, Case{BatchState::lost, true, 0, 30, 10, 2}}) {
    if (one.changes_frames) {
      peer_.changes_frames = true;
    }
    arrive(10);
    collect();
    time_point();
    Batch* const batch = sealed();
    ASSERT_NE(batch, nullptr);
    finish(*batch, one.state);
    EXPECT_EQ(lane_->forward_round(), 1U);
    EXPECT_EQ(take_out(), one.left);
    EXPECT_EQ(lane_->forwarder_counters().frames_rescued.get(), one.rescued);
    EXPECT_EQ(drops(device_lost), one.lost);
    EXPECT_EQ(peer_.batches_lost.load(), one.reported);
    EXPECT_EQ(lane_->in_flight(), 0U);
    expect_conserved();
  }
}

TEST_F(LaneTest, StoppingSealsWhatIsOpenAndWaitsForTheDevice) {
  make({});
  time_point();
  arrive(10);
  collect();
  lane_->stop_receiving();
  arrive(5);
  collect();
  Batch* const batch = sealed();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->count, 10U);
  EXPECT_FALSE(lane_->drained());
  finish(*batch);
  EXPECT_EQ(lane_->forward_round(), 1U);
  collect();
  EXPECT_TRUE(lane_->drained());
  EXPECT_EQ(take_out(), 10U);
}

// No more often than it says, however often the lane looks; and while a batch is under way its frames are what there is
// to do.
TEST_F(LaneTest, AnElementIsCalledWhileThereIsNothingToDo) {
  using Clock = std::chrono::steady_clock;
  const auto look_for = [&](std::chrono::milliseconds time) {
    const auto began = Clock::now();
    do {
      collect();
      lane_->forward_round();
    } while (Clock::now() - began < time);
    return (Clock::now() - began) / least_idle;
  };
  make({});
  look_for(3 * least_idle);
  EXPECT_EQ(peer_.idle_calls.load(), 0U) << "it does not want to be";
  peer_.wants_idle_calls();
  make({});
  std::int64_t most = 1;
  // A machine that is busy with something else may leave no time for a second one.
  for (int tries = 0; tries < 100 && peer_.idle_calls.load() < 2; ++tries) most += look_for(5 * least_idle);
  EXPECT_GE(peer_.idle_calls.load(), 2U);
  EXPECT_LE(peer_.idle_calls.load(), static_cast<std::uint64_t>(most));
  time_point();  // from now on the device computes
  arrive(4);
  collect();
  time_point();
  Batch* const batch = sealed();
  ASSERT_NE(batch, nullptr);
  const std::uint64_t before = peer_.idle_calls.load();
  look_for(3 * least_idle);
  EXPECT_EQ(peer_.idle_calls.load(), before);
  finish(*batch);
  look_for(3 * least_idle);
  EXPECT_EQ(take_out(), 4U);
  EXPECT_GT(peer_.idle_calls.load(), before);
}

TEST_F(LaneTest, WhatIsAbandonedCountsAsStopped) {
  make({});
  time_point();
  arrive(10);
  collect();
  time_point();
  ASSERT_NE(sealed(), nullptr);
  arrive(7);
  collect();
  EXPECT_EQ(lane_->in_flight(), 17U);
  lane_->abandon();
  EXPECT_EQ(drops(stopped), 17U);
  EXPECT_EQ(lane_->in_flight(), 0U);
  EXPECT_EQ(take_out(), 0U);
}

}  // namespace
}  // namespace sluice::engine
