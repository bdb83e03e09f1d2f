// The engine end to end on replay ports: conservation, order under jitter, modes, a device that fails.
#include "engine/engine.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_ring.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <random>

namespace sluice::engine {
namespace {

// Sends every frame to its port's peer; the verdict is the argument plus one, wherever it is computed.
class PeerFunction : public Function {
 public:
  explicit PeerFunction(const PortTable& ports) : ports_(ports) {}
  Expected<void> attach(device::Gpu&, const DevicePlan&) override { return {}; }
  void collect(Burst& burst, BatchWriter& batch) override {
    if (stands_still_collecting) {
      stand_still();
    }
    for (unsigned i = 0; i < burst.size(); ++i) {
      pieces.fetch_add(burst.frame(i)->nb_segs != 1);
      longest.store(std::max(longest.load(), burst.length(i)));
      batch.append(burst, i, 41);
    }
  }
  Expected<void> launch(Batch& batch, device::GpuStream&) override {
    compute(batch, 0, batch.count);
    return {};
  }
  void compute(Batch& batch, std::uint32_t first, std::uint32_t count) override {
    for (std::uint32_t i = first; i < first + count; ++i) {
      batch.verdict[i] = batch.argument[i] + 1;
    }
  }
  void forward(Batch& batch, std::uint32_t first, std::uint32_t count, Emitter& out) override {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (batch.verdict[i] != 42) {
        wrong_verdicts.fetch_add(1);
      }
      batch.verdict[i] = 0;
      out.transmit(batch, i, ports_.peer(out.rx_port()));
    }
  }
  void stand_in(Batch& batch) override { std::fill_n(batch.verdict, batch.count, 42); }
  bool recomputable() const override { return recomputable_; }
  bool device_ready() override { return ready.load(); }
  std::atomic<bool> ready{true};
  std::atomic<std::uint64_t> wrong_verdicts{0}, pieces{0};
  std::atomic<std::uint32_t> longest{0};
  void changes_frames() { recomputable_ = false; }
  // Once, at the thousandth call.
  void stand_still() {
    if (calls_.fetch_add(1) == 1000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  }
  bool stands_still_collecting = false;

 private:
  PortTable ports_;
  bool recomputable_ = true;
  std::atomic<unsigned> calls_{0};
};

// A GPU whose batches take random times, so that streams finish out of order, and which can be made to fail.
class JitterGpu : public device::Gpu {
 public:
  class Stream : public device::GpuStream {
   public:
    Stream(JitterGpu& gpu, unsigned seed) : gpu_(gpu), random_(seed) {}
    void* raw() const override { return nullptr; }
    Expected<void> mark() override {
      if (gpu_.lost() || gpu_.refuses_.exchange(false)) {
        return make_error("lost");
      }
      const auto jitter_us = std::uniform_int_distribution<std::uint64_t>(0, 400)(random_);
      due_.push_back(rte_rdtsc() + jitter_us * rte_get_tsc_hz() / 1000000);
      return {};
    }
    device::MarkState poll() override {
      if (gpu_.lost()) {
        return device::MarkState::failed;
      }
      if (due_.empty()) {
        return device::MarkState::done;
      }
      if (rte_rdtsc() < due_.front() || gpu_.hangs_.load()) {
        return device::MarkState::pending;
      }
      due_.pop_front();
      return device::MarkState::done;
    }
    unsigned pending_marks() const override { return static_cast<unsigned>(due_.size()); }

