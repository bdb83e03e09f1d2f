// Each way of keeping order over the model: what leaves, in what order, and what the device can do meanwhile.
#include <gtest/gtest.h>

#include <functional>

#include "bench/order_model.h"
#include "port/frame_pool.h"

namespace sluice::cli::bench {
namespace {

class Order : public testing::Test {
 protected:
  void SetUp() override {
    auto pool = port::make_frame_pool("order-test", 64 * order_batch_frames, 256, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    frames_.resize(std::size_t{64} * order_batch_frames);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool_.get(), frames_.data(), static_cast<unsigned>(frames_.size())), 0);
  }
  void TearDown() override { rte_pktmbuf_free_bulk(frames_.data(), static_cast<unsigned>(frames_.size())); }
  OrderRun run(const std::unique_ptr<OrderScheme>& scheme, double jitter, unsigned capacity) {
    auto ran = run_model(*scheme, {jitter, capacity, 3000}, frames_);
    EXPECT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->frames, 3000 * order_batch_frames) << scheme->name() << " " << jitter << " " << capacity;
    return std::move(*ran);
  }
  port::FramePool pool_;
  std::vector<rte_mbuf*> frames_;
};

TEST_F(Order, WithoutJitterAllKeepIt) {
  for (const auto& make : {make_no_care, make_tickets, make_blop, make_rte_reorder}) {
    const OrderRun ran = run(make(), 0, 8);
    EXPECT_EQ(ran.out_of_order, 0);
    EXPECT_NEAR(ran.units_a_batch, 1, 0.01);
    EXPECT_EQ(ran.gave_up, 0U);
  }
}

TEST_F(Order, WithCapacityEnoughOnlyCarelessnessLosesIt) {
  EXPECT_GT(run(make_no_care(), 16, 64).out_of_order, 0.3);
  for (const auto& make : {make_tickets, make_blop, make_rte_reorder}) {
    const OrderRun ran = run(make(), 16, 64);
    EXPECT_EQ(ran.out_of_order, 0);
    EXPECT_NEAR(ran.units_a_batch, 1, 0.01);
  }
}

TEST_F(Order, WithoutCapacityTicketsWaitAndTheOthersGiveUp) {
  const double careless = run(make_no_care(), 32, 8).units_a_batch;
  const OrderRun ours = run(make_tickets(), 32, 8);
  EXPECT_EQ(ours.out_of_order, 0);
  EXPECT_GT(ours.units_a_batch, 1.1 * careless);
  for (const auto& make : {make_blop, make_rte_reorder}) {
    const OrderRun ran = run(make(), 32, 8);
    EXPECT_GT(ran.out_of_order, 0.05);
    EXPECT_GT(ran.gave_up, 100U);
    EXPECT_NEAR(ran.units_a_batch, careless, 0.05 * careless);
  }
}

TEST_F(Order, GivingUpTheOldestGapIsTheSameBothWays) {
  const OrderRun blop = run(make_blop(), 32, 8);
  const OrderRun reorder = run(make_rte_reorder(), 32, 8);
  EXPECT_DOUBLE_EQ(blop.out_of_order, reorder.out_of_order);
  EXPECT_DOUBLE_EQ(blop.units_a_batch, reorder.units_a_batch);
}

TEST_F(Order, WhatWaitsAtTheEndLeaves) {
  for (const auto& make : {make_blop, make_rte_reorder}) {
    const auto scheme = make();
    ASSERT_TRUE(scheme->reset(8));
    OrderOutput out(8);
    for (std::uint32_t batch = 0; batch < 6; ++batch) {
      for (unsigned i = 0; i < order_batch_frames; ++i) {
        frames_[batch * order_batch_frames + i]->hash.fdir.hi = batch * order_batch_frames + i;
      }
      scheme->tag(batch, &frames_[std::size_t{batch} * order_batch_frames]);
    }
    for (const std::uint32_t batch : {3U, 5U, 1U}) {  // 0, 2 and 4 never come
      scheme->complete(batch, &frames_[std::size_t{batch} * order_batch_frames], out);
    }
    EXPECT_TRUE(out.numbers().empty());
    scheme->finish(out);
    ASSERT_EQ(out.numbers().size(), 3 * order_batch_frames) << scheme->name();
    EXPECT_EQ(out.out_of_order(), 0);
    EXPECT_EQ(out.numbers().front(), 1 * order_batch_frames);
  }
}

TEST_F(Order, TheSameCallsAreTimed) {
  for (const auto& make : {make_no_care, make_tickets, make_blop, make_rte_reorder}) {
    const auto scheme = make();
    const OrderRun ran = run(scheme, 8, 8);
    const auto ticks = measure_ticks(*scheme, {8, 8, 3000}, ran, frames_, 3);
    ASSERT_TRUE(ticks);
    EXPECT_GT(ticks->low, 0);
    EXPECT_LE(ticks->low, ticks->median);
  }
}

}  // namespace
}  // namespace sluice::cli::bench
