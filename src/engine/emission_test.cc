// What becomes of rows, and of frames that elements make, take over, copy, grow and shrink: on a lane that is driven by
// hand, frame by frame.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/batch_edit.h"
#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

const packet::Reason for_a_test = packet::register_reason("emission_test", "for a test");

// Calls the test for each row that it applies.
class Scripted : public Element, public Timer, public TxHook {
 public:
  Shape shape() const override { return {.payloads = payloads}; }
  void* find_trait(std::string_view name) override {
    if (name == Timer::trait_name && idles) return offer<Timer>(name, this);
    return name == TxHook::trait_name && leaves ? offer<TxHook>(name, this) : nullptr;
  }
  void apply(Batch& batch, Span span, Emitter& out) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) applies(batch, i, out);
  }
  void idle(std::uint32_t, std::uint64_t, Emitter& out) override { idles(out); }
  bool hooks(std::uint16_t port) const override { return port == 1; }
  unsigned leave(std::uint32_t, std::uint16_t, rte_mbuf** frames, unsigned count, Emitter& out) override {
    return leaves(frames, count, out);
  }

  Payloads payloads = Payloads::untouched;
  std::function<void(Batch&, std::uint32_t, Emitter&)> applies = [](Batch&, std::uint32_t, Emitter&) {};
  std::function<void(Emitter&)> idles;
  std::function<unsigned(rte_mbuf**, unsigned, Emitter&)> leaves;
};

// Reads payloads, so that it is in a pass of its own behind what changes them.
class Reader : public Element {
 public:
  Shape shape() const override { return {.payloads = Payloads::read}; }
  void apply(Batch&, Span, Emitter&) override {}
};

class EmissionTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<WatchedElement>(scripted_));
    if (scripted_.payloads == Payloads::changed) elements.push_back(std::make_unique<Reader>());
    if (decides_) elements.push_back(std::make_unique<WatchedElement>(peer_));
    return std::make_unique<Pipeline>(std::move(elements));
  }

  // Ten frames, with the numbers 0 to 9, on the lane's core, and what left by the other port.
  std::vector<Sent> sent_of_ten() {
    arrived_ = left_ = 0;
    arrive(10);
    collect();
    forward();
    return sent();
  }
  void make_on_core() {
    make({});
    clock_.device_up.store(false);
    arrived_ = 0;
  }
  const LaneCounters& forwarded() const { return lane_->forwarder_counters(); }

  Scripted scripted_;
  bool decides_ = true;
};

// A last element that sends all of a span by port 1, but for what `instead` does.
struct SendsInARun {
  std::function<bool(SendRun&, Batch&, std::uint32_t)> instead = [](SendRun&, Batch&, std::uint32_t) { return false; };
  std::optional<SendRun> run{};

  void operator()(Batch& batch, std::uint32_t i) {
    if (i == 0) run.emplace(batch, Span{0, batch.count});
    if (!instead(*run, batch, i)) run->send(i, 1);
    if (i + 1 == batch.count) run->finish();
  }
};

TEST_F(EmissionTest, ASendRunIsWrittenDownOnlyWhereRowsDiffer) {
  const auto drop = [](SendRun& run, Batch& batch, std::uint32_t i) {
    run.other(i);
    batch.drop(i, for_a_test);
  };
  const auto elsewhere = [](SendRun& run, Batch&, std::uint32_t i) { run.send(i, 0); };
  decides_ = false;
  for (const std::uint32_t odd : {0U, 1U, 5U, 9U, 10U}) {
    for (const bool drops : {true, false}) {
      SendsInARun sends{[&](SendRun& run, Batch& batch, std::uint32_t i) {
        if (i != odd) return false;
        drops ? drop(run, batch, i) : elsewhere(run, batch, i);
        return true;
      }};
      scripted_.applies = [&](Batch& batch, std::uint32_t i, Emitter&) { sends(batch, i); };
      make_on_core();
      std::vector<Sent> expected;
      for (std::uint32_t i = 0; i < 10; ++i) {
        if (i != odd) expected.push_back({i, 60});
      }
      EXPECT_EQ(sent_of_ten(), expected) << odd;
      EXPECT_EQ(forwarded().tx_frames[1].get(), expected.size());
      EXPECT_EQ(forwarded().tx_bytes[1].get(), 60 * expected.size());
      EXPECT_EQ(forwarded().drops[for_a_test].get(), odd < 10 && drops ? 1U : 0U);
      EXPECT_EQ(forwarded().drops[undecided].get(), 0U);
      void* back = nullptr;  // what leaves by port 0 comes in by it again
      const bool came_back = rte_ring_dequeue(in_, &back) == 0;
      EXPECT_EQ(came_back, odd < 10 && !drops);
      if (came_back) rte_pktmbuf_free(static_cast<rte_mbuf*>(back));
    }
  }
}