   private:
    JitterGpu& gpu_;
    std::mt19937 random_;
    std::deque<std::uint64_t> due_;
  };
  explicit JitterGpu(unsigned streams) {
    for (unsigned i = 0; i < streams; ++i) {
      streams_.push_back(std::make_unique<Stream>(*this, i));
    }
    info_.name = "jitter";
  }
  ~JitterGpu() override {
    for (void* base : memory_) {
      std::free(base);
    }
  }
  const device::GpuInfo& info() const override { return info_; }
  unsigned stream_count() const override { return static_cast<unsigned>(streams_.size()); }
  device::GpuStream& stream(unsigned i) override { return *streams_[i]; }
  Expected<void> register_host(void*, std::size_t) override { return {}; }
  Expected<void*> allocate_host(std::size_t bytes) override {
    memory_.push_back(std::aligned_alloc(64, bytes));
    std::memset(memory_.back(), 0, bytes);
    return memory_.back();
  }
  Expected<void*> allocate_device(std::size_t bytes) override { return allocate_host(bytes); }
  bool lost() const override { return lost_.load(); }
  std::string why() const override { return "told to fail"; }
  void lose(const std::string&) override { lost_.store(true); }
  // One launch fails, and what was launched before goes on.
  void refuse() { refuses_.store(true); }
  void hang() { hangs_.store(true); }

 private:
  device::GpuInfo info_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<void*> memory_;
  std::atomic<bool> lost_{false}, refuses_{false}, hangs_{false};
};

struct Trial {
  std::unique_ptr<Engine> engine;
  std::uint64_t out_of_order = 0;
  std::uint64_t seen = 0;
};

constexpr unsigned pool_frames = 2048;

Options replay_options(const std::string& device) {
  Options options;
  options.device = device;
  options.deadline = std::chrono::milliseconds(20);
  options.batch = 256;
  options.batches = 8;
  options.cpu_below = 0;
  options.memory.frames = pool_frames;
  options.ports.resize(2);
  options.ports[0].name = "a";
  options.ports[0].device = "replay,mix=64,frames=" + std::to_string(pool_frames);
  options.ports[1].name = "b";
  options.ports[1].device = "replay,mix=imix,frames=" + std::to_string(pool_frames);
  return options;
}

std::unique_ptr<Engine> make_engine(const Options& options, std::unique_ptr<JitterGpu> gpu = nullptr) {
  const FunctionMaker maker = [](const PortTable& ports) -> Expected<std::unique_ptr<Function>> {
    return std::make_unique<PeerFunction>(ports);
  };
  auto engine =
      gpu ? Engine::create(options, maker,
                           [&](int, unsigned) -> Expected<std::unique_ptr<device::Gpu>> { return std::move(gpu); })
          : Engine::create(options, maker);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(*engine) : nullptr;
}

// Frames of a queue come out in the order in which they went in: each is the successor of the one before it, in the
// pool's order of the last round.
void watch_order(Trial& run, std::size_t out_port) {
  run.engine->port(out_port).replay()->observe(
      [&run, last = std::uint32_t{pool_frames - 1}](const rte_mbuf* frame) mutable {
        const std::uint32_t index = port::ReplayPort::frame_index(frame);
        run.out_of_order += index != (last + 1) % pool_frames;
        last = index;
        ++run.seen;
      });
}

void run_for(Engine& engine, std::chrono::milliseconds time) {
  ASSERT_TRUE(engine.start());
  std::this_thread::sleep_for(time);
  engine.stop();
}

void expect_conserved(const EngineStats& stats) {
  EXPECT_GT(stats.total.rx_frames, 10000U);
  EXPECT_EQ(stats.total.in_flight, 0U);
  EXPECT_EQ(stats.imbalance(), 0);
}

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
  EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U);
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
  EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U);
}

TEST(Engine, AFailingGpuCostsNoFrame) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  watch_order(run, 1);
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(run.engine->stats().gpu_up);
  const std::uint64_t then = run.engine->stats().total.tx_frames;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.total.tx_frames, then);
  EXPECT_GT(stats.total.batches_rescued, 0U);
  EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
  EXPECT_EQ(run.out_of_order, 0U);
  EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U);
}

// What the worker alone sees: without lose() the tables would wait for that GPU for ever.
TEST(Engine, AGpuThatRefusesALaunchIsLostForEverybody) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.refuse();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(run.engine->stats().gpu_up);
  EXPECT_TRUE(handle.lost());
  run.engine->stop();
  expect_conserved(run.engine->stats());
}

