// A port that a hook offers each burst once: on a lane that is driven by hand, whose out port takes nothing.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/lane_trial_test.h"

namespace sluice::engine {
namespace {

const packet::Reason for_a_test = packet::register_reason("offers_once_test", "for a test");

class Hook : public Element, public TxHook {
 public:
  void* find_trait(std::string_view name) override { return offer<TxHook>(name, this); }
  void apply(Batch&, Span, Emitter& out) override { oldest_of_apply = out.oldest_tsc(); }
  bool hooks(std::uint16_t port) const override { return port == 1; }
  bool offers_once(std::uint16_t) const override { return once; }
  packet::Reason not_taken(std::uint32_t lane, std::uint16_t port, unsigned count) override {
    EXPECT_EQ(lane, 0U);
    EXPECT_EQ(port, 1U);
    lost += count;
    return reason;
  }
  unsigned leave(std::uint32_t, std::uint16_t, rte_mbuf**, unsigned count, Emitter& out) override {
    oldest_of_leave = out.oldest_tsc();
    return count;
  }

  bool once = true;
  packet::Reason reason = for_a_test;
  unsigned lost = 0;
  std::uint64_t oldest_of_apply = 0, oldest_of_leave = 0;
};

class OffersOnceTest : public LaneTest {
 protected:
  std::unique_ptr<Pipeline> make_pipeline() override {
    std::vector<std::unique_ptr<Element>> elements;
    elements.push_back(std::make_unique<WatchedElement>(hook_));
    elements.push_back(std::make_unique<WatchedElement>(peer_));
    return std::make_unique<Pipeline>(std::move(elements));
  }
  // Ten frames, computed on the lane's core, for a port that takes none.
  void forward_ten_in_vain() {
    make({});
    clock_.device_up.store(false);
    while (rte_ring_free_count(out_) != 0) {
      rte_mbuf* const frame = rte_pktmbuf_alloc(pool_.get());
      ASSERT_NE(frame, nullptr);
      ASSERT_EQ(rte_ring_enqueue(out_, frame), 0);
    }
    arrive(10);
    collect();
    forward();
    arrived_ = 0;  // what is in the ring is none of these
  }
  Hook hook_;
};

TEST_F(OffersOnceTest, WhatIsNotTakenIsDroppedForTheHooksReason) {
  forward_ten_in_vain();
  EXPECT_EQ(hook_.lost, 10U);
  EXPECT_EQ(drops(for_a_test), 10U);
  EXPECT_EQ(drops(tx_full), 0U);
}

TEST_F(OffersOnceTest, WithoutAReasonItIsTxFull) {
  hook_.reason = packet::no_reason;
  forward_ten_in_vain();
  EXPECT_EQ(hook_.lost, 10U);
  EXPECT_EQ(drops(tx_full), 10U);
}

TEST_F(OffersOnceTest, AHookThatSaysNothingIsNotAsked) {
  hook_.once = false;
  forward_ten_in_vain();
  EXPECT_EQ(hook_.lost, 0U);
  EXPECT_EQ(drops(tx_full), 10U);
}

TEST_F(OffersOnceTest, WhoCopiesKnowsSinceWhenFramesWait) {
  const std::uint64_t before = rte_rdtsc();
  forward_ten_in_vain();
  EXPECT_GE(hook_.oldest_of_apply, before);
  EXPECT_EQ(hook_.oldest_of_leave, hook_.oldest_of_apply);
}

}  // namespace
}  // namespace sluice::engine
