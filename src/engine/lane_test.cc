// A lane driven by hand in one thread: the test raises the time points, takes the sealed batches as the worker does and
// says when the device is done with them. How fast the machine is decides nothing: a cycle lasts many minutes, a batch
// grows older by changing when it was sealed, and a sleep may take longer.
#include "engine/lane.h"

#include <gtest/gtest.h>
#include <rte_ring.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "engine/trial_test.h"
#include "port/frame_pool.h"

namespace sluice::engine {
namespace {

constexpr unsigned test_frames = 2048;
constexpr std::uint64_t cycle_tsc = 1'000'000'000'000;

struct LaneSetup {
  std::uint32_t cpu_below = 0;  // on the device from the first time point on
  std::uint32_t overlap = 1;
  std::uint32_t batches = 4;
  std::uint32_t capacity = 256;
  std::uint64_t admission_tsc = 0;  // the deadline of admission; 0: none
};

class LaneTest : public testing::Test {
 protected:
  static std::unique_ptr<port::Port> open(const std::string& name, const std::string& device) {
    port::PortOptions options;
    options.name = name;
    options.device = device;
    port::MemoryOptions memory;
    memory.frames = 256;
    auto port = port::Port::open(options, memory, 1);
    EXPECT_TRUE(port) << port.error().message;
    return port ? std::move(*port) : nullptr;
  }
  static void SetUpTestSuite() {
    wires_[0] = open("in", "net_ring2");
    wires_[1] = open("out", "net_ring3");
  }
  static void TearDownTestSuite() {
    for (auto& wire : wires_) {
      wire.reset();
    }
  }

