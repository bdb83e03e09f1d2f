#include "engine/frame_tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "engine/emitter.h"
#include "packet/builder.h"
#include "port/frame_pool.h"

namespace sluice::engine {
namespace {

using testing::HasSubstr;

class FrameTapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pool = port::make_frame_pool("tap-test", 4096, 2048, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
  }
  rte_mbuf* udp(std::uint16_t port) {
    const packet::Bytes bytes = packet::PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(port, 53).payload(30).build();
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_.get());
    EXPECT_NE(mbuf, nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return mbuf;
  }
  static TapRequest of_port(std::uint16_t port) {
    TapRequest request;
    request.ports.set(port);
    request.records = 16;
    return request;
  }
  std::unique_ptr<TapSession> open(const TapRequest& request) {
    auto session = tap_.open(request);
    EXPECT_TRUE(session) << session.error().message;
    return std::move(*session);
  }
  static std::vector<TapRecord> all(TapSession& session) {
    std::vector<TapRecord> records;
    for (TapRecord record; session.take(record);) records.push_back(record);
    return records;
  }

  port::FramePool pool_;
  FrameTap tap_;
};

TEST_F(FrameTapTest, NobodyLooksUntilASessionIsOpenAndAfterIt) {
  EXPECT_FALSE(tap_.on());
  auto session = open(of_port(0));
  EXPECT_TRUE(tap_.on());
  session.reset();
  EXPECT_FALSE(tap_.on());
  rte_mbuf* frame = udp(1);
  tap_.received(0, 0, {&frame, 1}, 7);  // a lane that has not seen it yet
  rte_pktmbuf_free(frame);
}

TEST_F(FrameTapTest, AFrameThatBecameAnAnswerIsNotForwarded) {
  auto session = open(of_port(0));
  rte_mbuf* frame = udp(1);
  tap_.received(5, 0, {&frame, 1}, 7);
  tap_.answered(frame, no_twin);
  FrameTap::Sending sending;
  sending.begin(tap_, 5, 0, {&frame, 1});
  sending.end(1);
  const auto records = all(*session);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].event, TapEvent::received);
  EXPECT_EQ(records[1].id, records[0].id);
  EXPECT_EQ(records[1].verdict, TapVerdict::answered);
  EXPECT_EQ(records[1].reason, no_twin);
  EXPECT_EQ(records[2].event, TapEvent::sent) << "the answer";
  rte_pktmbuf_free(frame);
}

TEST_F(FrameTapTest, AFrameThatCameIsFollowedToItsEnd) {
  auto session = open(of_port(0));
  rte_mbuf* frames[] = {udp(1), udp(2), udp(3)};
  tap_.received(5, 0, frames, 7);
  tap_.received(5, 1, {frames, 1}, 8);  // of another port
  tap_.dropped(5, 0, frames[1], no_twin);
  const FrameTap::Claim claim = tap_.claim(frames[2]);
  tap_.punted(claim, frames[2], false);
  tap_.punted(tap_.claim(frames[2]), frames[2], true);
  FrameTap::Sending sending;
  sending.begin(tap_, 5, 1, {frames, 1});
  sending.end(1);
  const auto records = all(*session);
  ASSERT_EQ(records.size(), 6U);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i].event, TapEvent::received);
    EXPECT_EQ(records[i].tsc, 7U);
    EXPECT_EQ(records[i].lane, 5U);
    EXPECT_EQ(records[i].length, 14U + 20 + 8 + 30);
    EXPECT_EQ(records[i].bytes.size(), records[i].length);
    EXPECT_EQ(records[i].bytes[35], i + 1) << "the source port";
    EXPECT_EQ(records[i + 3].event, TapEvent::settled);
  }
  EXPECT_EQ(records[3].id, records[1].id);
  EXPECT_EQ(records[3].verdict, TapVerdict::dropped);
  EXPECT_EQ(records[3].reason, no_twin);
  EXPECT_EQ(records[4].id, records[2].id);
  EXPECT_EQ(records[4].verdict, TapVerdict::to_host);
  EXPECT_EQ(records[5].id, records[0].id);
  EXPECT_EQ(records[5].verdict, TapVerdict::forwarded);
  EXPECT_EQ(records[5].verdict_port, 1U);
  rte_pktmbuf_free_bulk(frames, 3);
}

TEST_F(FrameTapTest, WhatADriverDoesNotTakeHasNotLeft) {
  auto session = open(of_port(1));
  auto came = open(of_port(0));
  rte_mbuf* frames[] = {udp(1), udp(2)};
  tap_.received(0, 0, frames, 7);
  FrameTap::Sending sending;
  sending.begin(tap_, 0, 1, frames);
  sending.end(1);
  tap_.dropped(0, 0, frames[1], punt_full);
  const auto left = all(*session);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].event, TapEvent::sent);
  EXPECT_EQ(left[0].bytes[35], 1U);
  const auto records = all(*came);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].verdict, TapVerdict::forwarded);
  EXPECT_EQ(records[3].verdict, TapVerdict::dropped);
  EXPECT_EQ(records[3].reason, punt_full);
  rte_pktmbuf_free_bulk(frames, 2);
}