// A device that has still to be told something is no device yet: lanes compute, and no frame waits.
TEST(Engine, AGpuTakesPartWhenTheFunctionSaysSo) {
  Trial run{make_engine(replay_options("cuda:0"), std::make_unique<JitterGpu>(2))};
  ASSERT_TRUE(run.engine);
  auto& function = static_cast<PeerFunction&>(run.engine->function());
  function.ready.store(false);
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const EngineStats before = run.engine->stats();
  EXPECT_FALSE(before.gpu_up);
  EXPECT_EQ(before.total.frames_gpu, 0U);
  EXPECT_GT(before.total.frames_cpu, 0U);
  function.ready.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(run.engine->stats().gpu_up);
  run.engine->stop();
  EXPECT_GT(run.engine->stats().total.frames_gpu, 0U);
  expect_conserved(run.engine->stats());
}

// A function that changes frames cannot do it twice: what a failing device had begun is dropped under a name.
TEST(Engine, WhatAFailingGpuHalfDidIsDroppedWhenItCannotBeDoneAgain) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  static_cast<PeerFunction&>(run.engine->function()).changes_frames();
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.lose("for a test");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.drops[device_lost], 0U);
  EXPECT_EQ(stats.total.dropped, stats.drops[device_lost]);
  EXPECT_GT(stats.total.frames_cpu, 0U);
}

// net_ring gives what is put into its ring: frames in three buffers, of which one fits into the first and one does not.
TEST(Engine, FramesInSeveralPiecesAreJoinedOrDropped) {
  Options options = replay_options("cpu");
  options.ports[0].device = "net_ring0";
  options.ports[1].device = "net_ring1";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  rte_ring* ring = rte_ring_lookup("ETH_RXTX0_net_ring0");
  ASSERT_NE(ring, nullptr);
  auto pool = port::make_frame_pool("pieces-test", 64, 1024, SOCKET_ID_ANY);
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
  const auto& function = static_cast<PeerFunction&>(run.engine->function());
  EXPECT_EQ(stats.imbalance(), 0);
  EXPECT_EQ(stats.drops[in_pieces], 1U);
  EXPECT_GT(stats.total.tx_frames, 0U);
  EXPECT_EQ(function.pieces.load(), 0U);
  EXPECT_EQ(function.longest.load(), 900U);
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
  // The EAL has pinned this thread to one core.
  cpu_set_t pinned;
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof pinned, &pinned);
  for (long core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) {
    CPU_SET(core, &set);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
  sched_getaffinity(0, sizeof set, &set);
  if (CPU_COUNT(&set) < 2) {
    GTEST_SKIP() << "one core";
  }
  for (const bool on_gpu : {false, true}) {
    Options options = replay_options(on_gpu ? "cuda:0" : "cpu");
    options.poll = Poll::adaptive;
    for (int core = 0; options.forwarder_cores.empty(); ++core) {
      if (CPU_ISSET(core, &set)) {
        options.forwarder_cores.push_back(core);
      }
    }
    Trial run{make_engine(options, on_gpu ? std::make_unique<JitterGpu>(4) : nullptr)};
    ASSERT_TRUE(run.engine);
    watch_order(run, 1);
    run_for(*run.engine, std::chrono::milliseconds(300));
    const EngineStats stats = run.engine->stats();
    expect_conserved(stats);
    EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames);
    EXPECT_GT(on_gpu ? stats.total.frames_gpu : stats.total.frames_cpu, 10000U);
    EXPECT_EQ(run.out_of_order, 0U);
    EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U);
  }
  sched_setaffinity(0, sizeof pinned, &pinned);
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
    for (const EngineStats::Lane& lane : stats.lanes) {
      EXPECT_GT(lane.tx_frames, 100U) << "port " << lane.port;
    }
    EXPECT_EQ(stats.total.tx_frames + stats.drops[lane_full], stats.total.rx_frames);
    EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U);
  }
}

