// What leaves for remotes and what is counted of it, with a pool that has buffers for copies and one that has none.
#include "function/vxlan/tunnel_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/stall.h"
#include "packet/builder.h"
#include "port/port.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using testing::ElementsAre;
using testing::IsEmpty;

class TunnelOutTest : public testing::Test {
 protected:
  static constexpr unsigned pool_frames = 64;

  static void SetUpTestSuite() {
    port::PortOptions options;
    options.name = "tunnel-out-test";
    options.device = "net_ring40";
    port::MemoryOptions memory;
    memory.frames = 256;
    auto port = port::Port::open(options, memory, 1);
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
  }
  static void TearDownTestSuite() { port_.reset(); }
  void SetUp() override {
    auto pool = port::make_frame_pool("tunnel-out-test", pool_frames, 2048, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    emitter_.emplace(std::vector<port::Port*>{port_.get()}, 0, counters_, &host_port_);
    emitter_->set_stalls(&stalls_, false);
  }
  void TearDown() override {
    for (rte_mbuf* const frame : held_) rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_mempool_avail_count(pool_.get()), pool_frames) << "a frame is lost";
  }

  static Remote remote(const char* address, bool resolved = true, std::uint32_t most = 1500) {
    const auto of = [](const char* text) { return packet::IpAddress::parse(text).value(); };
    Remote made;
    made.address = of(address);
    made.resolved = resolved;
    made.most = most;
    made.front = packet::VxlanFront({.local = of("192.0.2.1"),
                                     .remote = of(address),
                                     .source_mac = packet::MacAddress::parse("02:00:00:00:00:01").value(),
                                     .next_hop_mac = packet::MacAddress::parse("02:00:00:00:00:02").value(),
                                     .vni = 7});
    return made;
  }
  rte_mbuf* frame() {
    rte_mbuf* const made = rte_pktmbuf_alloc(pool_.get());
    std::memcpy(rte_pktmbuf_append(made, static_cast<std::uint16_t>(inner_.size())), inner_.data(), inner_.size());
    return made;
  }
  // Nothing is left of the pool.
  void hold_the_rest() {
    while (rte_mbuf* const one = rte_pktmbuf_alloc(pool_.get())) held_.push_back(one);
  }
  // The remotes of what has left, in order; each frame holds the inner one.
  std::vector<std::string> left_for() {
    emitter_->flush_all();
    std::vector<std::string> remotes;
    rte_mbuf* frames[8];
    const unsigned count = port_->rx_burst(0, frames, 8);
    for (unsigned i = 0; i < count; ++i) {
      const auto* const data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
      constexpr std::size_t destination = 30;
      EXPECT_EQ(Bytes(data + packet::vxlan_front(4), data + rte_pktmbuf_pkt_len(frames[i])), inner_);
      remotes.push_back(packet::IpAddress::from_bytes(4, data + destination).str());
      rte_pktmbuf_free(frames[i]);
    }
    return remotes;
  }
  std::vector<std::uint64_t> counted() const {
    return {state_.frames.get(), state_.bytes.get(), state_.flooded.get(), state_.copies_lost.get()};
  }

  static inline std::unique_ptr<port::Port> port_;
  const Bytes inner_ = packet::PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(Bytes(100)).build();
  port::FramePool pool_;
  engine::LaneCounters counters_;
  engine::HostPort host_port_;
  engine::StallWatch stalls_;
  std::optional<engine::Emitter> emitter_;
  std::vector<rte_mbuf*> held_;
  TunnelOut state_;
};

TEST_F(TunnelOutTest, AFrameForOneRemoteIsCountedOnce) {
  rte_mbuf* const one = frame();
  const Remote to = remote("192.0.2.2");
  ASSERT_EQ(why_not(to, *one), packet::no_reason);
  send_into_tunnel(to, one, state_, *emitter_);
  EXPECT_THAT(left_for(), ElementsAre("192.0.2.2"));
  EXPECT_THAT(counted(), ElementsAre(1U, inner_.size(), 0U, 0U));
}

TEST_F(TunnelOutTest, AFloodedFrameIsCountedForEachRemote) {
  const Remote all[] = {remote("192.0.2.2"), remote("192.0.2.3"), remote("192.0.2.4")};
  EXPECT_EQ(flood_into_tunnel(all, frame(), state_, *emitter_).reason, packet::no_reason);
  EXPECT_THAT(left_for(), ElementsAre("192.0.2.2", "192.0.2.3", "192.0.2.4"));
  EXPECT_THAT(counted(), ElementsAre(3U, 3 * inner_.size(), 3U, 0U));
}

TEST_F(TunnelOutTest, ACopyWithoutABufferIsLostAndNotCountedAsOut) {
  const Remote all[] = {remote("192.0.2.2"), remote("192.0.2.3"), remote("192.0.2.4")};
  rte_mbuf* const one = frame();
  hold_the_rest();
  EXPECT_EQ(flood_into_tunnel(all, one, state_, *emitter_).reason, packet::no_reason);
  EXPECT_THAT(left_for(), ElementsAre("192.0.2.4")) << "the frame itself";
  EXPECT_THAT(counted(), ElementsAre(1U, inner_.size(), 1U, 2U));
}

TEST_F(TunnelOutTest, ARemoteThatCannotHaveItIsPassedOver) {
  const Remote all[] = {remote("192.0.2.2", false), remote("192.0.2.3"), remote("192.0.2.4", true, 100)};
  EXPECT_EQ(flood_into_tunnel(all, frame(), state_, *emitter_).reason, packet::no_reason);
  EXPECT_THAT(left_for(), ElementsAre("192.0.2.3"));
  EXPECT_THAT(counted(), ElementsAre(1U, inner_.size(), 1U, 2U));
}

TEST_F(TunnelOutTest, WhatNobodyCanHaveIsTheCallersStill) {
  const Remote all[] = {remote("192.0.2.2", false), remote("192.0.2.3", true, 90), remote("192.0.2.4", true, 100)};
  rte_mbuf* const one = frame();
  held_.push_back(one);
  const Flooded flooded = flood_into_tunnel(all, one, state_, *emitter_);
  EXPECT_EQ(flooded.reason, vxlan_too_long);
  EXPECT_EQ(flooded.least, 90U);
  EXPECT_EQ(flood_into_tunnel({}, one, state_, *emitter_).reason, vxlan_no_remote);
  EXPECT_EQ(rte_pktmbuf_pkt_len(one), inner_.size());
  EXPECT_THAT(left_for(), IsEmpty());
  EXPECT_THAT(counted(), ElementsAre(0U, 0U, 0U, 0U));
}

}  // namespace
}  // namespace sluice::function
