// For tests of the engine end to end: two replay ports, a function that only forwards, a GPU with moods, and what every
// run must keep to.
#pragma once

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/emitter.h"
#include "engine/engine.h"

namespace sluice::engine {

// Sends every frame to its port's peer; the answer is what classify() asked plus one, wherever it is computed.
class PeerElement : public Element,
                    public Timer,
                    public Recovery,
                    public DeviceCycle,
                    public BoundedWork,
                    public NullDevice {
 public:
  struct Area {
    std::uint32_t asked, answer;
  };
  explicit PeerElement(const PortTable& ports) : ports_(ports) {}
  Area* of(const Batch& batch) const { return reinterpret_cast<Area*>(area(batch)); }

  Shape shape() const override { return {.bytes_per_frame = sizeof(Area), .on_device = true, .ends_chain = true}; }
  void* find_trait(std::string_view name) override {
    if (name == Timer::trait_name && !keeps_time_) return nullptr;
    return offer<Timer, Recovery, DeviceCycle, BoundedWork, NullDevice>(name, this);
  }
  void classify(Batch& batch, Span span) override {
    if (stands_still && calls_.fetch_add(1) == 100) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      pieces.fetch_add(batch.mbuf[i]->nb_segs != 1);
      longest.store(std::max<std::uint32_t>(longest.load(), batch.length[i]));
      of(batch)[i].asked = 41;
      if (gives_to_host) batch.to_host(i);
    }
  }
  Expected<void> launch(Batch& batch, device::GpuStream&) override {
    devices_used.fetch_or(1U << batch.device);
    answer(batch, {0, batch.count});
    return {};
  }
  void compute(Batch& batch, Span span) override {
    work(core_ticks_per_frame * span.count);
    answer(batch, span);
  }
  // In the hundredth call from now on.
  void stand_still_again() {
    calls_.store(0);
    stands_still = true;
  }
  static void work(std::uint64_t ticks) {
    for (const std::uint64_t end = rte_rdtsc() + ticks; rte_rdtsc() < end;) {
    }
  }
  std::uint64_t bounded_ticks(const Batch& batch) const override { return forwarding_ticks_per_frame * batch.count; }
  void answer(Batch& batch, Span span) {
    if (while_computing) {
      while_computing(batch);
    }
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      of(batch)[i].answer = of(batch)[i].asked + 1;
    }
  }
  void apply(Batch& batch, Span span, Emitter&) override {
    work(forwarding_ticks_per_frame * span.count);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (!batch.goes_on(i)) continue;
      if (of(batch)[i].answer != 42) {
        wrong_answers.fetch_add(1);
      }
      of(batch)[i].answer = 0;
      batch.send(i, ports_.peer(batch.row[i].port));
    }
  }
  void idle(std::uint32_t, std::uint64_t, Emitter&) override { idle_calls.fetch_add(1); }
  void null_result(Batch& batch) override {
    for (std::uint32_t i = 0; i < batch.count; ++i) of(batch)[i].answer = 42;
  }
  void lost(Batch& batch) override {
    batches_lost.fetch_add(1);
    if (!changes_frames) return;
    for (std::uint32_t i = 0; i < batch.count; ++i) batch.drop(i, device_lost);
  }
  Expected<void> begin_cycle(std::uint32_t, device::GpuStream&) override { return {}; }
  bool device_ready(std::uint32_t) override { return ready.load(); }
  void device_gone(std::uint32_t device) override { devices_gone.fetch_or(1U << device); }
  std::atomic<bool> ready{true};
  std::atomic<std::uint64_t> wrong_answers{0}, pieces{0}, batches_lost{0}, idle_calls{0};
  std::atomic<std::uint32_t> longest{0}, devices_used{0}, devices_gone{0};
  void wants_idle_calls() { keeps_time_ = true; }
  std::function<void(Batch&)> while_computing;   // set before lanes run
  std::uint64_t core_ticks_per_frame = 0;        // what computing takes a core, and no device
  std::uint64_t forwarding_ticks_per_frame = 0;  // with a bound
  bool changes_frames = false;                   // so that a batch that may have been begun is lost
  bool gives_to_host = false;                    // every frame
  std::atomic<bool> stands_still{false};         // for 30 ms, once, when it classifies for the hundredth time

 private:
  PortTable ports_;
  bool keeps_time_ = false;
  std::atomic<unsigned> calls_{0};
};

// A pipeline of one element.
inline std::unique_ptr<Pipeline> pipeline_of(std::unique_ptr<Element> element) {
  std::vector<std::unique_ptr<Element>> elements;
  elements.push_back(std::move(element));
  return std::make_unique<Pipeline>(std::move(elements));
}
inline PeerElement& peer_of(Engine& engine) {
  return static_cast<PeerElement&>(*engine.pipeline().elements().back());
}

