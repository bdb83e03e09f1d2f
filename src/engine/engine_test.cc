// The engine end to end on replay ports: what comes in goes out, in order, in every mode and on every device.
#include "engine/engine.h"

#include <gtest/gtest.h>
#include <rte_ring.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "../tests/support/gpu.h"
#include "base/machine.h"
#include "engine/topology.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

TEST(Engine, CpuForwardsEverythingInOrder) {
  Trial run{make_engine(replay_options("cpu"))};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  run_for(*run.engine, std::chrono::milliseconds(200));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
  EXPECT_EQ(stats.total.frames_cpu, stats.total.rx_frames);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_GT(run.seen, 1000U);
  EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
  EXPECT_EQ(stats.latency.total(), stats.total.measured);
  EXPECT_EQ(stats.total.measured, stats.total.tx_frames);
}

TEST(Engine, JitterOnFourStreamsReordersNothing) {
  Trial run{make_engine(replay_options("cuda:0"), std::make_unique<JitterGpu>(4))};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  run_for(*run.engine, std::chrono::milliseconds(400));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.total.frames_gpu, 0U);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
}

// net_ring gives what is put into its ring: frames in three buffers, of which one fits into the first and one does not.
TEST(Engine, FramesInSeveralBuffersAreLinearizedOrDropped) {
  Options options = replay_options("cpu");
  options.ports[0].device = "net_ring0";
  options.ports[1].device = "net_ring1";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  rte_ring* ring = rte_ring_lookup("ETH_RXTX0_net_ring0");
  ASSERT_NE(ring, nullptr);
  auto pool = port::make_frame_pool("linearize-test", 64, 1024, SOCKET_ID_ANY);
  ASSERT_TRUE(pool) << pool.error().message;
  for (const std::uint16_t bytes : {300, 900}) {
    rte_mbuf* head = rte_pktmbuf_alloc(pool->get());
    rte_pktmbuf_append(head, bytes);
    for (int piece = 0; piece < 2; ++piece) {
      rte_mbuf* next = rte_pktmbuf_alloc(pool->get());
      rte_pktmbuf_append(next, bytes);
      ASSERT_EQ(rte_pktmbuf_chain(head, next), 0);
    }
    ASSERT_EQ(rte_ring_enqueue(ring, head), 0);
  }
  run_for(*run.engine, std::chrono::milliseconds(50));
  const EngineStats stats = run.engine->stats();
  const auto& peer = peer_of(*run.engine);
  EXPECT_EQ(stats.imbalance(), 0);
  EXPECT_EQ(stats.drops[in_pieces], 1U);
  EXPECT_GT(stats.total.tx_frames, 0U);
  EXPECT_EQ(peer.pieces.load(), 0U);
  EXPECT_EQ(peer.longest.load(), 900U);
  // The rings outlive the ports; what is left in them goes back before its pool does.
  for (const char* name : {"ETH_RXTX0_net_ring0", "ETH_RXTX0_net_ring1"}) {
    void* frame = nullptr;
    for (rte_ring* left = rte_ring_lookup(name); left != nullptr && rte_ring_dequeue(left, &frame) == 0;) {
      rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
  }
  EXPECT_EQ(rte_mempool_avail_count(pool->get()), 64U);
}

TEST(Engine, ASeparateForwarderKeepsOrderOnEveryDevice) {
  const AllCores cores;
  if (cores.count() < 2) GTEST_SKIP() << "one core";
  for (const bool on_gpu : {false, true}) {
    Options options = replay_options(on_gpu ? "cuda:0" : "cpu");
    options.poll = Poll::adaptive;
    options.forwarder_cores = {cores.first()};
    Trial run{make_engine(options, on_gpu ? std::make_unique<JitterGpu>(4) : nullptr)};
    ASSERT_TRUE(run.engine);
    watch_order(run, 1);
    run_for(*run.engine, std::chrono::milliseconds(300));
    const EngineStats stats = run.engine->stats();
    expect_conserved(stats);
    EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
    EXPECT_GT(on_gpu ? stats.total.frames_gpu : stats.total.frames_cpu, 10000U);
    EXPECT_EQ(run.out_of_order, 0U);
    EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
  }
}

TEST(Engine, OtherThreadsKeepOffTheCoresOfLanesWhileItRuns) {
  // Of a thread that may run on all cores: the EAL has pinned this one.
  std::thread([] {
    cpu_set_t set;
    std::fill_n(reinterpret_cast<unsigned char*>(&set), sizeof set, 0xff);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    const std::vector<int> all = allowed_cores();
    if (all.size() < 2) {
      GTEST_SKIP() << "one core";
    }
    Options options = replay_options("cpu");
    options.cores = {all.back()};
    Trial run{make_engine(options)};
    ASSERT_TRUE(run.engine);
    run.engine->start();
    EXPECT_EQ(allowed_cores(), std::vector(all.begin(), all.end() - 1));
    EXPECT_EQ(this_machine().cores, all) << "a file that is checked meanwhile is checked for the whole machine";
    run.engine->stop();
    EXPECT_EQ(allowed_cores(), all);
  }).join();
}

TEST(Engine, LanesShareAQueueAndLoseNothing) {
  for (const bool on_gpu : {false, true}) {
    Options options = replay_options(on_gpu ? "cuda:0" : "cpu");
    options.ports[0].lanes = 3;
    options.ports[1].lanes = 2;
    options.ports[1].device = "replay,mix=imix,rate=100000,frames=" + std::to_string(pool_frames);
    Trial run{make_engine(options, on_gpu ? std::make_unique<JitterGpu>(4) : nullptr)};
    ASSERT_TRUE(run.engine);
    run_for(*run.engine, std::chrono::milliseconds(300));
    const EngineStats stats = run.engine->stats();
    expect_conserved(stats);
    ASSERT_EQ(stats.lanes.size(), 5U);
    EXPECT_EQ(run.engine->port_table()[0].lanes, 3U);
    EXPECT_EQ(run.engine->port_table()[1].lanes, 2U);
    for (const EngineStats::Lane& lane : stats.lanes) {
      EXPECT_GT(lane.tx_frames, 100U) << "port " << lane.port;
    }
    EXPECT_EQ(stats.total.tx_frames + stats.drops[lane_full], stats.total.rx_frames);
    EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U);
  }
}

