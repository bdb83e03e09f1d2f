// The pass of departures (traits.h, Departure), on a lane that is driven by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
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
    ASSERT_EQ(rte_ring_enqueue(from_host, made(i)), 0);
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

// --- What elements make ---

std::uint32_t number_of(const Batch& batch, std::uint32_t i) {
  std::uint32_t number = 0;
  std::memcpy(&number, batch.data(i), sizeof number);
  return number;
}

// Has the frames of some numbers pass it again.
class Picker : public Element, public Departure {
 public:
  Shape shape() const override { return {.bytes_per_frame = 4, .changes_headers = true, .on_device = true}; }
  void* find_trait(std::string_view name) override { return offer<Departure>(name, this); }
  void classify(Batch& batch, Span span) override {
    for (std::uint32_t i = span.first; batch.departs && i < span.end(); ++i) again.push_back(number_of(batch, i));
  }
  void apply(Batch&, Span, Emitter&) override {}
  void choose(Batch& batch, Span span, const std::uint16_t* came_by, Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end() && !batch.departs; ++i) {
      const std::uint32_t number = number_of(batch, i);
      shown.push_back(number);
      if (came_by[i - span.first] == no_port) of_no_port.insert(number);
      if (picks.contains(number)) batch.go_on_later(i);
    }
  }
  std::set<std::uint32_t> picks, of_no_port;
  std::vector<std::uint32_t> shown, again;
};

// Stands in front of the last element, in a pass of its own.
class Inventive : public Element {
 public:
  Shape shape() const override { return {.bytes_per_frame = 4, .changes_headers = true}; }
  void apply(Batch& batch, Span span, Emitter& out) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) act(batch, i, out);
  }
  std::function<void(Batch&, std::uint32_t, Emitter&)> act = [](Batch&, std::uint32_t, Emitter&) {};
};

using Numbers = std::vector<std::uint32_t>;

class MadeDeparturesTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<WatchedElement>(picker_));
    elements.push_back(std::make_unique<WatchedElement>(inventive_));
    elements.push_back(std::make_unique<WatchedElement>(sender_));
    return std::make_unique<Pipeline>(std::move(elements));
  }
  void make_on_core() {
    make({});
    clock_.device_up.store(false);
  }
  // Frames 0 to 9 through the lane's core, and what left.
  Numbers left_of_ten() {
    arrived_ = 0;
    arrive(10);
    collect();
    forward();
    return left();
  }
  Numbers left() {
    Numbers all;
    for (const Sent& one : sent()) all.push_back(one.number);
    return all;
  }
  void TearDown() override {
    arrived_ = 0;
    LaneTest::TearDown();
  }
  Picker picker_;
  Inventive inventive_;
  Sender sender_;
};

TEST_F(MadeDeparturesTest, TrafficIsShownAndLeavesBehindTheRows) {
  inventive_.act = [this](Batch& batch, std::uint32_t i, Emitter& out) {
    if (number_of(batch, i) == 3) out.emit(i, made(1003), 1);
    if (number_of(batch, i) == 4) out.emit(i, made(1004), 1);
  };
  picker_.picks = {1003};
  make_on_core();
  EXPECT_EQ(left_of_ten(), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1004, 1003}));
  EXPECT_EQ(picker_.shown, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1003, 1004}));
  EXPECT_EQ(picker_.again, Numbers{1003});
  EXPECT_EQ(picker_.of_no_port, (std::set<std::uint32_t>{1003, 1004}));
  EXPECT_EQ(lane_->in_flight(), 0U);
  EXPECT_EQ(lane_->forwarder_counters().emitted_frames.get(), 2U);
}

