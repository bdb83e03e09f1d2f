// What the tests of InspectLane share: a lane, and frames and batches for it.
#pragma once

#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "function/inspect/alert_sample.h"
#include "function/inspect/inspect_lane.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {

class InspectLaneTest : public testing::Test {
 protected:
  using PacketBuilder = packet::PacketBuilder;
  void use(const std::string& rules, const match::RateSettings& rates, std::uint64_t depth = 1 << 20,
           const BatchBudget& budget = BatchBudget(match::Detector::unlimited), bool drops = false,
           const FrameClock* clock = nullptr, std::uint64_t (*ticks)() = rte_rdtsc) {
    auto log = AlertLog::open({.eve = folder_ / "eve.json", .ports = {"a", "b"}}, 1);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
    InspectionSettings settings;
    settings.drop_on_overload = drops;
    settings.conversations.flows.capacity = 64;
    settings.conversations.flows.timeouts.udp_new = 50;
    settings.conversations.flows.timeouts.tcp_established = tcp_silence_;
    settings.conversations.extras = 4;
    settings.conversations.streams.depth = depth;
    settings.conversations.http.pipelined = 2;
    settings.conversations.http_connections = 2;
    settings.conversations.http_transactions = 4;
    settings.conversations.stream_bytes = settings.conversations.http_bytes = 1 << 20;
    lane_ = std::make_unique<InspectLane>(
        std::make_unique<InspectionSearch>(test::rules_of(test::with_policy(rules, drops)), rates), settings,
        log_->lane(0), clock != nullptr ? *clock : clock_, budget, ticks);
  }
  void udp(unsigned source, std::uint16_t port, std::uint16_t from = 4000) {
    const packet::Bytes frame =
        PacketBuilder().ipv4("10.0.0." + std::to_string(source), "10.1.0.1").udp(from, port).payload(4).build();
    put(frame);
  }
  // A frame that has just come, in a batch of its own.
  void put(const packet::Bytes& frame, std::uint16_t rx_port = 0) { batch({frame}, rte_rdtsc(), 0, {}, rx_port); }
  static packet::Bytes segment(std::uint16_t port, bool up, std::uint8_t flags, std::uint32_t sequence,
                               const std::string& text) {
    PacketBuilder builder;
    up ? builder.ipv4("10.0.0.1", "10.1.0.1").tcp(port, 80) : builder.ipv4("10.1.0.1", "10.0.0.1").tcp(80, port);
    return builder.tcp_flags(flags).tcp_sequence(sequence, up ? 501 : 101).payload(test::bytes(text)).build();
  }
  // A segment of the client with so many bytes before it, and the handshake before the first.
  void tcp(std::uint16_t port, std::uint32_t at, const std::string& text) {
    const auto send = [&](bool up, std::uint8_t flags, std::uint32_t sequence, const std::string& payload) {
      put(segment(port, up, flags, sequence, payload));
    };
    if (at == 0) {
      send(true, packet::tcp_syn, 100, "");
      send(false, packet::tcp_syn | packet::tcp_ack, 500, "");
      send(true, packet::tcp_ack, 101, "");
    }
    if (at != 0 || !text.empty()) send(true, packet::tcp_ack, 101 + at, text);
  }
  // A batch that begins at `tsc`, and came so many ticks before; each frame is a receive burst of its own. What the
  // last one was judged.
  Judgement batch(const std::vector<packet::Bytes>& frames, std::uint64_t tsc, std::uint64_t age,
                  const std::function<void()>& between = {}, std::uint16_t rx_port = 0) {
    std::vector<std::uint64_t> address;
    std::vector<std::uint16_t> length;
    std::vector<rte_mbuf> mbuf(frames.size());
    std::vector<rte_mbuf*> mbufs;
    std::vector<engine::Segment> segments;
    std::vector<engine::Row> rows(frames.size(), engine::Row{.port = rx_port});
    engine::Batch batch;
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
      address.push_back(reinterpret_cast<std::uint64_t>(frames[i].data()));
      length.push_back(static_cast<std::uint16_t>(frames[i].size()));
      mbufs.push_back(&mbuf[i]);
      if (stamp_) stamp_(mbuf[i]);
      segments.push_back({i, rx_port, tsc - age, 0, 0});
      batch.bytes += frames[i].size();
    }
    batch.frame = address.data();
    batch.length = length.data();
    batch.mbuf = mbufs.data();
    batch.segment = segments.data();
    batch.row = rows.data();
    batch.count = batch.segments = batch.capacity = static_cast<std::uint32_t>(frames.size());
    batch.ticket = ++ticket_;
    Judgement judgement;
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      if (i != 0 && between) between();
      judgement = lane_->judge(batch, i, {}, lane_->brief_of(test::view(frames[i])).hash, tsc + i);
    }
    lane_->judged();
    return judgement;
  }
  Judgement tcp_batch(std::uint16_t port, std::uint32_t at, const std::string& text, std::uint64_t tsc,
                      std::uint64_t age) {
    return batch({segment(port, true, packet::tcp_ack, 101 + at, text)}, tsc, age);
  }
  std::uint64_t metric(std::string_view name) {
    lane_->publish();
    for (std::size_t f = 0; f < InspectLane::metric_count; ++f) {
      if (InspectLane::metric_text(f).name == name) return lane_->metric(f);
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  test::Folder folder_;
  std::unique_ptr<AlertLog> log_;
  FrameClock clock_;
  std::unique_ptr<InspectLane> lane_;
  std::function<void(rte_mbuf&)> stamp_;  // of a batch's frames
  std::uint64_t ticket_ = 0;
  flow::Milliseconds tcp_silence_ = 600'000;
};

inline void wait_for_a_millisecond() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace sluice::function
