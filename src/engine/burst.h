// What a receive burst returned, before it is a part of a batch.
#pragma once

#include <cstdint>

struct rte_mbuf;

namespace sluice::engine {

inline constexpr unsigned burst_size = 64;

}  // namespace sluice::engine
