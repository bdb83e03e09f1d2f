// Which copies the element makes, and when it makes none: each call of the contract by itself, on an emitter whose
// ports are rings.
#include "function/mirror/mirror.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "engine/emitter.h"
#include "engine/port_table.h"
#include "packet/builder.h"
#include "port/port.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

constexpr std::uint16_t lan = 0, wan = 1, monitor = 2;
constexpr unsigned pool_frames = 256;

class MirrorTest : public testing::Test {
 protected:
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
    auto pool = port::make_frame_pool("mirror-test", pool_frames, 2048, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    emitter_.emplace(std::vector<port::Port*>{ports_[0].get(), ports_[1].get(), ports_[2].get()}, 0, counters_,
                     host_ports_);
    emitter_->set_away(&away_, false);
  }
  void TearDown() override {
    for (const std::uint16_t port : {lan, wan, monitor}) taken(port);
    for (rte_mbuf* const frame : held_) rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_mempool_avail_count(pool_.get()), pool_frames) << "a frame is lost";
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
    std::memcpy(rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return frame;
  }

  // One frame passes from the lan to the wan. `between`: what other elements do between classify and apply.
  template <typename Between>
  void pass(const Bytes& bytes, const Between& between, std::uint64_t since = rte_rdtsc()) {
    engine::Batch batch;
    rte_mbuf* mbuf = frame_of(bytes);
    std::uint64_t address = reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(mbuf, std::uint8_t*));
    auto length = static_cast<std::uint16_t>(bytes.size());
    engine::Row row{.port = lan};
    std::byte area[64]{};
    batch.frame = &address;
    batch.length = &length;
    batch.mbuf = &mbuf;
    batch.row = &row;
    batch.capacity = batch.count = 1;
    batch.area[0] = area;
    mirror_->classify(batch, {0, 1});
    between(batch);
    emitter_->set_rx_port(lan, since);
    mirror_->apply(batch, {0, 1}, *emitter_);
    if (batch.goes_on(0)) batch.send(0, wan);
    emitter_->settle(batch, {0, 1});
    emitter_->flush_all();
  }
  void pass(const Bytes& bytes) {
    pass(bytes, [](engine::Batch&) {});
  }

  // What has left by a port since the last call.
  std::vector<Bytes> taken(std::uint16_t port) {
    std::vector<Bytes> all;
    rte_mbuf* frames[64];
    while (const unsigned count = ports_[port]->rx_burst(0, frames, 64)) {
      for (unsigned i = 0; i < count; ++i) {
        const auto* const data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
        all.emplace_back(data, data + rte_pktmbuf_pkt_len(frames[i]));
        rte_pktmbuf_free(frames[i]);
      }
    }
    return all;
  }
  std::uint64_t figure(std::string_view name) const {
    for (const engine::Figure& one : mirror_->figures()) {
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  static inline std::unique_ptr<port::Port> ports_[3];
  port::FramePool pool_;
  engine::LaneCounters counters_;
  engine::HostPort host_ports_[3];
  engine::AwayWatch away_;
  std::optional<engine::Emitter> emitter_;
  std::unique_ptr<Mirror> mirror_;
  std::vector<rte_mbuf*> held_;
};

const Bytes web = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(1000, 80).payload(Bytes(200)).build();
const Bytes mail = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(1000, 25).payload(Bytes(200)).build();
const Bytes other = PacketBuilder().ethertype(0x88b5).payload(Bytes(46)).build();

const packet::Reason for_a_test = packet::register_reason("mirror_test", "for a test");

TEST_F(MirrorTest, EachDirectionIsCopiedOnce) {
  for (const auto& [direction, copies] : {std::pair{"rx", 1}, {"tx", 1}, {"both", 2}}) {
    use("from = [\"lan\", \"wan\"]\ndirection = \"" + std::string(direction) + "\"\n");
    pass(web);
    EXPECT_EQ(taken(wan), std::vector<Bytes>{web}) << direction;
    EXPECT_EQ(taken(monitor), std::vector<Bytes>(static_cast<std::size_t>(copies), web)) << direction;
    EXPECT_EQ(figure("mirror_copied_frames"), static_cast<std::uint64_t>(copies));
  }
}

TEST_F(MirrorTest, OtherPortsAreNotCopied) {
  use("from = [\"wan\"]\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
  use("from = [\"lan\"]\ndirection = \"tx\"\n");
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
}

TEST_F(MirrorTest, CopiesAreCutAndTheOriginalIsNot) {
  use("length = 64\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{Bytes(web.begin(), web.begin() + 64)});
  pass(other);  // is shorter
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{other});
  EXPECT_EQ(figure("mirror_copied_frames"), 2U);
  EXPECT_EQ(figure("mirror_cut_frames"), 1U);
}

TEST_F(MirrorTest, RulesChooseInEachDirection) {
  for (const char* const direction : {"rx", "tx"}) {
    use("direction = \"" + std::string(direction) +
        "\"\n[[mirror.session.rule]]\nprotocol = \"tcp\"\ndestination_port = 80\n");
    for (const Bytes& frame : {web, mail, other}) pass(frame);
    EXPECT_EQ(taken(monitor), std::vector<Bytes>{web}) << direction;
  }
}

TEST_F(MirrorTest, WhatALaterElementDropsIsCopied) {
  use("direction = \"rx\"\n");
  pass(web, [](engine::Batch& batch) { batch.drop(0, for_a_test); });
  EXPECT_TRUE(taken(wan).empty());
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web});
}

