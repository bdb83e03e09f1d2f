// The pass of departures (traits.h, Departure), on a lane that is driven by hand.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

const packet::Reason kept_here = packet::register_reason("departures_test", "for a test");

// Sends every row by port 1.
class Sender : public Element {
 public:
  Shape shape() const override { return {.bytes_per_frame = 4, .on_device = true, .ends_chain = true}; }
  void compute(Batch& batch, Span span) override { computed += span.count; }
  void apply(Batch& batch, Span span, Emitter&) override {
    SendRun run(batch, span);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (batch.goes_on(i)) {
        run.send(i, 1);
      } else {
        run.other(i);
      }
    }
    run.finish();
  }
  std::uint32_t computed = 0;
};

// Has even rows pass it again, drops every fifth, and writes down what it sees.
class Leaver : public Element, public Departure {
 public:
  Shape shape() const override {
    return {.bytes_per_frame = 4, .payloads = Payloads::changed, .changes_headers = true, .on_device = true};
  }
  void* find_trait(std::string_view name) override { return offer<Departure>(name, this); }
  void classify(Batch& batch, Span span) override {
    if (!batch.departs) return;
    classified += span.count;
    for (std::uint32_t i = span.first; i < span.end(); ++i) EXPECT_EQ(batch.row[i].port, leaves_by);
  }
  void compute(Batch& batch, Span span) override {
    if (batch.departs) computed += span.count;
  }
  void apply(Batch&, Span, Emitter&) override {}
  void choose(Batch& batch, Span span, const std::uint16_t* came_by, Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      EXPECT_EQ(batch.row[i].fate, Fate::sent);
      if (batch.departs) {
        ++left;
        continue;
      }
      ports_seen.push_back(came_by[i - span.first]);
      if (seen % 5 == 4) {
        batch.drop(i, kept_here);
      } else if (seen % 2 == 0) {
        batch.go_on_later(i);
      }
      ++seen;
    }
  }
  std::uint16_t leaves_by = 1;
  unsigned seen = 0, classified = 0, computed = 0, left = 0;
  std::vector<std::uint16_t> ports_seen;
};

class DeparturesTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<WatchedElement>(leaver_));
    elements.push_back(std::make_unique<WatchedElement>(sender_));
    return std::make_unique<Pipeline>(std::move(elements));
  }
  Leaver leaver_;
  Sender sender_;
};

TEST_F(DeparturesTest, AreAPassOfTheirOwnBehindTheChain) {
  make({});
  ASSERT_EQ(pipeline_->passes(), 3U);
  EXPECT_TRUE(pipeline_->is_departing(2));
  EXPECT_FALSE(pipeline_->is_departing(1));
  EXPECT_TRUE(pipeline_->decides(1));
  EXPECT_FALSE(pipeline_->decides(0));
  EXPECT_EQ(pipeline_->areas(2), (std::vector<std::uint32_t>{4, 4}));
}

TEST_F(DeparturesTest, FramesThatAreChosenGoThroughIt) {
  make({});
  time_point();
  arrive(10);
  arrived_ = 0;  // take_out() knows an order without gaps alone
  collect();
  time_point();
  for (unsigned pass = 0; pass < 2; ++pass) {
    Batch* const batch = sealed(pass);
    ASSERT_NE(batch, nullptr);
    finish(*batch);
    forward();
  }
  // Of ten rows 4 and 9 are dropped, 1, 3, 5 and 7 left at once.
  EXPECT_EQ(take_out(), 4U);
  EXPECT_EQ(drops(kept_here), 2U);
  EXPECT_EQ(leaver_.ports_seen, std::vector<std::uint16_t>(10, 0));
  Batch* const departing = sealed(2);
  ASSERT_NE(departing, nullptr);
  EXPECT_TRUE(departing->departs);
  EXPECT_EQ(departing->count, 4U);
  EXPECT_EQ(leaver_.classified, 4U);
  EXPECT_EQ(lane_->in_flight(), 4U);
  finish(*departing);
  EXPECT_EQ(leaver_.computed, 4U);
  EXPECT_EQ(sender_.computed, 10U + 4U);
  forward();
  EXPECT_EQ(take_out(), 4U);
  EXPECT_EQ(leaver_.left, 4U);
  EXPECT_EQ(lane_->in_flight(), 0U);
}

TEST_F(DeparturesTest, WhatTheHostSendsGoesThroughItToo) {
  rte_ring* const from_host = rte_ring_create("departures-test", 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  ASSERT_NE(from_host, nullptr);
  const std::unique_ptr<rte_ring, decltype(&rte_ring_free)> owner(from_host, &rte_ring_free);
  host_ports_[0].from_host = from_host;
  leaver_.leaves_by = 0;
  make({});
  time_point();
  for (unsigned i = 0; i < 5; ++i) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
    ASSERT_NE(frame, nullptr);
    std::memset(rte_pktmbuf_append(frame, 60), 0, 60);
    ASSERT_EQ(rte_ring_enqueue(from_host, frame), 0);
  }
  EXPECT_EQ(lane_->forward_round(), 5U);
  EXPECT_EQ(leaver_.ports_seen, std::vector<std::uint16_t>(5, no_port));
  EXPECT_EQ(lane_->in_flight(), 2U);
  EXPECT_EQ(drops(kept_here), 1U);
  Batch* const departing = sealed(2);
  ASSERT_NE(departing, nullptr);
  EXPECT_EQ(departing->count, 2U);
  finish(*departing);
  forward();
  EXPECT_EQ(take_out(), 2U);
  EXPECT_EQ(lane_->in_flight(), 0U);
  EXPECT_EQ(lane_->forwarder_counters().injected_frames.get(), 5U);
  arrived_ = 0;
}

}  // namespace
}  // namespace sluice::engine
