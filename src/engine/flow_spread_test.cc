#include "engine/flow_spread.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/burst.h"
#include "packet/builder.h"
#include "packet/headers.h"
#include "port/frame_pool.h"

namespace sluice::engine {
namespace {

constexpr unsigned pool_frames = 4096;

// Three lanes: the owner (0) and two siblings.
class FlowSpreadTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pool = port::make_frame_pool("spread-test", pool_frames, 2048, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    for (FlowInbox* inbox : {&first_, &second_}) {
      auto made = FlowInbox::make(inbox == &first_ ? "spread-1" : "spread-2");
      ASSERT_TRUE(made) << made.error().message;
      *inbox = std::move(*made);
    }
    spread_ = std::make_unique<FlowSpread>(std::vector<FlowSpread::Sibling>{{}, {&first_, &bell_}, {&second_, &bell_}});
  }

  rte_mbuf* frame(const packet::Bytes& bytes) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_.get());
    EXPECT_NE(mbuf, nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return mbuf;
  }
  // Packet `sequence` of a flow, in one of its two directions.
  rte_mbuf* packet(unsigned flow, bool back, unsigned sequence) {
    const std::string host = "10.0." + std::to_string(flow / 200) + "." + std::to_string(1 + flow % 200);
    packet::PacketBuilder builder;
    if (back) {
      builder.ipv4("192.0.2.1", host).udp(53, static_cast<std::uint16_t>(1024 + flow));
    } else {
      builder.ipv4(host, "192.0.2.1").udp(static_cast<std::uint16_t>(1024 + flow), 53);
    }
    return frame(builder.id(sequence).payload(8).build());
  }
  static unsigned sequence(const rte_mbuf* mbuf) {
    const auto* ip = rte_pktmbuf_mtod_offset(mbuf, const std::uint8_t*, 14);
    return ip[4] * 256U + ip[5];
  }
  static unsigned flow(const rte_mbuf* mbuf) {
    const auto* ip = rte_pktmbuf_mtod_offset(mbuf, const std::uint8_t*, 14);
    const std::uint8_t* host = ip[12] == 10 ? ip + 12 : ip + 16;
    return host[2] * 200U + host[3] - 1;
  }

  port::FramePool pool_;
  FlowInbox first_, second_;
  Bell bell_;
  LaneCounters counters_;
  std::unique_ptr<FlowSpread> spread_;
};

TEST_F(FlowSpreadTest, BothDirectionsOfAFlowShareALaneAndKeepTheirOrder) {
  constexpr unsigned flows = 300;
  std::map<unsigned, unsigned> lane_of;
  std::map<unsigned, unsigned> last;
  std::array<unsigned, 3> frames{};
  const auto seen = [&](unsigned lane, rte_mbuf* mbuf) {
    ++frames[lane];
    const auto [at, fresh] = lane_of.emplace(flow(mbuf), lane);
    EXPECT_EQ(at->second, lane) << "flow " << flow(mbuf);
    EXPECT_TRUE(fresh || sequence(mbuf) > last[flow(mbuf)]);
    last[flow(mbuf)] = sequence(mbuf);
    rte_pktmbuf_free(mbuf);
  };
  for (unsigned round = 0; round < 10; ++round) {
    for (unsigned begin = 0; begin < flows; begin += burst_size) {
      std::array<rte_mbuf*, burst_size> burst{};
      const unsigned count = std::min(burst_size, flows - begin);
      for (unsigned i = 0; i < count; ++i) {
        burst[i] = packet(begin + i, round % 2 == 1, round + 1);
      }
      const std::uint64_t moment = 1'000'000 + round;
      const unsigned kept = spread_->spread(burst.data(), count, moment, counters_);
      for (unsigned i = 0; i < kept; ++i) {
        seen(0, burst[i]);
      }
      for (unsigned lane : {1U, 2U}) {
        std::uint64_t rx_tsc = 0;
        std::array<rte_mbuf*, burst_size> taken{};
        const unsigned size = (lane == 1 ? first_ : second_).take(taken.data(), burst_size, rx_tsc);
        ASSERT_GT(size, 0U);
        EXPECT_EQ(rx_tsc, moment);
        for (unsigned i = 0; i < size; ++i) {
          seen(lane, taken[i]);
        }
      }
    }
  }
  EXPECT_EQ(lane_of.size(), flows);
  for (const unsigned count : frames) {
    EXPECT_NEAR(count, 10.0 * flows / 3, 10.0 * flows / 10);
  }
  EXPECT_EQ(counters_.drops[lane_full].get(), 0U);
  EXPECT_TRUE(first_.empty() && second_.empty());
}

