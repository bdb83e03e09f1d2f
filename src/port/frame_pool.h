// Memory for frames: one mbuf pool per receive queue.
//
// A pool is a FIFO ring without per-core caches. Because Sluice keeps order, frames come back in the order in which
// they went out, so a queue's frames keep lying one behind another in memory. That is what the GPU's copy engine and
// its direct reads need to run at the link's speed (shuffled frames cost up to 5 times at 64 B). Each frame starts on
// 128 bytes, a line of the GPU and of the link's requests, so that no request carries bytes of a neighbour.
#pragma once

#include <rte_mempool.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"

namespace sluice::port {

struct PoolDeleter {
  void operator()(rte_mempool* pool) const;
};
using FramePool = std::unique_ptr<rte_mempool, PoolDeleter>;

// `frames` mbufs with `frame_bytes` of data room behind the headroom. The error says how much memory was asked for.
Expected<FramePool> make_frame_pool(const std::string& name, unsigned frames, unsigned frame_bytes, int numa_node);

// Calls `area(base, bytes)` for each contiguous piece of the pool's memory (to pin it for a GPU).
void for_each_area(rte_mempool* pool, const std::function<void(void* base, std::size_t bytes)>& area);

}  // namespace sluice::port
