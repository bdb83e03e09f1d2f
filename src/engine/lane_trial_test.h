// For tests of a lane that is driven by hand in one thread: the test raises the time points, takes the sealed batches
// as the worker does and says when the device is done with them. How fast the machine is decides nothing: a cycle lasts
// many minutes, a batch grows older by changing when it was sealed, a frame arrives as old as the test says, and a
// sleep may take longer.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/lane.h"
#include "engine/trial_test.h"
#include "port/frame_pool.h"

namespace sluice::engine {

inline constexpr unsigned test_frames = 2048;
inline constexpr std::uint64_t cycle_tsc = 1'000'000'000'000;

struct LaneSetup {
  std::uint32_t cpu_below = 0;  // on the device from the first time point on
  std::uint64_t work_tsc = 0;   // of a cycle, that makes a low load high; 0: however much
  std::uint32_t overlap = 1;
  std::uint32_t batches = 4;
  std::uint32_t capacity = 256;
  std::uint64_t deadline_tsc = 10 * cycle_tsc;
  bool refuses_overdue = false;
  bool shares_queue = false;  // receives what arrive_at() brings, and nothing else
  std::uint32_t index = 0;
};

// An element of which its test has hold, in a pipeline that ends before it.
class WatchedElement : public Element, public Wrapper {
 public:
  explicit WatchedElement(Element& inner) : inner_(inner) {}
  Element& inner() const override { return inner_; }
  Shape shape() const override { return inner_.shape(); }
  void classify(Batch& batch, Span span) override { inner_.classify(batch, span); }
  Expected<void> launch(Batch& batch, device::GpuStream& stream) override { return inner_.launch(batch, stream); }
  void compute(Batch& batch, Span span) override { inner_.compute(batch, span); }
  void apply(Batch& batch, Span span, Emitter& out) override { inner_.apply(batch, span, out); }
  void* find_trait(std::string_view name) override {
    void* const own = offer<Wrapper>(name, static_cast<Wrapper*>(this));
    return own != nullptr ? own : inner_.find_trait(name);
  }

 private:
  Element& inner_;
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

  // `receives`: the port to receive from, instead of the ring that arrive() fills; `sends`: the one to send to, instead
  // of the ring that take_out() empties.
  void make(const LaneSetup& setup, port::Port* receives = nullptr, port::Port* sends = nullptr) {
    lane_.reset();  // before another inbox gets its name
    // Again each time: which traits an element offers is asked once.
    pipeline_ = make_pipeline();
    std::vector<std::unique_ptr<BatchRing>> rings;
    for (unsigned pass = 0; pass < pipeline_->passes(); ++pass) {
      auto ring = BatchRing::create(
          {setup.index, setup.batches, setup.capacity, pipeline_->areas(pass), pass, pipeline_->is_departing(pass)},
          [this](std::size_t bytes) -> Expected<void*> {
            memory_.emplace_back(std::aligned_alloc(64, bytes), &std::free);
            std::memset(memory_.back().get(), 0, bytes);
            return memory_.back().get();
          });
      ASSERT_TRUE(ring) << ring.error().message;
      rings.push_back(std::move(*ring));
    }
    auto inbox = setup.shares_queue ? FlowInbox::make("inbox-lane-test") : FlowInbox();
    ASSERT_TRUE(inbox) << inbox.error().message;
    inbox_ = rte_ring_lookup("inbox-lane-test");
    port::Port* const rx = receives != nullptr ? receives : wires_[0].get();
    port::Port* const tx = sends != nullptr ? sends : wires_[1].get();
    lane_ = std::make_unique<Lane>(Lane::Parts{.index = setup.index,
                                               .port = 0,
                                               .queue = 0,
                                               .ports = {rx, tx},
                                               .tx_queue = 0,
                                               .host_ports = host_ports_,
                                               .drains_injected = true,
                                               .pipeline = pipeline_.get(),
                                               .clock = &clock_,
                                               .mode = Mode::full,
                                               .computes_below = {.frames = setup.cpu_below,
                                                                  .cycle_tsc = cycle_tsc,
                                                                  .work_tsc = setup.work_tsc,
                                                                  .retry_cycles = ~std::uint64_t{0}},
                                               .deadline_tsc = setup.deadline_tsc,
                                               .cycle_tsc = cycle_tsc,
                                               .on_device_tsc = setup.overlap * cycle_tsc,
                                               .refuses_overdue = setup.refuses_overdue,
                                               .shares_queue = setup.shares_queue},
                                   std::move(rings), std::move(*inbox));
    lane_->set_threads({&stalls_, &bell_}, {&stalls_, &bell_});
    clock_.device_up.store(true);
  }