// A capture's driver says there when its frames came.
TEST_F(FlowSpreadTest, TheDriversTimestampsStay) {
  int timestamp = -1;
  std::uint64_t flag = 0;
  ASSERT_EQ(rte_mbuf_dyn_rx_timestamp_register(&timestamp, &flag), 0);
  std::array<rte_mbuf*, burst_size> burst{};
  for (unsigned i = 0; i < burst_size; ++i) {
    burst[i] = packet(i, false, i);
    burst[i]->ol_flags |= flag;
    *RTE_MBUF_DYNFIELD(burst[i], timestamp, rte_mbuf_timestamp_t*) = 1000 + i;
  }
  const unsigned kept = spread_->spread(burst.data(), burst_size, 42, counters_);
  unsigned seen = kept;
  rte_pktmbuf_free_bulk(burst.data(), kept);
  for (FlowInbox* const inbox : {&first_, &second_}) {
    std::uint64_t rx_tsc = 0;
    const unsigned size = inbox->take(burst.data(), burst_size, rx_tsc);
    EXPECT_EQ(rx_tsc, 42U);
    for (unsigned i = 0; i < size; ++i) {
      EXPECT_EQ(*RTE_MBUF_DYNFIELD(burst[i], timestamp, rte_mbuf_timestamp_t*), 1000 + sequence(burst[i]));
    }
    rte_pktmbuf_free_bulk(burst.data(), size);
    seen += size;
  }
  EXPECT_EQ(seen, burst_size);
  EXPECT_GT(seen, kept);
}

TEST_F(FlowSpreadTest, WhatASiblingDoesNotTakeIsCountedAndFreed) {
  const unsigned before = rte_mempool_avail_count(pool_.get());
  unsigned other = 0;  // a flow that is not the owner's
  for (unsigned kept = 1; kept != 0;) {
    std::array<rte_mbuf*, 1> one{packet(++other, false, 1)};
    kept = spread_->spread(one.data(), 1, 1, counters_);
    rte_pktmbuf_free_bulk(one.data(), kept);
  }
  unsigned sent = 1;
  for (; sent < 3000; sent += burst_size) {
    std::array<rte_mbuf*, burst_size> burst{};
    for (rte_mbuf*& one : burst) {
      one = packet(other, false, 1);
    }
    ASSERT_EQ(spread_->spread(burst.data(), burst_size, 1, counters_), 0U);
  }
  unsigned waiting = 0;
  std::uint64_t rx_tsc = 0;
  std::array<rte_mbuf*, burst_size> taken{};
  for (FlowInbox* inbox : {&first_, &second_}) {
    while (const unsigned size = inbox->take(taken.data(), burst_size, rx_tsc)) {
      waiting += size;
      rte_pktmbuf_free_bulk(taken.data(), size);
    }
  }
  EXPECT_GT(counters_.drops[lane_full].get(), 0U);
  EXPECT_EQ(counters_.drops[lane_full].get() + waiting, sent);
  EXPECT_EQ(counters_.rx_frames.get(), counters_.drops[lane_full].get());
  EXPECT_EQ(rte_mempool_avail_count(pool_.get()), before);
}

// A tag, or headers that receivers skip, take no packet out of its flow.
TEST_F(FlowSpreadTest, EveryFrameOfAConversationComesToItsLane) {
  for (std::uint16_t port = 4000; port < 4030; ++port) {
    const auto v4 = [&] { return packet::PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(port, 80).payload(9); };
    const auto v6 = [&] { return packet::PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").tcp(port, 80).payload(9); };
    const auto options = [](packet::PacketBuilder builder, std::uint8_t protocol) {
      return builder.extension(protocol, packet::Bytes{1, 4, 0, 0, 0, 0});
    };
    for (const auto& frames : {std::vector{v4(), v4().vlan(0), v4().vlan(7).vlan(8)},
                               std::vector{v6(), v6().vlan(0), options(v6(), packet::protocol_destination_options),
                                           options(v6().vlan(7), packet::protocol_hop_by_hop),
                                           options(v6(), packet::protocol_routing), v6().fragment(0, false)}}) {
      std::array<rte_mbuf*, burst_size> burst{};
      for (std::size_t i = 0; i < frames.size(); ++i) burst[i] = frame(frames[i].build());
      const auto count = static_cast<unsigned>(frames.size());
      const unsigned kept = spread_->spread(burst.data(), count, 1, counters_);
      std::vector<unsigned> of_lane{kept};
      rte_pktmbuf_free_bulk(burst.data(), kept);
      for (FlowInbox* const inbox : {&first_, &second_}) {
        std::uint64_t rx_tsc = 0;
        of_lane.push_back(inbox->take(burst.data(), burst_size, rx_tsc));
        rte_pktmbuf_free_bulk(burst.data(), of_lane.back());
      }
      EXPECT_EQ(std::ranges::count(of_lane, count), 1) << port;
    }
  }
}

TEST_F(FlowSpreadTest, FramesWithoutAFlowStayWithTheOwner) {
  std::array<rte_mbuf*, 3> burst{frame(packet::PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build()),
                                 frame(packet::Bytes(10, 0)),
                                 frame(packet::PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).ihl(3).build())};
  const auto all = burst;
  EXPECT_EQ(spread_->spread(burst.data(), 3, 1, counters_), 3U);
  EXPECT_EQ(burst, all);
  rte_pktmbuf_free_bulk(burst.data(), 3);
}

}  // namespace
}  // namespace sluice::engine
