#include "engine/batch_ring.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstdlib>
#include <cstring>

#include "port/frame_pool.h"

namespace sluice::engine {
namespace {

class BatchRingAside : public testing::Test {
 protected:
  static constexpr std::uint32_t batches = 2, capacity = 64, area_bytes = 8;

  void SetUp() override {
    const DeviceMemory memory = [this](std::size_t bytes) -> Expected<void*> {
      memory_.emplace_back(std::aligned_alloc(64, bytes), &std::free);
      std::memset(memory_.back().get(), 0, bytes);
      return memory_.back().get();
    };
    auto ring = BatchRing::create({0, batches, capacity, {0, area_bytes}}, memory, memory);
    ASSERT_TRUE(ring);
    ring_ = std::move(*ring);
    auto pool = port::make_frame_pool("ring-test", pool_frames, 256, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
  }
  // With one frame, `mark` in its area.
  Batch* seal(char mark, std::uint32_t device = 0) {
    Batch* const batch = ring_->open();
    if (batch == nullptr) return nullptr;
    batch->mbuf[0] = rte_pktmbuf_alloc(pool_.get());
    batch->frame[0] = 0x1234;
    batch->length[0] = 77;
    batch->row[0] = {.port = 3};
    batch->segment[0] = {.first = 0, .rx_port = 3, .rx_tsc = 9, .lane_stalls = 0, .worker_stalls = 0};
    batch->count = batch->segments = 1;
    batch->to_device = true;
    batch->device = device;
    std::memset(batch->area[1], mark, capacity * area_bytes);
    ring_->seal(BatchState::sealed);
    return batch;
  }
  unsigned taken() const { return pool_frames - rte_mempool_avail_count(pool_.get()); }

  static constexpr unsigned pool_frames = 64;
  port::FramePool pool_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::unique_ptr<BatchRing> ring_;
};

// While a lane moves, the worker that it leaves may look once more.
TEST_F(BatchRingAside, AWorkerLeavesAnotherDevicesBatchesToItsWorker) {
  Batch* const of_the_other = seal('x', 1);
  Batch* const own = seal('y', 0);
  EXPECT_EQ(ring_->next_sealed(0), own);
  EXPECT_EQ(ring_->next_sealed(0), nullptr);
  EXPECT_EQ(ring_->next_sealed(1), of_the_other);
  EXPECT_EQ(ring_->next_sealed(1), nullptr);
  for (Batch* const batch : {of_the_other, own}) {
    rte_pktmbuf_free(batch->mbuf[0]);
    ring_->release();
  }
}

TEST_F(BatchRingAside, TheSpareHasWhatTheBatchHadAndItsPlace) {
  Batch* const batch = seal('x');
  ASSERT_EQ(ring_->next_sealed(), batch);
  Batch* const fresh = ring_->put_aside(*batch);
  ASSERT_NE(fresh, nullptr);
  EXPECT_EQ(ring_->oldest(), fresh);
  EXPECT_EQ(ring_->batches_aside(), 1U);
  EXPECT_EQ(fresh->ticket, batch->ticket);
  EXPECT_EQ(fresh->slot, batch->slot);
  EXPECT_EQ(fresh->mbuf[0], batch->mbuf[0]);
  EXPECT_EQ(fresh->frame[0], 0x1234U);
  EXPECT_EQ(fresh->length[0], 77U);
  EXPECT_EQ(fresh->row[0].port, 3U);
  EXPECT_EQ(fresh->segment[0].rx_tsc, 9U);
  EXPECT_EQ(static_cast<char>(fresh->area[1][capacity * area_bytes - 1]), 'x');
  // What the device writes from here on is in nobody's way.
  std::memset(batch->area[1], 'y', capacity * area_bytes);
  EXPECT_EQ(static_cast<char>(fresh->area[1][0]), 'x');
  rte_pktmbuf_free(fresh->mbuf[0]);
  ring_->release();
}

TEST_F(BatchRingAside, FramesThatAreHeldComeBackWhenTheDeviceAnswers) {
  Batch* const batch = seal('x');
  ASSERT_EQ(ring_->next_sealed(), batch);
  Batch* const fresh = ring_->put_aside(*batch);
  ASSERT_NE(fresh, nullptr);
  ring_->hold(*batch, fresh->mbuf[0]);
  EXPECT_EQ(ring_->frames_aside(), 1U);
  rte_pktmbuf_free(fresh->mbuf[0]);
  ring_->release();
  ring_->look_aside([](const Batch&, std::uint32_t) {});
  EXPECT_EQ(taken(), 1U) << "the device may write to it";
  batch->state.store(BatchState::done);
  ring_->look_aside([](const Batch&, std::uint32_t) {});
  EXPECT_EQ(taken(), 0U);
  EXPECT_EQ(ring_->frames_aside(), 0U);
  EXPECT_EQ(ring_->batches_aside(), 0U);
}

TEST_F(BatchRingAside, GoesOnWithSparesAndHasNoMoreThanItHasBatches) {
  Batch* aside[batches];
  for (Batch*& one : aside) {
    one = seal('x');
    ASSERT_EQ(ring_->next_sealed(), one);
    Batch* const fresh = ring_->put_aside(*one);
    ASSERT_NE(fresh, nullptr);
    rte_pktmbuf_free(fresh->mbuf[0]);
    ring_->release();
  }
  for (std::uint64_t ticket = batches; ticket < 5 * batches; ++ticket) {
    Batch* const next = seal('z');
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->ticket, ticket);
    EXPECT_TRUE(next != aside[0] && next != aside[1]);
    EXPECT_EQ(ring_->next_sealed(), next);
    if (ticket + 1 == 5 * batches) {
      EXPECT_EQ(ring_->put_aside(*next), nullptr) << "none is left";
    }
    rte_pktmbuf_free(next->mbuf[0]);
    ring_->release();
  }
  aside[1]->state.store(BatchState::lost);
  ring_->look_aside([](const Batch&, std::uint32_t) {});
  Batch* const last = seal('z');
  ASSERT_EQ(ring_->next_sealed(), last);
  EXPECT_EQ(ring_->put_aside(*last), aside[1]) << "it is a spare now";
  rte_pktmbuf_free(last->mbuf[0]);
}

TEST_F(BatchRingAside, OneOfTheTwoTakesASealedBatch) {
  Batch* const batch = seal('x');
  EXPECT_TRUE(BatchRing::take_sealed(*batch));
  EXPECT_FALSE(BatchRing::take_sealed(*batch));
  EXPECT_EQ(ring_->next_sealed(), nullptr) << "it is the lane's";
  rte_pktmbuf_free(batch->mbuf[0]);
}

}  // namespace
}  // namespace sluice::engine