  virtual std::unique_ptr<Pipeline> make_pipeline() { return pipeline_of(std::make_unique<WatchedElement>(peer_)); }

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
    forget_what_waits();
    EXPECT_EQ(rte_mempool_avail_count(pool_.get()), test_frames);
    EXPECT_EQ(peer_.wrong_answers.load(), 0U);
  }

  void forget_what_waits() {
    void* frame = nullptr;
    while (rte_ring_dequeue(in_, &frame) == 0) {
      rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
    left_ = arrived_;
  }

  void expect_conserved() const {
    std::uint64_t out = lane_->in_flight(), in = lane_->collector_counters().rx_frames.get();
    for (const LaneCounters* side : {&lane_->collector_counters(), &lane_->forwarder_counters()}) {
      for (const Counter& drops : side->drops) {
        out += drops.get();
      }
      for (const Counter& sent : side->tx_frames) {
        out += sent.get();
      }
      out += side->consumed_frames.get() + side->punted_frames.get();
      in += side->emitted_frames.get() + side->cloned_frames.get() + side->injected_frames.get();
    }
    EXPECT_EQ(in, out);
  }

  void arrive(unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++arrived_) {
      rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
      ASSERT_NE(frame, nullptr);
      std::memcpy(rte_pktmbuf_append(frame, 60), &arrived_, sizeof arrived_);
      ASSERT_EQ(rte_ring_enqueue(in_, frame), 0);
    }
  }
  // At a lane that shares a queue: frames that were received at that moment.
  void arrive_at(unsigned count, std::uint64_t rx_tsc) {
    const int offset = rte_mbuf_dynfield_lookup(received_at_field, nullptr);
    ASSERT_GE(offset, 0);
    for (unsigned i = 0; i < count; ++i) {
      rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
      ASSERT_NE(frame, nullptr);
      std::memset(rte_pktmbuf_append(frame, 60), 0, 60);
      *RTE_MBUF_DYNFIELD(frame, offset, std::uint64_t*) = rx_tsc;
      ASSERT_EQ(rte_ring_enqueue(inbox_, frame), 0);
    }
  }
  // Until a round receives nothing.
  void collect() {
    while (lane_->collect_round() != 0) {
    }
  }
  // Until nothing is done any more; how many batches.
  unsigned forward() {
    unsigned batches = 0;
    while (const unsigned moved = lane_->forward_round()) batches += moved;
    return batches;
  }
  void time_points(unsigned cycles) {
    lane_->pass_time_points(cycles);
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
    forward();
  }

  // As the worker takes them; null: none.
  Batch* sealed(unsigned pass = 0) {
    Batch* const batch = lane_->ring(pass).next_sealed();
    if (batch != nullptr) {
      batch->state.store(BatchState::in_flight);
    }
    return batch;
  }
  void finish(Batch& batch, BatchState state = BatchState::done) {
    if (state == BatchState::done) {
      pipeline_->compute(batch, {0, batch.count});
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
  // The same of frames whatever their numbers are, and in what order.
  struct Sent {
    std::uint32_t number;
    std::uint32_t bytes;
    bool operator==(const Sent&) const = default;
  };
  std::vector<Sent> sent() {
    std::vector<Sent> all;
    for (void* out = nullptr; rte_ring_dequeue(out_, &out) == 0;) {
      auto* const frame = static_cast<rte_mbuf*>(out);
      Sent one{0, rte_pktmbuf_pkt_len(frame)};
      EXPECT_EQ(frame->nb_segs, 1U);
      std::memcpy(&one.number, rte_pktmbuf_mtod(frame, const void*), sizeof one.number);
      all.push_back(one);
      rte_pktmbuf_free(frame);
    }
    return all;
  }
  // A frame of this number that has not come.
  rte_mbuf* made(std::uint32_t number, std::uint16_t bytes = 60) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
    std::memcpy(rte_pktmbuf_append(frame, bytes), &number, sizeof number);
    return frame;
  }
  std::uint64_t drops(packet::Reason reason) const {
    return lane_->collector_counters().drops[reason].get() + lane_->forwarder_counters().drops[reason].get();
  }
  const LaneCounters& collected() const { return lane_->collector_counters(); }

  port::FramePool pool_;
  static inline std::unique_ptr<port::Port> wires_[2];
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  PeerElement peer_{PortTable({{.name = "0", .mac = {}, .peer = 1}, {.name = "1", .mac = {}, .peer = 0}})};
  std::unique_ptr<Pipeline> pipeline_;
  HostPort host_ports_[2];
  Clock clock_;
  StallWatch stalls_;
  Bell bell_;
  std::unique_ptr<Lane> lane_;
  rte_ring *in_ = nullptr, *out_ = nullptr, *inbox_ = nullptr;
  std::uint32_t arrived_ = 0, left_ = 0;
};

}  // namespace sluice::engine