// A GPU whose batches take random times, so that streams finish out of order, and which can be made to fail.
class JitterGpu : public device::Gpu {
 public:
  class Stream : public device::GpuStream {
   public:
    Stream(JitterGpu& gpu, unsigned seed) : gpu_(gpu), random_(seed) {}
    void* raw() const override { return nullptr; }
    Expected<void> mark() override {
      gpu_.wait_while_it_blocks();
      if (gpu_.lost() || gpu_.refuses_.exchange(false)) {
        return make_error("lost");
      }
      const auto jitter_us = std::uniform_int_distribution<std::uint64_t>(0, 400)(random_);
      due_.push_back(rte_rdtsc() + jitter_us * rte_get_tsc_hz() / 1000000);
      return {};
    }
    device::MarkState poll() override {
      gpu_.wait_while_it_blocks();
      if (due_.empty()) {
        return device::MarkState::done;
      }
      if (gpu_.hangs_.load()) {
        return device::MarkState::pending;
      }
      if (gpu_.lost()) {
        due_.pop_front();
        return device::MarkState::failed;
      }
      if (rte_rdtsc() < due_.front()) {
        return device::MarkState::pending;
      }
      due_.pop_front();
      return device::MarkState::done;
    }
    unsigned pending_marks() const override { return static_cast<unsigned>(due_.size()); }
    void forget() { due_.clear(); }

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
  Expected<void> register_host(void*, std::size_t) override {
    if (refuses_memory) return make_error("no memory for a test");
    ++registered;
    return {};
  }
  std::size_t registered = 0;
  bool refuses_memory = false;
  Expected<void*> allocate_host(std::size_t bytes) override {
    memory_.push_back(std::aligned_alloc(64, bytes));
    std::memset(memory_.back(), 0, bytes);
    return memory_.back();
  }
  Expected<device::DeviceMemory> allocate_device(std::size_t bytes) override {
    return device::DeviceMemory(std::aligned_alloc(256, (bytes + 255) / 256 * 256), bytes, 0,
                                [](void* memory, int) { std::free(memory); });
  }
  bool lost() const override { return lost_.load(); }
  std::string why() const override { return "made to fail"; }
  void lose(const std::string&, device::Gone how = device::Gone::answers) override {
    gone_.store(how);
    lost_.store(true);
  }
  device::Gone gone() const { return gone_.load(); }
  bool has_ended() override { return !hangs_.load() && !blocks_.load(); }
  Expected<void> reset() override {
    registered = 0;
    if (refuses_resets > 0) {
      --refuses_resets;
      return make_error("no reset for a test");
    }
    for (const auto& stream : streams_) stream->forget();
    gone_.store(device::Gone::answers);
    lost_.store(false);
    return {};
  }
  unsigned refuses_resets = 0;
  // One launch fails, and what was launched before goes on.
  void refuse() { refuses_.store(true); }
  // Its work does not end, until it does.
  void hang(bool hangs = true) { hangs_.store(hangs); }
  // No call of its driver returns, until they do.
  void block(bool blocks = true) { blocks_.store(blocks); }
  void wait_while_it_blocks() const {
    while (blocks_.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  device::GpuInfo info_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<void*> memory_;
  std::atomic<bool> lost_{false}, refuses_{false}, hangs_{false}, blocks_{false};
  std::atomic<device::Gone> gone_{device::Gone::answers};
};

// This thread may run on all cores while this lives: the EAL has pinned it to one.
class AllCores {
 public:
  AllCores() {
    CPU_ZERO(&all_);
    sched_getaffinity(0, sizeof before_, &before_);
    for (long core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) CPU_SET(core, &all_);
    EXPECT_EQ(sched_setaffinity(0, sizeof all_, &all_), 0);
    sched_getaffinity(0, sizeof all_, &all_);
  }
  ~AllCores() { sched_setaffinity(0, sizeof before_, &before_); }
  AllCores(const AllCores&) = delete;
  AllCores& operator=(const AllCores&) = delete;
  int count() const { return CPU_COUNT(&all_); }
  int first() const {
    int core = 0;
    while (!CPU_ISSET(core, &all_)) ++core;
    return core;
  }

 private:
  cpu_set_t before_, all_;
};

struct Trial {
  std::unique_ptr<Engine> engine;
  std::uint64_t out_of_order = 0;
  std::uint64_t seen = 0;
};

inline constexpr unsigned pool_frames = 2048;

inline Options replay_options(const std::string& device) {
  Options options;
  options.device = device;
  options.deadline = std::chrono::milliseconds(20);
  options.batch = 256;
  options.batches = 8;
  options.cpu_below = 0;
  options.admission = Admit::all;  // a busy machine makes them late
  options.memory.frames = pool_frames;
  options.ports.resize(2);
  options.ports[0].name = "a";
  options.ports[0].device = "replay,mix=64,frames=" + std::to_string(pool_frames);
  options.ports[1].name = "b";
  options.ports[1].device = "replay,mix=imix,frames=" + std::to_string(pool_frames);
  return options;
}

inline std::unique_ptr<Engine> make_engine(const Options& options, std::unique_ptr<JitterGpu> gpu = nullptr) {
  const PipelineMaker maker = [](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
    return pipeline_of(std::make_unique<PeerElement>(ports));
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
inline void watch_order(Trial& run, std::size_t out_port) {
  run.engine->port(out_port).replay()->observe(
      [&run, last = std::uint32_t{pool_frames - 1}](const rte_mbuf* frame) mutable {
        const std::uint32_t index = port::ReplayPort::frame_index(frame);
        run.out_of_order += index != (last + 1) % pool_frames;
        last = index;
        ++run.seen;
      });
}

inline void run_for(Engine& engine, std::chrono::milliseconds time) {
  engine.start();
  std::this_thread::sleep_for(time);
  engine.stop();
}

inline void expect_conserved(const EngineStats& stats) {
  EXPECT_GT(stats.total.rx_frames, 10000U);
  EXPECT_EQ(stats.total.in_flight, 0U);
  EXPECT_EQ(stats.imbalance(), 0);
}

}  // namespace sluice::engine
