// The element with what it needs to be driven by hand: a pool, three ports that are rings, and an emitter.
#pragma once

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "engine/emitter.h"
#include "engine/port_table.h"
#include "function/mirror/mirror.h"
#include "packet/builder.h"
#include "port/port.h"

namespace sluice::function {

class MirrorRings : public testing::Test {
 protected:
  using Bytes = packet::Bytes;
  static constexpr std::uint16_t lan = 0, wan = 1, monitor = 2;

  explicit MirrorRings(unsigned pool_frames = 256) : pool_frames_(pool_frames) {}
  static void SetUpTestSuite() {
    for (unsigned p = 0; p < 3; ++p) {
      port::PortOptions options;
      options.name = "mirror-test-" + std::to_string(p);
      options.device = "net_ring" + std::to_string(20 + p);
      port::MemoryOptions memory;
      memory.frames = 256;
      auto port = port::Port::open(options, memory, 1);
      ASSERT_TRUE(port) << port.error().message;
      ports_[p] = std::move(*port);
    }
  }
  static void TearDownTestSuite() {
    for (auto& port : ports_) port.reset();
  }
  void SetUp() override {
    auto pool = port::make_frame_pool("mirror-test", pool_frames_, 2048, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    emitter_.emplace(std::vector<port::Port*>{ports_[0].get(), ports_[1].get(), ports_[2].get()}, 0, counters_,
                     host_ports_);
    emitter_->set_stalls(&stalls_, false);
  }
  void TearDown() override {
    for (const std::uint16_t port : {lan, wan, monitor}) taken(port);
    for (rte_mbuf* const frame : held_) rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_mempool_avail_count(pool_.get()), pool_frames_) << "a frame is lost";
  }

  // The element that [mirror] makes, with a deadline of a second.
  static std::unique_ptr<Mirror> unprepared(const std::string& text) {
    Diagnostics diagnostics;
    auto file = Settings::from_text(text, "m.toml", diagnostics);
    EXPECT_TRUE(file) << text;
    Settings section = file->section("mirror");
    const engine::PortTable ports({{.name = "lan", .mac = {}}, {.name = "wan", .mac = {}}, {.name = "mon", .mac = {}}});
    auto element = engine::find_element("mirror")->make(section, ports);
    section.finish();
    EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
    return std::unique_ptr<Mirror>(static_cast<Mirror*>(element->release()));
  }
  void use(const std::string& session) {
    mirror_ = unprepared("[[mirror.session]]\nname = \"a\"\nto = \"mon\"\n" + session);
    engine::Plan plan;
    plan.deadline = std::chrono::seconds(1);
    plan.ports = {lan};
    ASSERT_TRUE(mirror_->prepare(plan));
    engine::TxHook* const hook = mirror_.get();
    emitter_->set_hooks({&hook, 1});
  }
  rte_mbuf* frame_of(const Bytes& bytes) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
    if (frame == nullptr) throw std::runtime_error("the pool has no frame for an original");
    std::memcpy(rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return frame;
  }

  // A burst of 64 frames at most passes from the lan, or for elements from came_in_by_, to the wan. `between`: what
  // other elements do between classify and apply; without a mirror nobody looks at it.
  template <typename Between>
  void pass(const std::vector<Bytes>& all, const Between& between, std::uint64_t since = rte_rdtsc()) {
    const auto count = static_cast<std::uint32_t>(all.size());
    std::vector<rte_mbuf*> mbufs;
    std::vector<std::uint64_t> address;
    std::vector<std::uint16_t> length;
    std::vector<engine::Row> rows(count, engine::Row{.port = came_in_by_});
    std::byte area[64]{};
    for (const Bytes& bytes : all) {
      mbufs.push_back(frame_of(bytes));
      address.push_back(reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(mbufs.back(), std::uint8_t*)));
      length.push_back(static_cast<std::uint16_t>(bytes.size()));
    }
    engine::Batch batch;
    batch.frame = address.data();
    batch.length = length.data();
    batch.mbuf = mbufs.data();
    batch.row = rows.data();
    batch.capacity = batch.count = count;
    batch.area[0] = area;
    if (mirror_) mirror_->classify(batch, {0, count});
    between(batch);
    emitter_->set_rx_port(lan, since);
    if (mirror_) mirror_->apply(batch, {0, count}, *emitter_);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (batch.goes_on(i)) batch.send(i, wan);
    }
    emitter_->settle(batch, {0, count});
    emitter_->flush_all();
  }
  void pass(const Bytes& bytes) {
    pass({bytes}, [](engine::Batch&) {});
  }

  // The next frames that have left by a port: so many, or all there are.
  std::vector<Bytes> taken(std::uint16_t port, std::size_t most = ~std::size_t{0}) {
    std::vector<Bytes> all;
    rte_mbuf* frames[64];
    while (const unsigned count = ports_[port]->rx_burst(
               0, frames, static_cast<std::uint16_t>(std::min<std::size_t>(64, most - all.size())))) {
      for (unsigned i = 0; i < count; ++i) {
        const auto* const data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
        all.emplace_back(data, data + rte_pktmbuf_pkt_len(frames[i]));
        rte_pktmbuf_free(frames[i]);
      }
    }
    return all;
  }
  std::uint64_t metric(std::string_view name) const {
    for (const engine::Metric& one : mirror_->metrics()) {
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  static rte_ring* ring_of(std::uint16_t port) {
    return rte_ring_lookup(("ETH_RXTX0_net_ring" + std::to_string(20 + port)).c_str());
  }
  // A port's ring takes no more than `places` frames until empty().
  void fill(std::uint16_t port, unsigned places = 0) {
    filler_[port] = rte_pktmbuf_alloc(pool_.get());
    while (rte_ring_free_count(ring_of(port)) > places) {
      ASSERT_EQ(rte_ring_enqueue(ring_of(port), filler_[port]), 0);
    }
  }
  // What is in the ring, but for what fills it: in order, no more than `most`; the rest stays.
  std::vector<Bytes> taken_of_filled(std::uint16_t port, std::size_t most) {
    std::vector<Bytes> all;
    rte_ring* const ring = ring_of(port);
    for (unsigned left = rte_ring_count(ring); left != 0; --left) {
      void* one = nullptr;
      EXPECT_EQ(rte_ring_dequeue(ring, &one), 0);
      auto* const frame = static_cast<rte_mbuf*>(one);
      if (frame == filler_[port] || all.size() == most) {
        EXPECT_EQ(rte_ring_enqueue(ring, frame), 0);
        continue;
      }
      const auto* const data = rte_pktmbuf_mtod(frame, const std::uint8_t*);
      all.emplace_back(data, data + rte_pktmbuf_pkt_len(frame));
      rte_pktmbuf_free(frame);
    }
    return all;
  }
  void empty(std::uint16_t port) {
    for (void* out = nullptr; rte_ring_dequeue(ring_of(port), &out) == 0;) {
    }
    rte_pktmbuf_free(filler_[port]);
  }

  static inline std::unique_ptr<port::Port> ports_[3];
  std::uint16_t came_in_by_ = lan;
  const unsigned pool_frames_;
  std::array<rte_mbuf*, 3> filler_{};
  port::FramePool pool_;
  engine::LaneCounters counters_;
  engine::HostPort host_ports_[3];
  engine::StallWatch stalls_;
  std::optional<engine::Emitter> emitter_;
  std::unique_ptr<Mirror> mirror_;
  std::vector<rte_mbuf*> held_;
};

}  // namespace sluice::function