TEST_F(FrameTapTest, OnlyWhatIsAskedForIsCopied) {
  TapRequest request = of_port(0);
  request.filter = "udp src port 2";
  request.snapshot = 20;
  auto filtered = open(request);
  request = of_port(0);
  request.lane = 3;
  auto lane = open(request);
  request = of_port(0);
  request.drops = true;
  request.reason = no_twin;
  auto drops = open(request);
  EXPECT_THAT(tap_.open(request).error().message, HasSubstr("captures run already"));
  rte_mbuf* frames[] = {udp(1), udp(2)};
  tap_.received(2, 0, frames, 7);
  for (rte_mbuf* const frame : frames) {
    tap_.dropped(2, 0, frame, frame == frames[0] ? no_twin : punt_full);
  }
  auto records = all(*filtered);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].bytes.size(), 20U);
  EXPECT_EQ(records[0].length, 72U);
  EXPECT_EQ(records[1].reason, punt_full);
  EXPECT_TRUE(all(*lane).empty());
  records = all(*drops);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].event, TapEvent::dropped);
  EXPECT_EQ(records[0].reason, no_twin);
  rte_pktmbuf_free_bulk(frames, 2);
}

TEST_F(FrameTapTest, AFilterThatIsNoneIsRefusedInLibpcapsWords) {
  TapRequest request = of_port(0);
  request.filter = "tpc";
  EXPECT_THAT(tap_.open(request).error().message, HasSubstr("filter 'tpc': "));
  EXPECT_FALSE(tap_.on());
}

TEST_F(FrameTapTest, WhatTheReaderLeavesTooLongIsCounted) {
  auto session = open(of_port(0));
  rte_mbuf* frame = udp(1);
  for (unsigned i = 0; i < 20; ++i) tap_.received(0, 0, {&frame, 1}, i);
  EXPECT_EQ(session->lost(), 4U);
  EXPECT_EQ(all(*session).size(), 16U);
  tap_.received(0, 0, {&frame, 1}, 20);
  EXPECT_EQ(all(*session).size(), 1U);
  rte_pktmbuf_free(frame);
}

TEST_F(FrameTapTest, ABatchShowsWhatItDropsAndPunts) {
  auto session = open(of_port(0));
  LaneCounters counters;
  const HostPort no_host;
  Emitter emitter({}, 0, counters, &no_host, &tap_, 9);
  rte_mbuf* frames[] = {udp(1), udp(2)};
  Row rows[2];
  Batch batch;
  batch.mbuf = frames;
  batch.row = rows;
  batch.count = 2;
  tap_.received(9, 0, {frames, 2}, 7);
  emitter.set_rx_port(0);
  batch.drop(0, punt_full);
  batch.punt(1);
  emitter.settle(batch, {0, 2});
  emitter.flush_all();
  const auto records = all(*session);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].reason, punt_full);
  EXPECT_EQ(records[3].reason, no_twin) << "which it is dropped for in the end";
}

TEST_F(FrameTapTest, WhatWasBegunForASessionIsNotReportedToTheNext) {
  TapRequest request = of_port(0);
  request.ports.set(1);
  auto before = open(request);
  rte_mbuf* frames[] = {udp(1), udp(2)};
  tap_.received(0, 0, {frames, 1}, 7);
  FrameTap::Sending sending;
  sending.begin(tap_, 0, 1, {frames, 1});
  before.reset();
  auto after = open(request);
  tap_.received(0, 0, {frames + 1, 1}, 8);
  sending.end(1);
  const auto records = all(*after);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tsc, 8U);
  rte_pktmbuf_free_bulk(frames, 2);
}

TEST_F(FrameTapTest, ABufferThatIsUsedAgainReportsNothingOfTheFrameBefore) {
  TapRequest request = of_port(0);
  request.filter = "udp src port 1";
  auto session = open(request);
  rte_mbuf* frame = udp(1);
  tap_.received(0, 0, {&frame, 1}, 7);
  constexpr unsigned source_port = 35;
  rte_pktmbuf_mtod(frame, std::uint8_t*)[source_port] = 2;
  tap_.received(0, 0, {&frame, 1}, 8);
  tap_.dropped(0, 0, frame, no_twin);
  EXPECT_EQ(all(*session).size(), 1U);
  rte_pktmbuf_free(frame);
}

// Sessions come and go while lanes are at work.
TEST_F(FrameTapTest, NoLaneTouchesASessionThatIsGone) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> lanes;
  std::vector<rte_mbuf*> frames = {udp(1), udp(2)};
  for (std::uint32_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&, lane] {
      while (!stop) {
        if (!tap_.on()) continue;
        tap_.received(lane, 0, {&frames[lane], 1}, 1);
        tap_.dropped(lane, 0, frames[lane], no_twin);
      }
    });
  }
  for (unsigned round = 0; round < 50; ++round) {
    auto session = open(of_port(0));
    for (unsigned looks = 0; looks < 20; ++looks) {
      std::map<std::uint64_t, unsigned> events;
      for (const TapRecord& record : all(*session)) ++events[record.id];
      for (const auto& [id, count] : events) EXPECT_LE(count, 2U) << id;
    }
  }
  stop = true;
  for (std::thread& lane : lanes) lane.join();
  rte_pktmbuf_free_bulk(frames.data(), 2);
}

}  // namespace
}  // namespace sluice::engine
