// What a lookup answers: the number of a next hop in the router's own list.
#pragma once

#include <cstdint>

namespace sluice::lookup {

using NextHopId = std::uint32_t;

inline constexpr NextHopId no_route = 0;

// Ids are 1 to 2^24 - 1: the CPU tables keep one more bit beside the id (fib.cc says why), the GPU tables a flag in the
// highest one, and a verdict has 8 bits left for what else the router decides.
inline constexpr NextHopId max_next_hop_id = (1U << 24) - 1;

}  // namespace sluice::lookup