// A lane that stands still for 30 ms makes frames late; whether that is excused depends on where it stood.
void expect_late_frames(bool in_driver) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::milliseconds(10);
  options.ports[0].device += ",rate=20000";
  options.ports[1].device += ",rate=20000";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  auto& function = static_cast<PeerFunction&>(run.engine->function());
  if (in_driver) {
    run.engine->port(1).replay()->observe([&](const rte_mbuf*) { function.stand_still(); });
  } else {
    function.stands_still_collecting = true;
  }
  run_for(*run.engine, std::chrono::milliseconds(300));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_GT(stats.total.misses, 0U);
  EXPECT_LE(stats.total.misses_away, stats.total.misses);
  const auto ticks = static_cast<std::uint64_t>(29e6 * run.engine->tsc_per_ns());
  if (in_driver) {
    EXPECT_LT(stats.total.misses_away, stats.total.misses);
    EXPECT_LT(stats.lanes_away.longest, ticks);
  } else {
    EXPECT_GT(stats.total.misses_away, 0U);
    EXPECT_GE(stats.lanes_away.longest, ticks);
  }
}

TEST(Engine, LatenessWhileAThreadWasKeptAwayIsToldApart) {
  expect_late_frames(false);
}

TEST(Engine, LatenessInADriversTransmitIsTheEnginesOwn) {
  expect_late_frames(true);
}

TEST(Engine, WhatWasLaunchedBeforeARefusedLaunchIsWaitedFor) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  static_cast<PeerFunction&>(run.engine->function()).changes_frames();
  watch_order(run, 1);
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  handle.refuse();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_FALSE(stats.gpu_up);
  // Only the batch whose launch failed is in doubt.
  EXPECT_GT(stats.drops[device_lost], 0U);
  EXPECT_LE(stats.drops[device_lost], run.engine->options().batch);
}