TEST_F(EmissionTest, WhatIsMadeLeavesBehindItsRowOfASendRun) {
  decides_ = false;
  SendsInARun sends;
  scripted_.applies = [&](Batch& batch, std::uint32_t i, Emitter& out) {
    if (i == 7) out.emit(i, made(1007), 1);
    sends(batch, i);
  };
  make_on_core();
  std::vector<Sent> expected;
  for (std::uint32_t i = 0; i < 10; ++i) {
    expected.push_back({i, 60});
    if (i == 7) expected.push_back({1007, 60});
  }
  EXPECT_EQ(sent_of_ten(), expected);
}

TEST_F(EmissionTest, WhatAnElementMakesLeavesBehindItsRow) {
  std::vector<rte_mbuf*> taken;
  scripted_.applies = [&](Batch& batch, std::uint32_t i, Emitter& out) {
    if (i == 2) out.emit(i, made(1002), 1);
    if (i == 4) {
      EXPECT_TRUE(out.clone(batch, i, 1, 32));
    }
    if (i == 5) taken.push_back(batch.consume(i));
    if (i == 7) batch.absorb(i);
    if (i == 6) batch.drop(i, for_a_test);
    if (i == 6) out.emit(i, made(1006), 1);  // the row itself stays
    if (i == 8) {
      EXPECT_TRUE(out.clone(batch, i, 1));
    }
  };
  make_on_core();
  EXPECT_EQ(
      sent_of_ten(),
      (std::vector<Sent>{
          {0, 60}, {1, 60}, {2, 60}, {1002, 60}, {3, 60}, {4, 60}, {4, 32}, {1006, 60}, {8, 60}, {8, 60}, {9, 60}}));
  EXPECT_EQ(forwarded().emitted_frames.get(), 2U);
  EXPECT_EQ(forwarded().cloned_frames.get(), 2U);
  EXPECT_EQ(forwarded().consumed_frames.get(), 2U);
  EXPECT_EQ(drops(for_a_test), 1U);
  ASSERT_EQ(taken.size(), 1U);
  rte_pktmbuf_free(taken.front());
}

TEST_F(EmissionTest, SeveralForOneRowLeaveInTheOrderOfTheCalls) {
  scripted_.applies = [&](Batch&, std::uint32_t i, Emitter& out) {
    if (i != 0) return;
    for (std::uint32_t row = 10; row-- > 0;) {
      for (std::uint32_t n = 0; n < 3; ++n) out.emit(row, made(1000 + 10 * row + n), 1);
    }
  };
  make_on_core();
  std::vector<Sent> expected;
  for (std::uint32_t row = 0; row < 10; ++row) {
    expected.push_back({row, 60});
    for (std::uint32_t n = 0; n < 3; ++n) expected.push_back({1000 + 10 * row + n, 60});
  }
  EXPECT_EQ(sent_of_ten(), expected);
}

// Rows that go on leave with the next pass, and what was made for them before.
TEST_F(EmissionTest, WhatIsMadeInAnEarlierPassLeavesAtOnce) {
  scripted_.payloads = Payloads::changed;
  scripted_.applies = [&](Batch& batch, std::uint32_t i, Emitter& out) {
    if (i == 3) out.emit(i, made(1003), 1);
    if (i == 7) {
      EXPECT_TRUE(out.clone(batch, i, 1));
    }
  };
  make_on_core();
  ASSERT_EQ(pipeline_->passes(), 2U);
  std::vector<Sent> expected{{1003, 60}, {7, 60}};
  for (std::uint32_t i = 0; i < 10; ++i) expected.push_back({i, 60});
  EXPECT_EQ(sent_of_ten(), expected);
}

TEST_F(EmissionTest, ARowThatNobodyDecidesIsDroppedAsThat) {
  decides_ = false;
  make_on_core();
  EXPECT_TRUE(sent_of_ten().empty());
  EXPECT_EQ(drops(undecided), 10U);
}

TEST_F(EmissionTest, ARowForTheHostIsDroppedForItsReasonWhereThereIsNone) {
  scripted_.applies = [](Batch& batch, std::uint32_t i, Emitter&) {
    if (i == 1) batch.to_host(i, for_a_test);
    if (i == 2) batch.punt(i);
  };
  make_on_core();
  EXPECT_EQ(sent_of_ten().size(), 8U);
  EXPECT_EQ(drops(for_a_test), 1U);
  EXPECT_EQ(drops(no_twin), 1U);
}

TEST_F(EmissionTest, AnAnswerIsCountedAndGoesBack) {
  scripted_.applies = [&](Batch& batch, std::uint32_t i, Emitter& out) {
    if (i != 1) return;
    batch.answer(i, for_a_test);
    out.answer_besides(batch, i, made(1001), for_a_test);
  };
  make_on_core();
  EXPECT_EQ(sent_of_ten().size(), 9U);
  EXPECT_EQ(forwarded().answers[for_a_test].get(), 2U);
  EXPECT_EQ(forwarded().tx_frames[0].get(), 2U);
  EXPECT_EQ(forwarded().emitted_frames.get(), 1U);
}