TEST(Engine, ZeroLoadForwardsWithTheConstantVerdict) {
  for (const std::string device : {"cpu", "cuda:0"}) {
    if (const std::string why = device == "cpu" ? "" : test::why_no_gpu(); !why.empty()) {
      GTEST_SKIP() << "the CPU's part passed; " << why;
    }
    Options options = replay_options(device);
    options.mode = Mode::zero_load;
    Trial run{make_engine(options)};
    ASSERT_TRUE(run.engine);
    run_for(*run.engine, std::chrono::milliseconds(150));
    const EngineStats stats = run.engine->stats();
    expect_conserved(stats);
    EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames) << device;
    EXPECT_EQ(peer_of(*run.engine).wrong_answers.load(), 0U) << device;
  }
}

TEST(Engine, CollectorOnlySendsNothingAndCountsAll) {
  Options options = replay_options("cpu");
  options.mode = Mode::collector_only;
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  run_for(*run.engine, std::chrono::milliseconds(100));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_EQ(stats.total.tx_frames, 0U);
  EXPECT_EQ(stats.drops[measured_only], stats.total.rx_frames);
}

TEST(Engine, AFrameThatIsOverdueIsRefusedByDefaultWithAGpuAlone) {
  struct Case {
    Admit admission;
    bool on_gpu, refuses;
  };
  for (const Case& one :
       {Case{Admit::automatic, true, true}, Case{Admit::automatic, false, false}, Case{Admit::in_time, true, true},
        Case{Admit::in_time, false, true}, Case{Admit::all, true, false}, Case{Admit::all, false, false}}) {
    Options options = replay_options(one.on_gpu ? "cuda:0" : "cpu");
    options.admission = one.admission;
    const auto engine = make_engine(options, one.on_gpu ? std::make_unique<JitterGpu>(2) : nullptr);
    ASSERT_TRUE(engine);
    ASSERT_EQ(engine->lanes().size(), 2U);
    for (const auto& lane : engine->lanes()) {
      EXPECT_EQ(lane->parts().refuses_overdue, one.refuses)
          << admit_name(one.admission) << (one.on_gpu ? ", GPU" : ", CPU");
    }
  }
  EXPECT_EQ(Options().admission, Admit::automatic);
}

// A batch smaller than a burst would be written past its end.
TEST(Engine, ANumberOutsideItsRangeIsRefused) {
  struct Case {
    unsigned Options::*number;
    unsigned value;
    const char* says;
  };
  for (const Case& one : {Case{&Options::batch, 63, "[engine] batch = 63: allowed is from 64 to 65536"},
                          Case{&Options::batch, 65537, "[engine] batch = 65537: allowed is from 64 to 65536"},
                          Case{&Options::batches, 1, "[engine] batches = 1: allowed is from 2 to 32"},
                          Case{&Options::streams, 33, "[engine] streams = 33: allowed is from 1 to 32"},
                          Case{&Options::overlap, 0, "[engine] overlap = 0: allowed is from 1 to 8"}}) {
    Options options = replay_options("cpu");
    options.*one.number = one.value;
    bool asked = false;
    const auto engine = Engine::create(options, [&](const PortTable&) -> Expected<std::unique_ptr<Pipeline>> {
      asked = true;
      return make_error("asked for a pipeline");
    });
    ASSERT_FALSE(engine) << one.says;
    EXPECT_EQ(engine.error().message, one.says);
    EXPECT_FALSE(asked);
  }
}

}  // namespace
}  // namespace sluice::engine