  void SetUp() override {
    auto pool = port::make_frame_pool("lane-test", test_frames, 256, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    in_ = rte_ring_lookup("ETH_RXTX0_net_ring2");
    out_ = rte_ring_lookup("ETH_RXTX0_net_ring3");
    ASSERT_TRUE(wires_[0] && wires_[1] && in_ != nullptr && out_ != nullptr);
  }

  // `replay`: the port to receive from, instead of the ring that arrive() fills.
  void make(const LaneSetup& setup, port::Port* replay = nullptr) {
    auto ring = BatchRing::create({0, setup.batches, setup.capacity, 0}, [this](std::size_t bytes) -> Expected<void*> {
      memory_.emplace_back(std::aligned_alloc(64, bytes), &std::free);
      std::memset(memory_.back().get(), 0, bytes);
      return memory_.back().get();
    });
    ASSERT_TRUE(ring) << ring.error().message;
    const bool refuses = setup.admission_tsc != 0;
    lane_ = std::make_unique<Lane>(Lane::Parts{.index = 0,
                                               .port = 0,
                                               .queue = 0,
                                               .ports = {replay != nullptr ? replay : wires_[0].get(), wires_[1].get()},
                                               .tx_queue = 0,
                                               .host_ports = host_ports_,
                                               .drains_injected = true,
                                               .function = &function_,
                                               .clock = &clock_,
                                               .mode = Mode::full,
                                               .cpu_below = setup.cpu_below,
                                               .deadline_tsc = refuses ? setup.admission_tsc : 10 * cycle_tsc,
                                               .cycle_tsc = cycle_tsc,
                                               .overlap = setup.overlap,
                                               .refuses_overdue = refuses,
                                               .shares_queue = false},
                                   std::move(*ring));
    lane_->set_threads({&away_, &bell_}, {&away_, &bell_});
    clock_.device_up.store(true);
  }

  // What came in left, is under a name, or is there; and no frame has got lost.
  void TearDown() override {
    if (!lane_) {
      return;
    }
    expect_conserved();
    lane_->abandon();
    expect_conserved();
    EXPECT_EQ(lane_->in_flight(), 0U);
    take_out();
    void* frame = nullptr;
    while (rte_ring_dequeue(in_, &frame) == 0) {
      rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
    EXPECT_EQ(rte_mempool_avail_count(pool_.get()), test_frames);
    EXPECT_EQ(function_.wrong_verdicts.load(), 0U);
  }

  void expect_conserved() const {
    std::uint64_t out = lane_->in_flight();
    for (const LaneCounters* side : {&lane_->collector_counters(), &lane_->forwarder_counters()}) {
      for (const Counter& drops : side->drops) {
        out += drops.get();
      }
      for (const Counter& sent : side->tx_frames) {
        out += sent.get();
      }
    }
    EXPECT_EQ(lane_->collector_counters().rx_frames.get(), out);
  }

  void arrive(unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++arrived_) {
      rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
      ASSERT_NE(frame, nullptr);
      std::memcpy(rte_pktmbuf_append(frame, 60), &arrived_, sizeof arrived_);
      ASSERT_EQ(rte_ring_enqueue(in_, frame), 0);
    }
  }
  // Until a round receives nothing.
  void collect() {
    while (lane_->collect_round() != 0) {
    }
  }
  void time_points(unsigned cycles) {
    clock_.epoch.fetch_add(cycles);
    collect();
  }
  void time_point() { time_points(1); }
  // A cycle with so many frames, whatever computes them; and what it left behind is done.
  void cycle(unsigned frames) {
    arrive(frames);
    collect();
    time_point();
    while (Batch* const batch = sealed()) {
      finish(*batch);
    }
    lane_->forward_round();
  }

  // As the worker takes them; null: none.
  Batch* sealed() {
    Batch* const batch = lane_->ring().next_sealed();
    if (batch != nullptr) {
      batch->state.store(BatchState::in_flight);
    }
    return batch;
  }
  void finish(Batch& batch, BatchState state = BatchState::done) {
    if (state == BatchState::done) {
      function_.compute(batch, 0, batch.count);
    }
    batch.state.store(state);
  }
  static void grow_older(Batch& batch, double cycles) {
    batch.sealed_tsc -= static_cast<std::uint64_t>(cycles * static_cast<double>(cycle_tsc));
  }

  // How many frames have left since the last call, and whether in the order of arrival.
  unsigned take_out() {
    unsigned count = 0;
    for (void* out = nullptr; rte_ring_dequeue(out_, &out) == 0; ++count, ++left_) {
      auto* const frame = static_cast<rte_mbuf*>(out);
      if (arrived_ != 0) {
        EXPECT_EQ(std::memcmp(rte_pktmbuf_mtod(frame, const void*), &left_, sizeof left_), 0);
      }
      rte_pktmbuf_free(frame);
    }
    return count;
  }
  std::uint64_t drops(packet::Reason reason) const {
    return lane_->collector_counters().drops[reason].get() + lane_->forwarder_counters().drops[reason].get();
  }
  const LaneCounters& collected() const { return lane_->collector_counters(); }

  port::FramePool pool_;
  static inline std::unique_ptr<port::Port> wires_[2];
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  PeerFunction function_{PortTable({{.name = "0", .mac = {}, .peer = 1}, {.name = "1", .mac = {}, .peer = 0}})};
  HostPort host_ports_[2];
  Clock clock_;
  AwayWatch away_;
  Bell bell_;
  std::unique_ptr<Lane> lane_;
  rte_ring *in_ = nullptr, *out_ = nullptr;
  std::uint32_t arrived_ = 0, left_ = 0;
};

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

TEST_F(LaneTest, SealsWhenThereIsNoRoomForABurst) {
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
  EXPECT_EQ(lane_->forward_round(), 2U);
  EXPECT_EQ(take_out(), 121U);
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
  EXPECT_EQ(lane_->forward_round(), 2U);
  EXPECT_EQ(take_out(), 361U);
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
  EXPECT_EQ(lane_->forward_round(), 2U);
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
    unsigned left, rescued, lost;
  };
  for (const Case& one : {Case{BatchState::failed, false, 10, 10, 0}, Case{BatchState::lost, false, 10, 20, 0},
                          Case{BatchState::failed, true, 10, 30, 0}, Case{BatchState::lost, true, 0, 30, 10}}) {
    if (one.changes_frames) {
      function_.changes_frames();
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

// A replay port says how long its frames have waited: here at least as long as the test sleeps.
TEST_F(LaneTest, WhatCannotLeaveInTimeIsRefused) {
  for (const bool in_time : {false, true}) {
    const auto port = open("late", "replay,mix=64,frames=64,rate=1e6");
    ASSERT_TRUE(port);
    make({.admission_tsc = rte_get_tsc_hz() / 100 * (in_time ? 100'000 : 1)}, port.get());
    EXPECT_EQ(lane_->collect_round(), 0U) << "a port's time begins with the first look";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(lane_->collect_round(), 64U);
    EXPECT_EQ(lane_->in_flight(), in_time ? 64U : 0U);
    EXPECT_EQ(drops(overdue), in_time ? 0U : 64U);
    expect_conserved();
    lane_->abandon();
  }
}

}  // namespace
}  // namespace sluice::engine