TEST_F(EmissionTest, AFrameGrowsAndShrinksAtBothEnds) {
  scripted_.applies = [](Batch& batch, std::uint32_t i, Emitter&) {
    const std::uint32_t number = 2000 + i;
    if (i == 1) {
      std::uint8_t* const front = prepend(batch, i, 50);
      ASSERT_NE(front, nullptr);
      std::memcpy(front, &number, sizeof number);
      EXPECT_EQ(capacity_in_front(batch, i), RTE_PKTMBUF_HEADROOM - 50U);
    } else if (i == 2) {
      std::memcpy(shrink_front(batch, i, 14), &number, sizeof number);
    } else if (i == 3) {
      set_length(batch, i, 200);
    } else if (i == 4) {
      set_length(batch, i, 40);
    } else if (i == 5) {
      EXPECT_EQ(prepend(batch, i, RTE_PKTMBUF_HEADROOM + 1), nullptr);
    }
  };
  make_on_core();
  const std::vector<Sent> sent = sent_of_ten();
  ASSERT_EQ(sent.size(), 10U);
  EXPECT_EQ(sent[1], (Sent{2001, 110}));
  EXPECT_EQ(sent[2], (Sent{2002, 46}));
  EXPECT_EQ(sent[3], (Sent{3, 200}));
  EXPECT_EQ(sent[4], (Sent{4, 40}));
  EXPECT_EQ(sent[5], (Sent{5, 60})) << "nothing has changed";
  EXPECT_EQ(forwarded().tx_bytes[1].get(), 6U * 60 + 110 + 46 + 200 + 40);
}

// A copy has as much capacity behind its buffer's headroom as the frame has that grew into it.
TEST_F(EmissionTest, AFrameThatFillsItsBufferIsClonedWhole) {
  constexpr std::uint32_t grown = 100;
  scripted_.applies = [](Batch& batch, std::uint32_t i, Emitter& out) {
    if (i != 0) return;
    set_length(batch, i, capacity_from(batch, i));
    std::uint8_t* const front = prepend(batch, i, grown);
    ASSERT_NE(front, nullptr);
    const std::uint32_t number = 77;
    std::memcpy(front, &number, sizeof number);
    EXPECT_TRUE(out.clone(batch, i, 1));
  };
  make_on_core();
  const std::vector<Sent> sent = sent_of_ten();
  ASSERT_EQ(sent.size(), 11U);
  EXPECT_EQ(sent[0].number, 77U);
  EXPECT_EQ(sent[0], sent[1]);
}

TEST_F(EmissionTest, AnElementMayEmitWhileThereIsNothingToDo) {
  bool once = true;
  scripted_.idles = [&](Emitter& out) {
    if (std::exchange(once, false)) out.emit(made(5000), 1);
  };
  make_on_core();
  EXPECT_EQ(lane_->forward_round(), 0U);
  EXPECT_EQ(sent(), (std::vector<Sent>{{5000, 60}}));
  EXPECT_EQ(forwarded().emitted_frames.get(), 1U);
  EXPECT_EQ(forwarded().tx_frames[1].get(), 1U);
}

// Every other frame leaves by the port that it came in by, four bytes longer; one is dropped, one copied.
TEST_F(EmissionTest, AHookChangesWhatLeavesByAPort) {
  scripted_.leaves = [](rte_mbuf** frames, unsigned count, Emitter& out) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      std::memcpy(&number, rte_pktmbuf_mtod(frames[i], const void*), sizeof number);
      if (number == 5) {
        out.drop(frames[i], for_a_test);
      } else if (number % 2 == 0) {
        EXPECT_NE(rte_pktmbuf_prepend(frames[i], 4), nullptr);
        out.transmit(frames[i], rte_pktmbuf_pkt_len(frames[i]), 0);
      } else {
        if (number == 7) {
          EXPECT_TRUE(out.clone(frames[i], 0, 20));
        }
        frames[left++] = frames[i];
      }
    }
    return left;
  };
  make_on_core();
  EXPECT_EQ(sent_of_ten(), (std::vector<Sent>{{1, 60}, {3, 60}, {7, 60}, {9, 60}}));
  EXPECT_EQ(drops(for_a_test), 1U);
  EXPECT_EQ(forwarded().tx_frames[0].get(), 6U);
  EXPECT_EQ(forwarded().tx_bytes[0].get(), 5U * 64 + 20);
  EXPECT_EQ(forwarded().cloned_frames.get(), 1U);
}

}  // namespace
}  // namespace sluice::engine
