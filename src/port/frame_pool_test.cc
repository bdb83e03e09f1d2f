#include "port/frame_pool.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <vector>

namespace sluice::port {
namespace {

TEST(FramePool, FramesStartOnLinesAtOneStrideAndComeBackInOrder) {
  for (const unsigned frame_bytes : {2048U, 1500U, 9216U}) {
    auto pool = make_frame_pool("pool-test", 1000, frame_bytes, SOCKET_ID_ANY);
    ASSERT_TRUE(pool) << pool.error().message;
    std::vector<rte_mbuf*> frames(1000);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), frames.data(), 1000), 0);
    EXPECT_EQ(rte_pktmbuf_alloc(pool->get()), nullptr);
    std::vector<std::uintptr_t> starts;
    for (rte_mbuf* frame : frames) {
      starts.push_back(rte_pktmbuf_mtod(frame, std::uintptr_t));
      EXPECT_EQ(starts.back() % 128, 0U);
      EXPECT_GE(rte_pktmbuf_tailroom(frame), frame_bytes);
    }
    for (std::size_t i = 1; i < starts.size(); ++i) {
      EXPECT_EQ(starts[i] - starts[i - 1], starts[1] - starts[0]);
    }
    std::size_t areas = 0;
    for_each_area(pool->get(), [&](void* base, std::size_t bytes) {
      ++areas;
      EXPECT_LE(reinterpret_cast<std::uintptr_t>(base), starts.front());
      EXPECT_GT(reinterpret_cast<std::uintptr_t>(base) + bytes, starts.back());
    });
    EXPECT_EQ(areas, 1U);
    // First in, first out.
    std::reverse(frames.begin(), frames.end());
    rte_pktmbuf_free_bulk(frames.data(), 1000);
    std::vector<rte_mbuf*> again(1000);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), again.data(), 1000), 0);
    EXPECT_EQ(again, frames);
    rte_pktmbuf_free_bulk(again.data(), 1000);
  }
}

TEST(FramePool, RefusalNamesTheKeysToChange) {
  const auto pool = make_frame_pool("huge-test", 4'000'000, 2048, SOCKET_ID_ANY);
  ASSERT_FALSE(pool);
  EXPECT_NE(pool.error().message.find("4000000 frames of pool 'huge-test'"), std::string::npos) << pool.error().message;
  EXPECT_NE(pool.error().message.find("[memory] size"), std::string::npos);
}

}  // namespace
}  // namespace sluice::port