TEST_F(MadeDeparturesTest, WhatIsToLeaveAsItIsIsNotShown) {
  inventive_.act = [this](Batch& batch, std::uint32_t i, Emitter& out) {
    if (number_of(batch, i) == 5) out.emit(i, made(1005), 1, Made::as_it_is);
    if (number_of(batch, i) == 6) {
      EXPECT_TRUE(out.clone(batch, i, 1));
    }
    if (number_of(batch, i) == 7) out.emit(made(1007), 1, Made::as_it_is);
  };
  picker_.picks = {1005, 1007};
  make_on_core();
  // In front of the rows, which are in a later pass.
  EXPECT_EQ(left_of_ten(), (Numbers{1007, 1005, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(picker_.shown, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(picker_.again.empty());
}

// A reset in place of a row is traffic as one besides is.
TEST_F(MadeDeparturesTest, AnswersInFrontOfTheLastElementAreShown) {
  inventive_.act = [](Batch& batch, std::uint32_t i, Emitter&) {
    const std::uint32_t number = number_of(batch, i);
    batch.row[i].port = 1;
    if (number == 2 || number == 8) batch.answer(i, kept_here);
    if (number == 4) batch.send(i, 1);
  };
  picker_.picks = {2, 4};
  make_on_core();
  EXPECT_EQ(left_of_ten(), (Numbers{0, 1, 3, 5, 6, 7, 9, 8, 2, 4}));
  EXPECT_EQ(picker_.shown, (Numbers{0, 1, 3, 5, 6, 7, 9, 2, 4, 8}));
  EXPECT_EQ(picker_.again, (Numbers{2, 4}));
  EXPECT_EQ(lane_->forwarder_counters().answers[kept_here].get(), 2U);
  EXPECT_EQ(lane_->forwarder_counters().emitted_frames.get(), 0U);
}

TEST_F(MadeDeparturesTest, FramesOfNoRowAreShown) {
  inventive_.act = [this](Batch& batch, std::uint32_t i, Emitter& out) {
    if (number_of(batch, i) == 0) out.emit(made(2000), 1);
  };
  picker_.picks = {2000};
  make_on_core();
  EXPECT_EQ(left_of_ten(), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2000}));
  EXPECT_EQ(picker_.again, Numbers{2000});
}

// A device has all batches of departures: what comes meanwhile waits, in order, and what is too much is dropped.
TEST_F(MadeDeparturesTest, WaitWhileAllBatchesAreInUse) {
  std::uint32_t next = 5000;
  unsigned each = 1;
  inventive_.act = [&](Batch& batch, std::uint32_t i, Emitter& out) {
    for (unsigned n = 0; n < each; ++n) {
      picker_.picks.insert(next);
      out.emit(i, made(next++), 1);
    }
    batch.absorb(i);
  };
  make({.batches = 4});
  const auto round = [&] {
    arrive(1);
    collect();
    time_point();
    Batch* const first = sealed(0);
    ASSERT_NE(first, nullptr);
    finish(*first);
    forward();
    EXPECT_EQ(sealed(1), nullptr) << "nothing of that pass is for the device";
  };
  time_point();
  for (unsigned n = 0; n < 4; ++n) round();
  EXPECT_EQ(picker_.again, (Numbers{5000, 5001, 5002, 5003}));
  EXPECT_EQ(lane_->in_flight(), 4U);
  round();
  EXPECT_EQ(picker_.again.size(), 4U);
  EXPECT_EQ(lane_->in_flight(), 5U);
  EXPECT_TRUE(lane_->forwarder_holds_frames());
  expect_conserved();
  each = Emitter::most_made - 10;
  round();
  EXPECT_EQ(drops(departures_full), 0U);
  each = 12;
  round();
  EXPECT_EQ(drops(departures_full), 3U);
  expect_conserved();
  std::uint32_t sent = 0;
  for (unsigned n = 0; n < 4 + Emitter::most_made && lane_->in_flight() != 0; ++n) {
    if (Batch* const departing = sealed(3); departing != nullptr) finish(*departing);
    forward();
    for (const std::uint32_t number : left()) EXPECT_EQ(number, 5000 + sent++);
  }
  EXPECT_EQ(sent, 4 + Emitter::most_made);
  EXPECT_EQ(lane_->in_flight(), 0U);
}

TEST_F(MadeDeparturesTest, WhatWaitsAtTheEndIsCountedAsStopped) {
  inventive_.act = [this](Batch& batch, std::uint32_t i, Emitter& out) {
    out.emit(i, made(5000), 1);
    batch.absorb(i);
  };
  make({});
  picker_.picks = {5000};
  time_point();
  for (unsigned n = 0; n < 5; ++n) {
    arrive(1);
    collect();
    time_point();
    Batch* const first = sealed(0);
    ASSERT_NE(first, nullptr);
    finish(*first);
    forward();
  }
  lane_->abandon();
  EXPECT_EQ(drops(stopped), 5U);
  EXPECT_EQ(lane_->in_flight(), 0U);
}

}  // namespace
}  // namespace sluice::engine