TEST(Engine, ADeviceThatHangsIsGivenUpOn) {
  auto gpu = std::make_unique<JitterGpu>(2);
  JitterGpu& handle = *gpu;
  Trial run{make_engine(replay_options("cuda:0"), std::move(gpu))};
  ASSERT_TRUE(run.engine);
  ASSERT_TRUE(run.engine->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  handle.hang();
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  const std::uint64_t then = run.engine->stats().total.frames_cpu;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GT(run.engine->stats().total.frames_cpu, then);
  run.engine->stop();
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  EXPECT_FALSE(stats.gpu_up);
}

TEST(Engine, ZeroLoadForwardsWithTheConstantVerdict) {
  for (const char* device : {"cpu", "cuda:0"}) {
    Options options = replay_options(device);
    options.mode = Mode::zero_load;
    Trial run{make_engine(options)};
    ASSERT_TRUE(run.engine);
    run_for(*run.engine, std::chrono::milliseconds(150));
    const EngineStats stats = run.engine->stats();
    expect_conserved(stats);
    EXPECT_EQ(stats.total.tx_frames, stats.total.rx_frames) << device;
    EXPECT_EQ(static_cast<PeerFunction&>(run.engine->function()).wrong_verdicts.load(), 0U) << device;
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

TEST(Engine, OfferedRateIsKeptAndALowLoadStaysOnTheCore) {
  Options options = replay_options("cuda:0");
  options.cpu_below = -1;
  options.ports[0].device += ",rate=5000";
  options.ports[1].device += ",rate=5000";
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  run_for(*run.engine, std::chrono::milliseconds(500));
  const EngineStats stats = run.engine->stats();
  EXPECT_NEAR(static_cast<double>(stats.total.rx_frames), 5000.0, 2000.0);
  // A machine that keeps the lane from running makes it catch up in a larger batch now and then.
  EXPECT_LT(stats.total.frames_gpu * 4, stats.total.rx_frames);
  EXPECT_EQ(stats.imbalance(), 0);
}

// The worker sleeps through time points while nothing goes to the device; a lane's load is still that of one cycle. The
// load of all that it may sleep through is well above cpu_below here.
TEST(Engine, ALowLoadStaysOnTheCoreWhereTheWorkerSleeps) {
  Options options = replay_options("cuda:0");
  options.cpu_below = 256;
  options.deadline = std::chrono::milliseconds(1);
  options.poll = Poll::adaptive;
  for (PortOptions& port : options.ports) {
    port.device += ",rate=50000";
  }
  Trial run{make_engine(options, std::make_unique<JitterGpu>(4))};
  ASSERT_TRUE(run.engine);
  run_for(*run.engine, std::chrono::milliseconds(1000));
  const EngineStats stats = run.engine->stats();
  expect_conserved(stats);
  // A machine that keeps the lane from running makes it catch up in a larger batch now and then.
  EXPECT_LT(stats.total.frames_gpu * 20, stats.total.rx_frames);
}

// A replay port cannot wake its lane, which finds the frame after its sleep.
TEST(Engine, ALaneThatSleepsKeepsAShortDeadline) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::milliseconds(1);
  options.poll = Poll::adaptive;
  for (PortOptions& port : options.ports) {
    port.device += ",rate=20";
  }
  Trial run{make_engine(options)};
  ASSERT_TRUE(run.engine);
  EXPECT_EQ(run.engine->timing().sleep, longest_lane_sleep(options.deadline));
  EXPECT_EQ(run.engine->timing().bound, inline_batch_time + longest_lane_sleep(options.deadline));
  run_for(*run.engine, std::chrono::milliseconds(1500));
  const EngineStats stats = run.engine->stats();
  EXPECT_GT(stats.total.rx_frames, 30U);
  // The machine may wake a thread late; most frames are far from their deadline.
  const double half_ns = static_cast<double>(stats.latency.percentile(0.5)) / run.engine->tsc_per_ns();
  EXPECT_LT(half_ns, 5e5);
}

TEST(Engine, RefusesADeadlineThatTheCpuCannotKeep) {
  Options options = replay_options("cpu");
  options.deadline = std::chrono::nanoseconds(1);
  const auto engine = Engine::create(options, [](const PortTable& ports) -> Expected<std::unique_ptr<Function>> {
    return std::make_unique<PeerFunction>(ports);
  });
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("on the CPU"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("exceeds its deadline of 1ns"), std::string::npos) << engine.error().message;
}

TEST(Engine, FallingBackToTheCpuSaysItsBound) {
  Options options = replay_options("auto");
  options.poll = Poll::busy;
  const auto engine = Engine::create(
      options,
      [](const PortTable& ports) -> Expected<std::unique_ptr<Function>> {
        return std::make_unique<PeerFunction>(ports);
      },
      [](int, unsigned) -> Expected<std::unique_ptr<device::Gpu>> { return make_error("there is none"); });
  ASSERT_TRUE(engine) << engine.error().message;
  std::string notes;
  for (const std::string& note : (*engine)->notes()) {
    notes += note + "\n";
  }
  EXPECT_NE(notes.find("device: CPU, because there is none\n"), std::string::npos) << notes;
  EXPECT_NE(notes.find("50.0 us of a batch = 50.0 us, deadline 20000.0 us\n"), std::string::npos) << notes;
}

TEST(Engine, RefusesABoundBeyondItsDeadline) {
  Options options = replay_options("cuda:0");
  options.deadline = std::chrono::milliseconds(1);
  options.cycle = std::chrono::microseconds(400);
  options.poll = Poll::busy;
  const auto engine = Engine::create(options, [](const PortTable& ports) -> Expected<std::unique_ptr<Function>> {
    return std::make_unique<PeerFunction>(ports);
  });
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("exceeds its deadline"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("cycle can be 330us"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace sluice::engine