TEST_F(MirrorTest, NoCopyIsMadeOnceADeadlineIsNear) {
  use("from = [\"lan\", \"wan\"]\n");
  pass(
      web, [](engine::Batch&) {}, rte_rdtsc() - rte_get_tsc_hz() * 8 / 10);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(figure("mirror_skipped_frames"), 2U);
}

TEST_F(MirrorTest, NoCopyIsMadeOfTheLastFramesOfAPool) {
  use("from = [\"lan\", \"wan\"]\n");
  while (rte_mempool_avail_count(pool_.get()) > pool_frames / 8) held_.push_back(rte_pktmbuf_alloc(pool_.get()));
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(figure("mirror_skipped_frames"), 2U);
}

TEST_F(MirrorTest, WhatTheMonitorPortDoesNotTakeIsLostByThatName) {
  use("direction = \"rx\"\n");
  rte_ring* const ring = rte_ring_lookup("ETH_RXTX0_net_ring22");
  ASSERT_NE(ring, nullptr);
  rte_mbuf* const filler = frame_of(other);
  while (rte_ring_enqueue(ring, filler) == 0) {
  }
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_EQ(figure("mirror_lost_frames"), 1U);
  EXPECT_EQ(counters_.drops[mirror_full].get(), 1U);
  EXPECT_EQ(counters_.drops[engine::tx_full].get(), 0U);
  for (void* out = nullptr; rte_ring_dequeue(ring, &out) == 0;) {
  }
  rte_pktmbuf_free(filler);
}

TEST_F(MirrorTest, TheMonitorPortIsForNothingElse) {
  mirror_ = unprepared("[[mirror.session]]\nname = \"a\"\nfrom = [\"wan\"]\nto = \"lan\"\n");
  engine::Plan plan;
  plan.ports = {lan};
  ASSERT_TRUE(mirror_->prepare(plan));
  pass(web);
  EXPECT_TRUE(taken(wan).empty());
  EXPECT_EQ(counters_.drops[mirror_port].get(), 1U);
  EXPECT_EQ(mirror_->judge_from_host(0, web.data(), 60), mirror_port);
}

TEST_F(MirrorTest, AReloadChangesTheSessions) {
  use("direction = \"rx\"\n");
  auto fresh = unprepared("[[mirror.session]]\nname = \"b\"\nfrom = [\"wan\"]\ndirection = \"tx\"\nto = \"lan\"\n");
  auto change = mirror_->reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->text, "1 mirror session is in force");
  pass(web);
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web}) << "it is not committed";
  change->commit();
  EXPECT_TRUE(mirror_->offers_once(lan));
  EXPECT_FALSE(mirror_->offers_once(monitor));
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(counters_.drops[mirror_port].get(), 1U);
}

}  // namespace
}  // namespace sluice::function
